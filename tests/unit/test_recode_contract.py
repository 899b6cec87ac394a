"""What every recoder promises, over the whole registry."""

from typing import Any, Literal, get_args, get_origin

import numpy as np
import pyarrow as pa
import pytest

from anonlib.encode._published import read_parents
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy
from anonlib.recode import Cells, Domain
from anonlib.recode.interval import Interval
from anonlib.recode.lca import Lca
from anonlib.recode.proportional import Proportional
from anonlib.registry import plugins
from anonlib.table.schema import Scale
from anonlib.worker.contracts import recode_column

N, M = 600, 40
#: With parameters that are numbers, or one of several kinds.
SOME = [Lca(level=1), Proportional(steps=7)]
CODED = [Interval(round_to="month"), Interval(bottom=-20, top=20), Interval(round_to=0.5)]


def variants() -> list[Any]:
    """Every recoder that needs no parameters, and with each value of those that list them."""
    found: list[Any] = [*SOME, *CODED]
    for plugin in plugins("recoder").values():
        fields = plugin.model_fields
        if any(field.is_required() for field in fields.values()):
            continue
        found.append(plugin())
        for name, field in fields.items():
            listed = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            choices = [True, False] if field.annotation is bool else listed
            found += [plugin(**{name: each}) for each in choices if each != field.default]
    return found


def columns() -> dict[str, Any]:
    random = np.random.default_rng(5)
    missing = random.random(N) < 0.3
    integers = pa.array(random.integers(-50, 50, N), mask=missing)
    huge = pa.array(random.integers(-(2**63), 2**63 - 1, N), mask=missing)
    return {
        "int8": integers.cast(pa.int8()),
        "int64": huge,
        "float32": pa.array(random.normal(size=N).astype(np.float32), mask=missing),
        "float64": pa.array(random.normal(size=N) * 10.0 ** random.integers(-9, 9, N)),
        "decimal": huge.cast(pa.decimal128(38, 0)).cast(pa.decimal128(38, 10)),
        "boolean": pa.array(random.random(N) < 0.5, mask=missing),
        "date": integers.cast(pa.int32()).view(pa.date32()),
        "timestamp": integers.view(pa.timestamp("us", "UTC")),
        "string": integers.cast(pa.string()),
        "dictionary": integers.cast(pa.string()).dictionary_encode(),
    }


def cells() -> Cells:
    ids = np.concatenate([np.arange(M), np.random.default_rng(6).integers(0, M, N - M)])
    return Cells(ids, M)


def hierarchy_of(column: Any) -> Hierarchy:
    """A tree over the values of a column, by their texts, with groups of about 50 between."""
    values = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    names = values.unique().drop_null().cast(pa.string()).to_pylist()
    c = len(names)
    n_groups = 1 + c // 50
    group = np.sort(np.arange(c) % n_groups)
    parents = [*(c + group), *[c + n_groups] * (n_groups + 1)]
    return read_parents([*names, *(f"group {i}" for i in range(n_groups)), "*"], parents)


COLUMNS = columns()
TREES = {name: hierarchy_of(column) for name, column in COLUMNS.items()}


def takes(recoder: Any, column: pa.DataType) -> bool:
    try:
        recoder.output(column)
    except InputError:
        return False
    return True


def domains(recoder: Any, name: str) -> dict[str, Domain]:
    """With a hierarchy where the recoder takes note of one, and without where it can do without."""
    found = {"-tree": Domain(None, TREES[name])} if recoder.names_nodes else {}
    return found if recoder.needs_hierarchy or recoder in SOME else {"": Domain(), **found}


CASES = [
    pytest.param(recoder, values, domain, id=f"{recoder!r}-{name}{tree}")
    for recoder in variants()
    for name, values in COLUMNS.items()
    if takes(recoder, values.type)
    for tree, domain in domains(recoder, name).items()
]
every_case = pytest.mark.parametrize(("recoder", "column", "domain"), CASES)
every_local_case = pytest.mark.parametrize(
    ("recoder", "column", "domain"),
    [case for case in CASES if not getattr(case.values[0], "restore_variance", False)],
)


@every_case
def test_one_value_per_cell_of_the_declared_type(recoder: Any, column: Any, domain: Domain) -> None:
    result = recode_column(recoder, column, cells(), domain)
    result.validate(full=True)
    assert len(result) == M
    assert result.type == recoder.output(column.type)


@every_case
def test_no_rows_give_no_values(recoder: Any, column: Any, domain: Domain) -> None:
    result = recode_column(recoder, column[:0], Cells(np.zeros(0, np.int64), 0), domain)
    assert len(result) == 0
    assert result.type == recoder.output(column.type)


@every_case
def test_only_missing_values_give_null(recoder: Any, column: Any, domain: Domain) -> None:
    """Or what the recoder has for them, the same whatever the cell."""
    result = recode_column(recoder, pa.nulls(N, column.type), cells(), domain)
    assert len(result) == M
    assert result.type == recoder.output(column.type)
    if recoder.type == "proportional":  # a node of its own, behind all others
        assert domain.hierarchy is not None
        missing = [{"node": len(domain.hierarchy.names), "share": 1.0}]
        assert result.to_pylist() == [missing] * M
    elif recoder.type == "suppress":
        assert result.to_pylist() == ["*"] * M
    else:
        assert result.null_count == M


@every_case
def test_the_order_of_rows_does_not_matter(recoder: Any, column: Any, domain: Domain) -> None:
    here = cells()
    shuffle = np.random.default_rng(7).permutation(N)
    there = Cells(here.id[shuffle], M)
    one = recoder.recode(column, here, domain)
    other = recoder.recode(column.take(pa.array(shuffle)), there, domain)
    if recoder.type == "centroid" and pa.types.is_floating(column.type):
        magnitude = np.bincount(here.id, np.abs(np.nan_to_num(column.to_numpy(False))), M)
        if recoder.restore_variance:  # then a cell's value is made of all rows
            magnitude = magnitude.sum()
        close = np.abs(one.to_numpy(False) - other.to_numpy(False)) <= 1e-12 * magnitude
        assert (close | np.isnan(one.to_numpy(False))).all()
    else:
        assert one.equals(other)


@every_local_case
def test_a_cell_is_recoded_from_its_own_rows_only(
    recoder: Any, column: Any, domain: Domain
) -> None:
    here = cells()
    whole = recoder.recode(column, here, domain)
    for cell in range(0, M, 9):
        rows = pa.array(np.flatnonzero(here.id == cell))
        alone = recoder.recode(column.take(rows), Cells(np.zeros(len(rows), np.int64), 1), domain)
        assert alone.equals(whole[cell : cell + 1])


@every_case
def test_the_source_is_left_untouched(recoder: Any, column: Any, domain: Domain) -> None:
    before = column.to_pylist()
    ids = cells().id.copy()
    here = cells()
    recoder.recode(column, here, domain)
    assert column.to_pylist() == before
    assert (here.id == ids).all()


@pytest.mark.parametrize("recoder", variants(), ids=repr)
def test_declares_scales_and_describes_its_parameters(recoder: Any) -> None:
    assert recoder.scales
    assert recoder.scales <= set(Scale)
    assert all(field.description for field in type(recoder).model_fields.values())
