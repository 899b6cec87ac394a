"""Checks beside the privacy models: the columns of a table and their types, and single rows that
released shares reveal."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonlib import registry
from anonlib.auditing.models import AuditModel
from anonlib.auditing.report import AuditReport, AuditSpec, Insensitive
from anonlib.auditing.verdicts import find_insensitive_state, find_least_persons, sort_problems
from anonlib.errors import Problem
from anonlib.text import count_noun

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from anonlib.auditing.view import View


def find_lone_rows(view: "View", spec: AuditSpec) -> dict[str, int]:
    """By column released as shares: rows known to be the only ones of their class with their value.

    Everyone can count the rows of a class, so its shares tell how many rows each value has. Shares
    that are rounded to steps of 1/s tell only a range of counts: a count over the rows of the class
    is between share - 1/s and share + 1/s. Then a row is known if the range contains no number but
    1. Costs one more grouping of the table.
    """
    from pyspark.sql import functions as F

    if not spec.shares:
        return {}
    place = {name: f"q{i}" for i, name in enumerate(spec.quasi_identifiers)}
    classes = view.rows.groupBy(*view.keys).agg(F.count("*").alias("n"))
    alone = [F.sum(_alone(place[name], steps)).alias(name) for name, steps in spec.shares.items()]
    row = classes.agg(*alone).collect()[0]
    return {name: int(row[i] or 0) for i, name in enumerate(spec.shares)}


def _alone(key: str, steps: int | None) -> "Column":
    """How many values of a class have one row."""
    from pyspark.sql import functions as F

    n = F.col("n")

    def one(element: "Column") -> "Column":
        share = element.getField("f1")  # canonical keys name the fields of (node, share) f0, f1
        if steps is None:
            return F.rint(share * n) == 1
        taken = F.rint(share * steps)
        return ((taken - 1) * n < steps) & ((taken + 1) * n <= 2 * steps)

    return F.size(F.filter(key, one))


SEVERAL_ORDERS = (
    "equal sets are in several orders, which readers can see: it tells apart rows of a class; sort "
    "the elements of every set"
)
#: How a pseudonym begins, and that is all of it.
HASH = "^[0-9a-f]{64}"
#: The type of released shares.
SHARES = "array<struct<node:int,share:double>>"
NO_K = "there is no k-anonymity among the privacy models"


def list_protected_columns(spec: AuditSpec, models: Sequence[AuditModel]) -> tuple[str, ...]:
    """The columns that models look at or that are in `joint`, each once."""
    looked_at = [name for model in models for name in model.protected]
    return tuple(dict.fromkeys([*looked_at, *spec.joint]))


def list_token_columns(spec: AuditSpec) -> tuple[str, ...]:
    """The column of the persons' tokens, if persons are counted by it."""
    return (spec.token,) if spec.persons == "token" and spec.token is not None else ()


def find_pseudonym_problems(df: "DataFrame", spec: AuditSpec) -> list[Problem]:
    """Problems with the values of pseudonyms, whose columns are there and text. Costs a pass over
    these columns, and another one over the one that must be unique."""
    from pyspark.sql import functions as F

    if not spec.pseudonyms:
        return []
    places = {name: i for i, name in enumerate(df.columns)}
    plain = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
    columns = [F.col(f"c{places[name]}") for name in spec.pseudonyms]
    strange = plain.agg(*[F.count_if(~each.rlike(f"{HASH}\\z")) for each in columns]).collect()[0]
    counts = zip(spec.pseudonyms, strange, strict=True)
    problems = [no_pseudonym(name, n) for name, n in counts if n]
    if spec.unique is not None:
        column = F.col(f"c{places[spec.unique]}")
        totals = (F.count("*"), F.count(column), F.count_distinct(column))
        n_rows, n_there, n_persons = plain.agg(*totals).collect()[0]
        problems += repeat_problems(spec.unique, n_rows - n_there, n_there - n_persons)
    return problems


