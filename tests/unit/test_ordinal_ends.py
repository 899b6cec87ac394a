"""Ordinal numbers that are released as intervals: recoders round and limit ends, which need not be
categories of the source then."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import anonlib
from anonlib.measure.fidelity._axes import make_axis
from anonlib.measure.fidelity._reading import CategoryShares, read_column
from anonlib.measure.risk._compared import match_column
from anonlib.recode import Cells, Domain
from anonlib.recode.interval import Interval
from anonlib.table.encoding import fit_whole
from anonlib.table.schema import Column, Role, Scale

TYPES = (pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.date32())
#: Days since 1970, of which the categories are known. Each cell has two rows.
NUMBERS = [18, 23, 33, 41, 57, 57, 89, 71]
WAYS: tuple[dict[str, Any], ...] = (
    {"round_to": 5.0},
    {"round_to": 100.0},
    {"bottom": 30.0, "top": 60.0},
    {"bottom": 25.0, "top": 70.0, "round_to": 10.0},
    {},
)


def values_of(type: pa.DataType) -> Any:
    if pa.types.is_decimal(type):
        return pa.array([Decimal(each) for each in NUMBERS], type)
    return pa.array(NUMBERS, pa.int32()).cast(type)


@pytest.mark.parametrize("form", ["struct", "text"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("type", TYPES)
def test_persons_are_in_the_intervals_of_their_cells(
    type: pa.DataType, way: dict[str, Any], form: str
) -> None:
    if pa.types.is_date(type):
        way = {"round_to": "month"} if way else {}
    recoder = Interval(**way, form=form)
    column = Column(
        *("a", "c0", Role.QUASI_IDENTIFIER, type, str(type)),
        scale=Scale.ORDINAL,
        recoder=recoder,
    )
    values = values_of(type)
    encoding = fit_whole(column, values)
    cells = Cells(np.repeat(np.arange(4), 2), 4)
    released = recoder.recode(values, cells, Domain())
    read = read_column(make_axis(column, encoding), released, released=True)
    assert isinstance(read, CategoryShares)
    assert read.shares is not None
    shares = read.shares.toarray()[read.index]
    assert shares.sum(axis=1) == pytest.approx(1)
    code = pc.index_in(values, value_set=encoding.categories).to_numpy()
    if not {"bottom", "top"} & way.keys():
        assert (shares[cells.id, code] > 0).all()
    matched = match_column(column, encoding, values, released)
    assert matched is not None
    squared = matched.distances.squared(slice(None))[:, matched.place]
    assert (squared[np.arange(8), cells.id] == 0).all()
    if way.get("round_to") in (5.0, None) and not pa.types.is_date(type):
        assert squared[0, 3] > squared[0, 1] > 0


def test_a_category_is_named_only_if_it_is_an_end() -> None:
    """18 is in the source; the release says 15 to 25."""
    recoder = Interval(round_to=5.0)
    column = Column(
        *("a", "c0", Role.QUASI_IDENTIFIER, pa.int64(), "bigint"),
        scale=Scale.ORDINAL,
        recoder=recoder,
    )
    values = pa.array([18, 25, 30, 33])
    axis = make_axis(column, fit_whole(column, values))
    released = recoder.recode(values, Cells(np.array([0, 0, 1, 1]), 2), Domain())
    assert released.to_pylist() == [{"lower": 15, "upper": 25}, {"lower": 30, "upper": 35}]
    read = read_column(axis, released, released=True)
    assert isinstance(read, CategoryShares)
    assert read.names.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("low", "high", "ranks"),
    [
        (15, 25, (0, 0)),
        (18, 30, (0, 1)),
        (0, 99, (0, 3)),
        (20, 25, (0, 1)),  # between two: both
        (1, 2, (0, 0)),
        (90, 95, (3, 3)),
        (np.nan, np.nan, (None, None)),
    ],
)
def test_ranks_of_ranges(low: float, high: float, ranks: tuple[Any, Any]) -> None:
    column = Column("a", "c0", Role.QUASI_IDENTIFIER, pa.int64(), "bigint", scale=Scale.ORDINAL)
    encoding = fit_whole(column, pa.array([18, 30, 41, 57]))
    found = encoding.within(np.array([low]), np.array([high]))
    assert tuple(None if np.isnan(e[0]) else int(e[0]) for e in found) == ranks


def test_measures_read_rounded_ordinal_numbers() -> None:
    random = np.random.default_rng(0)
    data = pa.table(
        {
            "age": random.integers(18, 90, 300),
            "day": pa.array([date(1990, 1, 1 + int(d)) for d in random.integers(0, 25, 300)]),
            "ill": random.choice(["flu", "gout", "none"], 300),
        }
    )
    ordinal = {"role": "quasi_identifier", "scale": "ordinal"}
    config = {
        "attributes": {"age": ordinal, "day": ordinal, "ill": {"role": "sensitive"}},
        "one_row_per_person": True,
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 3},
                {"type": "l_diversity", "l": 2, "attribute": "ill"},
            ]
        },
        "recode": {
            "columns": {
                "age": {"type": "interval", "round_to": 7},
                "day": {"type": "interval", "round_to": "month"},
            }
        },
        "seed": 1,
        "evaluate": {"measures": ["marginals", "overview", "inference", "linkage", "queries"]},
    }
    found = anonlib.anonymize(data, config).evaluation
    assert found is not None
    figures = [each for its in found.findings.values() for each in its.figures]
    assert [each for each in figures if each.value is None] == []
