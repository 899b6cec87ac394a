"""The audit of a table in memory: the same checks and models as in Spark, over counts by Arrow."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from anonlib.auditing.arrow_values import (
    RowNumbers,
    can_count,
    can_number,
    combine,
    distinct,
    is_list,
    number_keys,
    number_protected,
    show_values,
)
from anonlib.auditing.class_counts import ClassCounts, Ints, ValueCounts
from anonlib.auditing.models import AuditModel, UnverifiableError, can_measure
from anonlib.auditing.report import AuditReport, AuditSpec, Verdict
from anonlib.auditing.rules import (
    HASH,
    SEVERAL_ORDERS,
    ColumnKind,
    check_table,
    list_token_columns,
    no_pseudonym,
    repeat_problems,
)
from anonlib.auditing.verdicts import (
    INSENSITIVE_ALONE,
    INSENSITIVE_WITHIN,
    Tally,
    as_joint,
    find_rare_problems,
    list_joint_models,
    make_verdict,
    round_sizes,
    sort_problems,
)
from anonlib.errors import Problem
from anonlib.registry import run_plugin


def audit_in_memory(table: pa.Table, spec: AuditSpec, *, exact_sizes: bool = False) -> AuditReport:
    """Verifies a table in memory against a spec, by counting everything again. No Spark is needed.

    Values are compared as `audit_table` compares them. All values of verdicts are exact. Columns of
    intervals of time and of times of day can't be grouped here, which is a problem.

    Cost: some sorts and hash tables of the rows; ordered t-closeness O(classes * values).

    Args:
        table: The table. Relative models compare its classes with all of it.
        spec: The requirements.
        exact_sizes: Whether no size of `sizes` is rounded.

    Returns:
        The report. It lists all defects of the table; nothing is raised.
    """
    table = _type_nothing(table, spec)
    kinds = {field.name: _kind(field.type) for field in table.schema}
    check = check_table(table.column_names, kinds, spec)
    models, problems = check.models, [*check.problems]
    if not {*spec.pseudonyms} & check.broken:
        problems += _pseudonym_problems(table, spec)
    problems += _order_problems(table, spec, check.broken)
    if not check.readable:
        return check.report_unreadable(spec, table.num_rows, problems)

    rows = _number_rows(table, spec, check.protected, check.insensitive)
    counts = _count_classes(rows, rows.keys)
    verdicts = [_judge(model, counts) for model in models] if rows.n else []
    if rows.n:
        verdicts += _joint_verdicts(rows, spec, models)
    if rows.n and check.insensitive:
        problems += _rare_combinations(rows, check.insensitive, check.k)
    sizes = _count_sizes(counts.n_rows, exact=exact_sizes) if rows.n else Counter[int]()
    return AuditReport(
        n_rows=rows.n,
        n_classes=sizes.total(),
        verdicts=tuple(verdicts),
        problems=sort_problems(problems, rows.n),
        sizes=tuple(sorted(sizes.items())),
        insensitive=check.describe_insensitive(spec),
        lone=count_lone(table, rows.keys, spec.shares, rows.mask) if rows.n else {},
    )


def _type_nothing(table: pa.Table, spec: AuditSpec) -> pa.Table:
    """The table with a type for sets, shares and pseudonyms of columns without a value, whose type
    is then null: pandas does not know it."""
    share = pa.struct([("node", pa.int32()), ("share", pa.float64())])
    given = dict.fromkeys(spec.sets, pa.list_(pa.null()))
    given |= dict.fromkeys(spec.shares, pa.list_(share))
    given |= dict.fromkeys(spec.pseudonyms, pa.string())
    for i, field in enumerate(table.schema):
        if types.is_null(field.type) and field.name in given:
            values = pa.nulls(table.num_rows, given[field.name])
            table = table.set_column(i, field.name, values)
    return table


def _kind(dtype: pa.DataType) -> ColumnKind:
    return ColumnKind(
        name="array" if is_list(dtype) else "map" if types.is_map(dtype) else str(dtype),
        groups=can_number(dtype, maps=False),
        groups_with_maps=can_number(dtype, maps=True),
        counts=can_count(dtype),
        is_array=is_list(dtype),
        is_shares=is_list(dtype) and _is_share(dtype.value_type),
        is_text=_is_text(dtype.value_type if types.is_dictionary(dtype) else dtype),
    )


def _is_text(dtype: pa.DataType) -> bool:
    return bool(
        types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    )


def _pseudonym_problems(table: pa.Table, spec: AuditSpec) -> list[Problem]:
    """Problems with the values of pseudonyms, whose columns are there and text."""
    problems = []
    for name in spec.pseudonyms:
        numbers = number_keys(table.column(name))
        n_missing, *n_rows = np.bincount(numbers.of_row, minlength=numbers.size).tolist()
        is_one = pc.match_substring_regex(numbers.values, f"{HASH}$").to_pylist()
        n_strange = sum(n for n, own in zip(n_rows, is_one, strict=True) if not own)
        problems += [no_pseudonym(name, n_strange)] if n_strange else []
        if name == spec.unique:
            problems += repeat_problems(name, n_missing, sum(n_rows) - len(n_rows))
    return problems


def _order_problems(table: pa.Table, spec: AuditSpec, broken: Set[str]) -> list[Problem]:
    """The sets of which equal ones are in several orders."""
    problems = []
    for name in (name for name in spec.sets if name not in broken):
        column = table.column(name)
        if number_keys(column).size > number_keys(column, is_set=True).size:
            problems.append(Problem(name, SEVERAL_ORDERS))
    return problems


def _is_share(dtype: pa.DataType) -> bool:
    fields = [(field.name, field.type) for field in dtype.fields] if types.is_struct(dtype) else []
    return fields == [("node", pa.int32()), ("share", pa.float64())]


@dataclass(frozen=True, eq=False)
class _Rows:
    """The audited rows as numbers.

    Attributes:
        n: The number of rows.
        mask: bool[rows of the table]. Which rows are audited; None if all are.
        keys: The class of each row.
        columns: By protected column: its values. Missing values have the number 0.
        whole: By protected column and number: the persons in the whole table.
        insensitive: The insensitive columns, if they are checked.
        token: The persons' tokens, if persons are counted by them.
        spec: The requirements.
    """

    n: int
    mask: npt.NDArray[np.bool_] | None
    keys: RowNumbers
    columns: Mapping[str, RowNumbers]
    whole: Mapping[str, Ints]
    insensitive: tuple[RowNumbers, ...]
    token: RowNumbers | None
    spec: AuditSpec


def _number_rows(
    table: pa.Table, spec: AuditSpec, protected: Sequence[str], insensitive: Sequence[str]
) -> _Rows:
    def key(name: str) -> RowNumbers:
        return number_keys(table.column(name), is_set=name in spec.sets)

    keys = [key(name) for name in spec.quasi_identifiers]
    if spec.apart is not None:
        keys.append(number_keys(table.column(spec.apart)))
    columns = {
        name: number_protected(table.column(name), spec.missing_tokens) for name in protected
    }
    token = next((number_keys(table.column(name)) for name in list_token_columns(spec)), None)
    rows = _Rows(
        n=table.num_rows,
        mask=None,
        keys=combine(keys, table.num_rows),
        columns=columns,
        whole={name: _count_persons(numbers, token) for name, numbers in columns.items()},
        insensitive=tuple(map(key, insensitive)),
        token=token,
        spec=spec,
    )
    if spec.only is None or spec.apart is None:
        return rows
    apart = table.column(spec.apart)
    chosen = pc.is_in(apart, value_set=pa.array(spec.only, apart.type))
    return _judge_only(rows, chosen.to_numpy())


def _judge_only(rows: _Rows, mask: npt.NDArray[np.bool_]) -> _Rows:
    n = int(mask.sum())
    return replace(
        rows,
        n=n,
        mask=mask,
        keys=combine([rows.keys.where(mask)], n),
        columns={name: numbers.where(mask) for name, numbers in rows.columns.items()},
        insensitive=tuple(numbers.where(mask) for numbers in rows.insensitive),
        token=None if rows.token is None else rows.token.where(mask),
    )


def _count_persons(groups: RowNumbers, token: RowNumbers | None) -> Ints:
    """int64[groups]. The rows of each group; with tokens its distinct tokens, where null is nobody.

    Two factors below the number of rows + 2 are no overflow.
    """
    if token is None:
        return np.bincount(groups.of_row, minlength=groups.size)
    there = token.of_row > 0
    pairs = np.unique(groups.of_row[there] * token.size + token.of_row[there])
    return np.bincount(pairs // token.size, minlength=groups.size)


def _count_classes(rows: _Rows, keys: RowNumbers) -> ClassCounts:
    return ClassCounts(
        n_rows=np.bincount(keys.of_row, minlength=keys.size),
        n_persons=_count_persons(keys, rows.token),
        persons=rows.spec.persons,
        columns={name: _count_values(rows, keys, name) for name in rows.columns},
        hierarchies=rows.spec.hierarchies,
        orders=rows.spec.orders,
    )


def _count_values(rows: _Rows, keys: RowNumbers, name: str) -> ValueCounts:
    values, whole = rows.columns[name], rows.whole[name]
    pairs, pair = distinct(
        keys.of_row * values.size + values.of_row, max(keys.size, 1) * values.size
    )
    n = _count_persons(RowNumbers(pair, len(pairs)), rows.token)
    place, value = np.divmod(pairs, values.size)
    is_missing = value == 0
    missing = np.zeros(keys.size, np.int64)
    missing[place[is_missing]] = n[is_missing]
    counted = ~is_missing & (n > 0)
    there = values.of_row > 0
    ranked = name in rows.spec.hierarchies or name in rows.spec.orders
    token = None if rows.token is None else rows.token.where(there)
    return ValueCounts(
        place=place[counted],
        value=value[counted] - 1,
        n=n[counted],
        missing=missing,
        present=_count_persons(keys.where(there), token),
        whole=whole[1:],
        whole_missing=int(whole[0]),
        texts=show_values(values.values) if ranked and values.values is not None else None,
    )


def _judge(model: AuditModel, counts: ClassCounts) -> Verdict:
    if not can_measure(type(model)):
        note = f"{model.type} has no `measure` of its own, so it can't be counted in memory"
        return make_verdict(model, Tally(note=note), "")
    tally, why = run_plugin(model, lambda: (_tally(model, counts), model.unverifiable(counts)))
    return make_verdict(model, tally, why)


def _tally(model: AuditModel, counts: ClassCounts) -> Tally:
    """The counts of a model."""
    try:
        values = np.asarray(model.measure(counts))
    except UnverifiableError as error:
        return Tally(note=str(error))
    if values.shape != counts.n_rows.shape or values.dtype.kind not in "iuf":
        return Tally(note=f"the `measure` of {model.type} gives no value for each class")
    there, found = ~np.isnan(values), model.holds(values)
    is_bools = isinstance(found, np.ndarray) and found.dtype == np.bool_
    if not is_bools or found.shape != values.shape:
        return Tally(note=f"the `holds` of {model.type} gives no truth value for each class")
    holds = there & found
    worst = np.min if model.greater_is_better else np.max
    return Tally(
        value=worst(values[there]).item() if there.any() else None,
        failing=_count_sizes(counts.n_rows[~holds]),
    )


def _joint_verdicts(
    rows: _Rows, spec: AuditSpec, models: Sequence[AuditModel]
) -> Iterator[Verdict]:
    """The verdicts against attackers who know other protected columns. Known columns are keys of
    classes, like quasi-identifiers. Rows of nobody are left out: where there are no others, nobody
    is to be protected."""
    if rows.token is not None:
        rows = _judge_only(rows, rows.token.of_row > 0)
    if not rows.n:
        return
    for names, same in list_joint_models(spec, models).items():
        keys = combine([rows.keys, *(rows.columns[name] for name in names)], rows.n)
        counts = _count_classes(rows, keys)
        for model in same:
            yield as_joint(_judge(model, counts))


def _count_sizes(n_rows: Ints, *, exact: bool = False) -> Counter[int]:
    """The classes by size, which is rounded if it is large and need not be exact."""
    sizes, counts = np.unique(n_rows, return_counts=True)
    found = Counter(dict(zip(sizes.tolist(), counts.tolist(), strict=True)))
    return found if exact else round_sizes(found)


def _rare_combinations(rows: _Rows, insensitive: Sequence[str], k: int) -> list[Problem]:
    """Problems if combinations of insensitive columns belong to fewer than k persons. The columns
    are checked alone, and together with the quasi-identifiers."""
    problems = []
    for keys, text in [
        (rows.insensitive, INSENSITIVE_ALONE),
        ((rows.keys, *rows.insensitive), INSENSITIVE_WITHIN),
    ]:
        n = _count_persons(combine(keys, rows.n), rows.token)
        problems += find_rare_problems(text, insensitive, int((n < k).sum()), len(n), k)
    return problems


def count_lone(
    table: pa.Table,
    keys: RowNumbers,
    shares: Mapping[str, int | None],
    mask: npt.NDArray[np.bool_] | None = None,
) -> dict[str, int]:
    """By column released as shares: rows known to be the only ones of their class with their value
    (see `rules.lone`). All rows of a class have the same shares, so one row is enough.

    Args:
        table: The rows.
        keys: The class of each row that is judged.
        shares: As in `AuditSpec`.
        mask: bool[n]. Which rows are judged; None for all.
    """
    if not shares:
        return {}
    places = np.arange(table.num_rows) if mask is None else np.flatnonzero(mask)
    some_row = np.empty(keys.size, np.int64)
    some_row[keys.of_row] = places
    n_rows = np.bincount(keys.of_row, minlength=keys.size)
    found = {}
    for name, steps in shares.items():
        column = table.column(name).take(some_row).combine_chunks()
        flat = pc.struct_field(pc.list_flatten(column), "share")
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
        lengths = np.where(column.is_null().to_numpy(zero_copy_only=False), 0, lengths)
        share = flat.to_numpy(zero_copy_only=False)
        n = np.repeat(n_rows, lengths)
        if steps is None:
            alone = np.rint(share * n) == 1
        else:
            taken = np.rint(share * steps)
            alone = ((taken - 1) * n < steps) & ((taken + 1) * n <= 2 * steps)
        found[name] = int(alone.sum())
    return found