def order_problems(df: "DataFrame", spec: AuditSpec, broken: Set[str]) -> list[Problem]:
    """The sets of which equal ones are in several orders. Costs a grouping for each column."""
    from pyspark.sql import functions as F

    from anonlib.auditing.canonical import make_key

    if not spec.sets:
        return []
    plain = df.toDF(*[f"c{i}" for i in range(len(df.columns))])
    problems = []
    for i, field in enumerate(df.schema.fields):
        if field.name not in spec.sets or field.name in broken:
            continue
        shown = make_key(F.col(f"c{i}"), field.dataType).alias("shown")
        # Few sets differ. The least and the greatest of each would need a sort of all rows.
        sets = plain.select(shown).distinct()
        orders = sets.groupBy(F.sort_array("shown")).agg(F.count("*").alias("n"))
        if not orders.where("n > 1").isEmpty():
            problems.append(Problem(field.name, SEVERAL_ORDERS))
    return problems


def no_pseudonym(name: str, n_rows: int) -> Problem:
    """The problem of a column with values that are no pseudonyms."""
    text = "a value that is no pseudonym: those are keyed hashes, of 64 digits 0-9 and a-f"
    return Problem(name, f"{count_noun(n_rows, 'row has', 'rows have')} {text}")


def repeat_problems(name: str, n_missing: int, n_again: int) -> list[Problem]:
    """The problems of a pseudonym that must name another person in each row.

    Args:
        name: The column.
        n_missing: Rows without a value.
        n_again: Rows whose value another row has, without the first of each value.
    """
    problems = []
    if n_missing:
        found = f"{count_noun(n_missing, 'row has', 'rows have')} none"
        problems.append(Problem(name, f"one_row_per_person names it, and {found}"))
    if n_again:
        found = f"{count_noun(n_again, 'row repeats', 'rows repeat')} that of another row"
        advice = "name it as `unit` if a person may have several rows, or set "
        advice += "`release.acknowledge_returning` if persons may be in several batches"
        problems.append(Problem(name, f"one_row_per_person names it, and {found}; {advice}"))
    return problems


@dataclass(frozen=True)
class ColumnKind:
    """What an engine says about the type of a column.

    Attributes:
        name: The name of the type.
        groups: Whether the column can be grouped by value.
        groups_with_maps: The same, if maps can be.
        counts: Whether its values can be told apart, and missing ones found, as models need.
        is_array: Whether its values are arrays.
        is_shares: Whether it has the type of released shares.
        is_text: Whether its values are texts.
    """

    name: str
    groups: bool
    groups_with_maps: bool
    counts: bool
    is_array: bool
    is_shares: bool
    is_text: bool


@dataclass(frozen=True)
class TableCheck:
    """What the columns of a table tell before its rows are counted.

    Attributes:
        models: The models of the spec.
        problems: What is wrong with the columns and the spec.
        protected: The columns that models look at, and those of `joint`.
        broken: The columns that can't be used.
        readable: Whether classes can be counted: all columns that they need can be used.
        insensitive: The insensitive columns whose combinations are to be counted.
        k: The least persons of every class.
    """

    models: tuple[AuditModel, ...]
    problems: tuple[Problem, ...]
    protected: tuple[str, ...]
    broken: frozenset[str]
    readable: bool
    insensitive: tuple[str, ...]
    k: int

    def describe_insensitive(self, spec: AuditSpec) -> Insensitive:
        """What the report says about the check of the insensitive columns."""
        return find_insensitive_state(spec, checked=bool(self.insensitive))

    def report_unreadable(
        self, spec: AuditSpec, n_rows: int, problems: Sequence[Problem]
    ) -> AuditReport:
        """The report on a table whose classes can't be counted. problems: All that were found."""
        state = find_insensitive_state(spec, checked=False)
        return AuditReport(n_rows, 0, (), sort_problems(problems, n_rows), (), state)


def check_table(
    names: Sequence[str], kinds: Mapping[str, ColumnKind], spec: AuditSpec
) -> TableCheck:
    """Checks the columns of a table.

    Args:
        names: The columns, in order.
        kinds: By column: what the engine that counts says about its type.
        spec: The requirements.
    """
    models = tuple(registry.build("audit", registry.spec(model)) for model in spec.models)
    problems, broken = find_table_problems(names, kinds, spec, models)
    protected = list_protected_columns(spec, models)
    k = find_least_persons(models)
    counts_rare = k and not spec.acknowledge_unique and not {*spec.insensitive} & broken
    return TableCheck(
        models=models,
        problems=tuple(problems),
        protected=protected,
        broken=broken,
        readable=not {*spec.quasi_identifiers, *protected, *list_token_columns(spec)} & broken,
        insensitive=spec.insensitive if counts_rare else (),
        k=k,
    )


