"""What is wrong with a table in memory, before anything is made of it: values that can't be
released, models that all rows together do not hold, and values of single persons that no model
would protect. The scan of a release in Spark refuses the same."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import MISSING, Bools, Codes, Ints
from anonlib.config.model import Config
from anonlib.decisions.limits import find_thin, find_void_gates
from anonlib.decisions.protected import list_values
from anonlib.decisions.refusals import (
    MAX_COMBINATIONS,
    TargetAgreement,
    judge_joint,
    judge_models,
    judge_prediction,
    judge_target,
    refuse_combinations,
    refuse_infinite,
    refuse_key,
    refuse_no_rows,
    refuse_rare,
)
from anonlib.errors import ConfigError, Problem
from anonlib.partition.repair import Joint
from anonlib.table.encoding import (
    Values,
    code_column,
    code_known,
    one_zero,
)
from anonlib.table.row_numbers import number_classes, number_tuples
from anonlib.table.schema import Column, Role, Schema
from anonlib.worker.task import code_persons


def find_problems(table: pa.Table, schema: Schema, config: Config) -> list[Problem]:
    """Finds why the rows of a table can't be released.

    Like the scan, it stops at values that can't be used, before it counts for the models.
    Cost O(n log n).

    Args:
        table: The schema's columns by id. Quasi-identifiers and identifiers have no NaN. Texts of
            identifiers and of the unit are identities (`identify_person`).
        schema: The columns.
        config: The config.

    Raises ConfigError for values that can't be used, and for rows that the config does not fit.
    """
    if table.num_rows == 0:
        raise ConfigError([refuse_no_rows()])
    unfit = [
        *find_thin(config.partition, table.num_rows),
        *find_void_gates(config, table.num_rows),
        *_infinite_problems(table, schema),
    ]
    if unfit:
        raise ConfigError(unfit)
    person = code_persons([table.column(id).combine_chunks() for id in schema.unit])
    values, problems = list_values(table, schema, config, person)
    if problems:
        raise ConfigError(problems)
    return judge_rows(table, schema, config, values, person)


def judge_rows(
    table: pa.Table,
    schema: Schema,
    config: Config,
    values: dict[str, Values],
    person: Codes | None,
) -> list[Problem]:
    """Finds the models that all rows together do not hold, and values that would disclose.

    Args:
        table: As for `find_problems`.
        schema: The columns.
        config: The config.
        values: By id: the values of the columns whose counts models look at.
        person: int32[n] or None. The person of each row; None if each row is a person.
    """
    return [
        *_model_problems(table, schema, config, values, person),
        *_joint_problems(table, schema, config, values, person),
        *_disclosure_problems(table, schema, config),
    ]


def _infinite_problems(table: pa.Table, schema: Schema) -> Iterator[Problem]:
    for column in schema.columns:
        if column.scale is None or not pa.types.is_floating(column.type):
            continue
        if n := pc.sum(pc.is_inf(table.column(column.id))).as_py():
            yield refuse_infinite(column, n)


def _model_problems(
    table: pa.Table,
    schema: Schema,
    config: Config,
    values: dict[str, Values],
    person: Codes | None,
) -> Iterator[Problem]:
    """The models that the whole table, as one cell, does not hold."""
    n = table.num_rows
    somebody = _find_somebody(person, n)

    def codes(column: Column) -> Codes:
        return code_column(table, column, config.privacy.missing_tokens)[somebody]

    def count_values(column: Column, _: int) -> int:
        found = codes(column)
        return _count(found[found != MISSING])

    def count_known(column: Column) -> int | None:
        return None if person is None else _count(person[somebody][codes(column) != MISSING])

    return judge_models(
        schema,
        config,
        (n, n if person is None else _count(person[somebody])),
        values,
        {id: each.reference for id, each in values.items()},
        count_values,
        count_known,
    )


def _find_somebody(person: Codes | None, n: int) -> Bools:
    """bool[n]. Whether a row is of a person."""
    return np.ones(n, np.bool_) if person is None else person != MISSING


def _count(numbers: Ints | Codes) -> int:
    """The distinct codes, none of which is MISSING."""
    return int(np.count_nonzero(np.bincount(numbers)))


def _joint_problems(
    table: pa.Table,
    schema: Schema,
    config: Config,
    values: dict[str, Values],
    person: Codes | None,
) -> Iterator[Problem]:
    """Models that the whole table does not hold for who knows other protected columns."""
    if not schema.joint:
        return
    tokens = config.privacy.missing_tokens
    columns = {id: table.column(id).combine_chunks() for id in schema.protected}
    codes = [code_known(each, tokens, values.get(id)) for id, each in columns.items()]
    somebody = _find_somebody(person, table.num_rows)
    combination = number_tuples(codes, table.num_rows)[somebody]
    persons = np.arange(len(combination)) if person is None else person[somebody]
    # A person counts once for each combination that it has.
    of_person = np.unique(number_tuples([combination, persons], len(persons)), return_index=True)[1]
    found, first, place = np.unique(combination[of_person], return_index=True, return_inverse=True)
    if len(found) > MAX_COMBINATIONS:
        yield refuse_combinations(schema)
        return
    stacked = np.column_stack(codes).astype(np.int64)[somebody][of_person[first]]
    joint = Joint(schema.protected, np.zeros(len(found), np.int64), stacked, np.bincount(place))
    yield from judge_joint(joint, schema, values, config)


def _disclosure_problems(table: pa.Table, schema: Schema, config: Config) -> Iterator[Problem]:
    """Values of single persons that would be published although all models hold."""
    if isinstance(config.one_row_per_person, str):
        values = table.column(schema[config.one_row_per_person].id)
        if values.null_count or _count(_number_rows([values])) < table.num_rows:
            yield refuse_key(config.one_row_per_person)
    for target in schema.of(Role.TARGET):
        label = code_column(table, target, config.privacy.missing_tokens)
        for column in schema.of(Role.SENSITIVE):
            value = code_column(table, column, config.privacy.missing_tokens)
            if agreement := _find_agreement(label, value):
                yield from judge_target(target, column, agreement, config.privacy)
            else:
                yield from judge_prediction(target, column, label, value, config.privacy)
    privacy = config.privacy
    insensitive = [
        c for c in schema.of(Role.INSENSITIVE) if not privacy.acknowledges_unique(c.name)
    ]
    if insensitive:
        n_rows = np.bincount(_number_rows([table.column(c.id) for c in insensitive]))
        if rare := int((n_rows < config.k).sum()):
            n_values = [_count(_number_rows([table.column(c.id)])) for c in insensitive]
            yield refuse_rare(insensitive, rare, config.k, n_values, table.num_rows)


def _number_rows(columns: Sequence[pa.ChunkedArray]) -> Ints:
    """int64[n], from 0. Rows with equal values in all columns get the same number. There is one
    zero."""
    return number_classes([pa.chunked_array([one_zero(c.combine_chunks())]) for c in columns])


def _find_agreement(labels: Codes, values: Codes) -> TargetAgreement | None:
    """How each label goes with one value; None if one does not, or if all values are the same."""
    present = (labels != MISSING) & (values != MISSING)
    labels, values = labels[present], values[present]
    n_labels = _count(labels)
    if _count(values) < 2 or _count(number_tuples([labels, values], len(labels))) > n_labels:
        return None
    n_equal = sum(n * n for n in np.bincount(values).tolist())
    return TargetAgreement(len(labels), n_labels, n_equal)
