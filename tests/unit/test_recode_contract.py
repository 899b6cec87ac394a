"""What every recoder promises, over the whole registry."""

from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

from anonlib.errors import InputError
from anonlib.recode import Cells, Domain
from anonlib.registry import plugins
from anonlib.schema import Scale

N, M = 600, 40


def variants() -> list[Any]:
    """Every recoder that needs no parameters, and with each value of those that list them."""
    found = []
    for plugin in plugins("recoder").values():
        fields = plugin.model_fields
        if any(field.is_required() for field in fields.values()):
            continue
        found.append(plugin())
        for name, field in fields.items():
            choices = [True, False] if field.annotation is bool else get_args(field.annotation)
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


COLUMNS = columns()


def takes(recoder: Any, column: pa.DataType) -> bool:
    try:
        recoder.output(column)
    except InputError:
        return False
    return True


CASES = [
    pytest.param(recoder, values, id=f"{recoder!r}-{name}")
    for recoder in variants()
    for name, values in COLUMNS.items()
    if takes(recoder, values.type)
]
every_case = pytest.mark.parametrize(("recoder", "column"), CASES)
every_local_case = pytest.mark.parametrize(
    ("recoder", "column"),
    [case for case in CASES if not getattr(case.values[0], "restore_variance", False)],
)


@every_case
def test_one_value_per_cell_of_the_declared_type(recoder: Any, column: Any) -> None:
    result = recoder.recode(column, cells(), Domain())
    result.validate(full=True)
    assert len(result) == M
    assert result.type == recoder.output(column.type)


@every_case
def test_no_rows_give_no_values(recoder: Any, column: Any) -> None:
    result = recoder.recode(column[:0], Cells(np.zeros(0, np.int64), 0), Domain())
    assert len(result) == 0
    assert result.type == recoder.output(column.type)


@every_case
def test_only_missing_values_give_null(recoder: Any, column: Any) -> None:
    result = recoder.recode(pa.nulls(N, column.type), cells(), Domain())
    assert result.null_count == len(result) == M
    assert result.type == recoder.output(column.type)


@every_case
def test_the_order_of_rows_does_not_matter(recoder: Any, column: Any) -> None:
    here = cells()
    shuffle = np.random.default_rng(7).permutation(N)
    there = Cells(here.id[shuffle], M)
    one = recoder.recode(column, here, Domain())
    other = recoder.recode(column.take(pa.array(shuffle)), there, Domain())
    if recoder.type == "centroid" and pa.types.is_floating(column.type):
        magnitude = np.bincount(here.id, np.abs(np.nan_to_num(column.to_numpy(False))), M)
        if recoder.restore_variance:  # then a cell's value is made of all rows
            magnitude = magnitude.sum()
        close = np.abs(one.to_numpy(False) - other.to_numpy(False)) <= 1e-12 * magnitude
        assert (close | np.isnan(one.to_numpy(False))).all()
    else:
        assert one.equals(other)


@every_local_case
def test_a_cell_is_recoded_from_its_own_rows_only(recoder: Any, column: Any) -> None:
    here = cells()
    whole = recoder.recode(column, here, Domain())
    for cell in range(0, M, 9):
        rows = pa.array(np.flatnonzero(here.id == cell))
        alone = recoder.recode(column.take(rows), Cells(np.zeros(len(rows), np.int64), 1), Domain())
        assert alone.equals(whole[cell : cell + 1])


@every_case
def test_the_source_is_left_untouched(recoder: Any, column: Any) -> None:
    before = column.to_pylist()
    ids = cells().id.copy()
    here = cells()
    recoder.recode(column, here, Domain())
    assert column.to_pylist() == before
    assert (here.id == ids).all()


@pytest.mark.parametrize("recoder", variants(), ids=repr)
def test_declares_scales_and_describes_its_parameters(recoder: Any) -> None:
    assert recoder.scales
    assert recoder.scales <= set(Scale)
    assert all(field.description for field in type(recoder).model_fields.values())