def find_table_problems(
    names: Sequence[str],
    kinds: Mapping[str, ColumnKind],
    spec: AuditSpec,
    models: Sequence[AuditModel],
) -> tuple[list[Problem], frozenset[str]]:
    """Checks the columns of a table, by name and kind, and the spec. Names are compared exactly,
    case included.

    Returns:
        The problems, and the columns that can't be used.
    """
    problems, broken = _column_problems(names, spec, models)
    usable = {name: kind for name, kind in kinds.items() if name not in broken}
    unfit = _type_problems(usable, spec, models)
    problems += unfit
    if not any(model.persons for model in models):
        problems.append(Problem("privacy.models", NO_K))
    return problems, broken | {problem.where for problem in unfit}


def _column_problems(
    names: Sequence[str], spec: AuditSpec, models: Sequence[AuditModel]
) -> tuple[list[Problem], frozenset[str]]:
    there = Counter(names)
    tokens = () if spec.token is None else (spec.token,)
    protected = list_protected_columns(spec, models)
    needed = {*spec.columns, *spec.quasi_identifiers, *spec.insensitive, *protected}
    needed |= {*list_token_columns(spec), *spec.pseudonyms}
    strange = there.keys() - {*spec.columns, *tokens, *spec.private}
    missing = needed - there.keys()
    twice = {name for name, count in there.items() if count > 1}
    problems = [
        *[Problem(name, "the release should not have this column") for name in strange],
        *[Problem(name, "the table does not have this column") for name in missing],
        *[Problem(name, f"the table has {there[name]} columns of this name") for name in twice],
    ]
    return problems, frozenset(missing | twice)


def _type_problems(
    kinds: Mapping[str, ColumnKind], spec: AuditSpec, models: Sequence[AuditModel]
) -> list[Problem]:
    others = () if spec.acknowledge_unique else spec.insensitive
    maps = dict.fromkeys([*others, *list_protected_columns(spec, models)], True)
    maps |= dict.fromkeys(spec.quasi_identifiers, False)
    problems = [
        Problem(name, f"a column of type {kinds[name].name} can't be grouped by value here")
        for name, allowed in maps.items()
        if name in kinds and not (kinds[name].groups_with_maps if allowed else kinds[name].groups)
    ]
    told = {problem.where for problem in problems}
    problems += [
        Problem(
            name,
            f"can't be judged here: a model protects it, and it is of type {kinds[name].name}; "
            "such a column must be text, numbers, booleans, dates or timestamps, or made of them",
        )
        for name in list_protected_columns(spec, models)
        if name in kinds and name not in told and not kinds[name].counts
    ]
    problems += [
        Problem(name, f"said to be a set, which takes an array, not {kinds[name].name}")
        for name in spec.sets
        if name in kinds and not kinds[name].is_array
    ]
    problems += [
        Problem(name, f"said to be shares, which are of type {SHARES}")
        for name in spec.shares
        if name in kinds and not kinds[name].is_shares
    ]
    problems += [
        Problem(name, f"said to be a pseudonym, which is text, not {kinds[name].name}")
        for name in spec.pseudonyms
        if name in kinds and not kinds[name].is_text
    ]
    return problems


def list_kinds(df: "DataFrame") -> dict[str, ColumnKind]:
    """By column: what Spark says about its type."""
    return {field.name: _kind(field.dataType) for field in df.schema.fields}


def _kind(dtype: "DataType") -> ColumnKind:
    from pyspark.sql.types import ArrayType, CharType, StringType, VarcharType

    from anonlib.auditing.canonical import is_countable, is_groupable

    return ColumnKind(
        name=dtype.typeName(),
        groups=is_groupable(dtype, maps=False),
        groups_with_maps=is_groupable(dtype, maps=True),
        counts=is_countable(dtype),
        is_array=isinstance(dtype, ArrayType),
        is_shares=dtype.simpleString() == SHARES,
        is_text=isinstance(dtype, StringType | CharType | VarcharType),
    )
