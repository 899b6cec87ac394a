"""What is said of rows that can't be released, before anything is made of them.

Spark (`anonlib/run/scan.py`, `anonlib/run/feasible.py`) and tables in memory
(`anonlib/local/problems.py`) count the rows, and say the same of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from anonlib.arrays import MISSING, Codes
from anonlib.config.model import Config, PrivacySection
from anonlib.config.resolve import with_ids
from anonlib.content.content_rules import NEARLY_ALL, is_key
from anonlib.content.forms import LEAST_ROWS, choose_rows
from anonlib.content.relations import measure_prediction
from anonlib.errors import InputError, Problem
from anonlib.partition.controller import Controller
from anonlib.partition.repair import Joint
from anonlib.privacy import Reference
from anonlib.privacy.shares import count_whole_table
from anonlib.table.encoding import Values
from anonlib.table.schema import Column, Role, Schema
from anonlib.text import MISSING_TOKENS

#: Most distinct values of a column whose distribution models look at.
MAX_VALUES = 100_000
#: Most data controllers. A column with more distinct values hardly names institutions.
MAX_CONTROLLERS = 100_000
#: Most combinations of values of the protected columns.
MAX_COMBINATIONS = 100_000
#: What is less likely than this is no chance.
LEAST_CHANCE = 0.001


def refuse_no_rows() -> Problem:
    """There is nothing to release."""
    return Problem("source", "has no rows, so there is nothing to release; check what it reads")


def refuse_infinite(column: Column, n: int) -> Problem:
    """The column has n infinite values."""
    return Problem(
        f"column {column.name}", f"{n} infinite values; make them missing or leave the rows out"
    )


def refuse_categories(column: Column, most: int) -> Problem:
    """Too many categories of a nominal or ordinal column."""
    advice = "choose another scale, coarsen the column"
    if column.role is Role.INSENSITIVE:
        advice = "target_clusters looks at insensitive columns: coarsen or drop this one"
    return Problem(
        f"column {column.name}",
        (f"more than max_categories = {most} distinct values; {advice}, or raise max_categories"),
    )


def refuse_rich(name: str, model: str) -> Problem:
    """The column has more than MAX_VALUES, and a model counts them."""
    return Problem(
        f"column {name}",
        f"has more than {MAX_VALUES} distinct values, too many for {model}; coarsen it",
    )


def refuse_unlisted(name: str, field: str, error: InputError) -> Problem:
    """The column has values that its order or hierarchy lacks: the error says how many."""
    return Problem(
        f"attributes.{name}.{field}",
        f"{error}; add them, or list them under privacy.missing_tokens",
    )


def refuse_controllers(step: Controller) -> Problem:
    """There are more than MAX_CONTROLLERS."""
    return Problem(
        f"column {step.column}",
        f"has more than {MAX_CONTROLLERS} values, too many for data controllers; name the column "
        "of the institutions",
    )


def refuse_absent(step: Controller, n_absent: int) -> Problem:
    """The step has models for controllers that are not in the table."""
    return Problem(
        "partition.steps.0.models",
        f"{n_absent} of the {len(step.models)} controllers named are not in column {step.column}; "
        "correct or remove them (booleans and dates are written as Spark casts them to text)",
    )


def refuse_key(name: str) -> Problem:
    """The column does not identify one row per person."""
    text = f"column {name} repeats or is missing in several rows: it "
    text += "does not identify one row per person; name a `unit` instead"
    return Problem("one_row_per_person", text)


class TargetAgreement(NamedTuple):
    """Rows in which each value of the target goes with one value of a sensitive column.

    Attributes:
        n_rows: The rows that have both values.
        n_labels: The values of the target in them.
        n_equal: The ordered pairs of such rows, each with itself too, whose sensitive values are
            equal.
    """

    n_rows: int
    n_labels: int
    n_equal: int

    @property
    def is_by_chance(self) -> bool:
        """Whether so few rows share a value of the target that they may well agree by chance."""
        if self.n_labels < NEARLY_ALL * self.n_rows:
            return False
        agreeing = self.n_equal / self.n_rows**2
        return bool(agreeing ** (self.n_rows - self.n_labels) > LEAST_CHANCE)


def judge_target(
    target: Column, column: Column, agreement: TargetAgreement, privacy: PrivacySection
) -> Iterator[Problem]:
    """What a target tells of a sensitive column, of which it leaves no value open."""
    where = f"attributes.{target.name}"
    if not agreement.is_by_chance:
        yield Problem(
            where,
            f"determines the sensitive column {column.name}: publishing it publishes both; coarsen "
            "it or give one of them `role: drop`",
        )
    elif not privacy.acknowledges_unique(target.name):
        yield Problem(
            where,
            f"nearly every row has a value of its own ({agreement.n_labels} values in "
            f"{agreement.n_rows} rows), so that who knows it finds the row, and {column.name}; "
            "coarsen it or give it `role: drop`, or name it under privacy.acknowledge_unique",
        )


def judge_prediction(
    target: Column, column: Column, labels: Codes, values: Codes, privacy: PrivacySection
) -> Iterator[Problem]:
    """A target may tell a sensitive column without determining it: a few rows that differ do not
    protect the others.

    Args:
        target: The target.
        column: The sensitive column.
        labels: int32[n]. The codes of the target in a sample; MISSING for none.
        values: int32[n]. Those of the sensitive column.
        privacy: The section of the config that acknowledges columns.
    """
    if privacy.names_unique(target.name):
        return
    known = np.flatnonzero((labels != MISSING) & (values != MISSING))
    rows = known[choose_rows(len(known))]
    codes = (each[rows].astype(np.int64) for each in (labels, values))
    if len(rows) >= LEAST_ROWS and measure_prediction(*codes) >= NEARLY_ALL:
        yield Problem(
            f"attributes.{target.name}",
            f"tells the sensitive column {column.name} in nearly all rows: publishing it publishes "
            "both; coarsen it or give one of them `role: drop`, or, if nobody is hurt by that, "
            "name it under privacy.acknowledge_unique",
        )


def refuse_rare(
    columns: Sequence[Column], n_rare: int, k: int, n_values: Sequence[int], n_rows: int
) -> Problem:
    """Combinations of insensitive columns single out rows.

    Args:
        columns: The columns.
        n_rare: The combinations of fewer than k rows.
        k: The rows that a combination must have.
        n_values: The distinct values of each column.
        n_rows: All rows.
    """
    names = ", ".join(column.name for column in columns)
    keys = [c.name for c, n in zip(columns, n_values, strict=True) if is_key(n, n_rows)]
    told = f"{', '.join(keys)}: nearly every row has its own value, as with names and numbers of "
    told += "persons: give it `role: identifier`; "
    return Problem(
        "privacy.acknowledge_unique",
        f"{told if keys else ''}{n_rare} combinations of the insensitive columns ({names}) are "
        f"rarer than k = {k}; give them other roles, or accept it: `acknowledge_unique: [{names}]`",
    )


def refuse_combinations(schema: Schema) -> Problem:
    """The protected columns have more than MAX_COMBINATIONS of values."""
    names = ", ".join(schema.by_id(id).name for id in schema.protected)
    return Problem(
        "privacy.joint",
        f"columns {names} have more than {MAX_COMBINATIONS} combinations "
        "of values, too many; coarsen or drop some",
    )


def judge_models(
    schema: Schema,
    config: Config,
    sizes: tuple[int, int],
    values: Mapping[str, Values],
    own: Mapping[str, Reference],
    count_values: Callable[[Column, int], int],
    count_known: Callable[[Column], int | None],
) -> Iterator[Problem]:
    """The models that the whole table, as one cell, does not hold.

    Args:
        schema: The columns.
        config: The config.
        sizes: The number of rows, and of persons.
        values: By id: the values of columns whose distribution models look at.
        own: By id: how often the rows have them.
        count_values: From a column to the distinct present values that persons have. If they are
            more than the given number, it may return any number above.
        count_known: From a column to the persons with a present value; None without a unit.
    """
    n_rows, n = sizes
    for model in config.bound_models:
        where = f"privacy.models.{model.type}"
        if model.min_rows > n_rows:
            text = f"asks for {model.min_rows} rows; there are {n_rows}"
            yield Problem(where, f"{text} to release: ask for fewer")
        elif model.min_persons > n:
            text = f"asks for {model.min_persons} persons; there are {n}"
            yield Problem(where, f"{text} to release: ask for fewer")
        name, wanted = model.column, model.min_values
        if name is not None and wanted:
            found = count_values(schema[name], wanted)
            if wanted > found:
                text = f"asks for {wanted} values; column {name} has {found}"
                if config.privacy.missing_tokens != MISSING_TOKENS:
                    text += ", without those that privacy.missing_tokens counts as missing"
                yield Problem(where, f"{text}: ask for fewer, or leave the model out")
                continue
        if name is not None and model.looks_at == "counts":
            column = schema[name]
            cell = count_whole_table(name, own[column.id], n, count_known(column))
            cell = replace(cell, references={name: values[column.id].reference})
            if not model.holds(cell)[0]:
                text = f"column {name} does not hold it in all rows as one cell"
                yield Problem(where, f"{text}: weaken the model, or leave it out")


def judge_joint(
    joint: Joint,
    schema: Schema,
    values: Mapping[str, Values],
    config: Config,
) -> Iterator[Problem]:
    """The models that the whole table, as one cell, does not hold for who knows other columns.

    Args:
        joint: The combinations of protected values in the whole table, as one leaf.
        schema: The columns.
        values: By id: the values of columns whose distribution models look at.
        config: The config.
    """
    names = [schema.by_id(id).name for id in schema.protected]
    references = {id: each.reference for id, each in values.items()}
    for model in with_ids(config.bound_models, schema):
        if model.column is None:
            continue
        known = joint.known(model.column, references, bool(schema.unit))
        holding = model.holds(known.counts)
        if not holding.all():
            name = schema.by_id(model.column).name
            others = [other for other in names if other != name]
            verb = "are" if len(others) > 1 else "is"
            yield Problem(
                "privacy.joint",
                f"{model.type}: column {name} does not hold it where {', '.join(others)} "
                f"{verb} known, in {(~holding).sum()} of {len(holding)} groups of the "
                "whole table; coarsen or drop a column, or leave joint out",
            )
