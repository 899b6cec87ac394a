"""Small tables and what random cells of them are released as, for tests of measures that compare
columns, with each row's released values read slowly and obviously."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from anonlib import registry
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy.files import parse_csv
from anonlib.measure import Findings
from anonlib.measure.fidelity._axes import Axes, Axis
from anonlib.measure.fidelity._tally import ColumnMeasure, TableStates, count
from anonlib.recode import Cells, Domain
from anonlib.table.encoding import Encoding, find_moments, to_float
from anonlib.table.schema import Scale

#: The source never has e, so that its group has d alone.
TOWNS = Hierarchy.of(parse_csv("a;A;*\nb;A;*\nc;B;*\nd;C;*\ne;C;*\n"))
GRADES = ("low", "middle", "high", "top")
DOMAINS = {"grade": Domain(order=GRADES), "town": Domain(hierarchy=TOWNS)}
SCALES = {
    "age": Scale.CONTINUOUS,
    "wage": Scale.CONTINUOUS,
    "grade": Scale.ORDINAL,
    "town": Scale.NOMINAL,
    "sex": Scale.NOMINAL,
}
TYPES = {"age": pa.int64(), "wage": pa.float64(), "income": pa.float64()}
RECODERS: dict[str, list[dict[str, Any]]] = {
    "age": [{"type": "centroid"}, {"type": "median"}],
    "wage": [
        *({"type": "centroid"}, {"type": "suppress"}),
        *({"type": "interval", "form": form} for form in ("struct", "text")),
    ],
    "grade": [
        *({"type": "median"}, {"type": "mode"}, {"type": "suppress"}),
        *({"type": "interval", "form": form} for form in ("struct", "text")),
        *({"type": "set", "form": form} for form in ("array", "text")),
    ],
    "town": [
        *({"type": "mode"}, {"type": "lca"}, {"type": "lca", "level": 1}, {"type": "suppress"}),
        *({"type": "proportional"}, {"type": "set"}),
    ],
    "sex": [{"type": "mode"}, {"type": "lca"}, {"type": "set", "form": "text"}],
}


@dataclass(frozen=True)
class Pair:
    """A source and its release, with columns by name, which are their ids too."""

    source: pa.Table
    released: pa.Table
    view: Axes
    cell: Any
    recoders: Mapping[str, Mapping[str, Any]]

    def findings(self, measure: ColumnMeasure, seed: int = 0) -> Findings:
        """Counted over rows in random order, in batches."""
        random = np.random.default_rng(seed)
        parts = measure.parts(self.view)
        states = []
        for table, released in ((self.source, False), (self.released, True)):
            shuffled = table.take(pa.array(random.permutation(len(table))))
            cuts = np.sort(random.integers(0, len(table) + 1, 2)).tolist()
            bounds = [0, *cuts, len(table)]
            merged: dict[str, Any] = {}
            for low, high in pairwise(bounds):
                states_of_part = count(parts, [shuffled[low:high]], self.view, released=released)
                for name, state in states_of_part.items():
                    known = merged.get(name)
                    merged[name] = state if known is None else parts[name].merge(known, state)
            states.append(merged)
        return measure.findings(TableStates(self.view, *states))

    def rows(self, name: str, *, released: bool) -> list[dict[Any, float]]:
        """Each row's distribution over values that are texts or numbers, None where missing; of
        intervals of a continuous column over (low, high)."""
        values = (self.released if released else self.source).column(name).to_pylist()
        recoder = self.recoders.get(name, {"type": ""})["type"] if released else ""
        return [self._read(name, recoder, value) for value in values]

    def _read(self, name: str, recoder: str, value: Any) -> dict[Any, float]:
        present = [
            each for each in self.source.column(name).unique().to_pylist() if each is not None
        ]
        is_number = self.view[name].is_line
        if recoder == "suppress":
            if is_number:
                return {(min(present, default=0.0), max(present, default=0.0)): 1.0}
            is_missing = SCALES[name] is Scale.NOMINAL and self.source.column(name).null_count
            return _even([*(GRADES if name == "grade" else present), *[None] * bool(is_missing)])
        if value is None:
            return {None: 1.0}
        if recoder == "interval":
            low, high = _listed(value) if isinstance(value, str) else value.values()
            if is_number:
                return {(low, high): 1.0}
            return _even(GRADES[GRADES.index(low) : GRADES.index(high) + 1])
        if recoder == "set":
            return _even(_listed(value) if isinstance(value, str) else value)
        if recoder == "lca":
            missing = [None] * bool(self.source.column(name).null_count and value == "*")
            return _even([*(v for v in present if value in _above(name, v)), *missing])
        if recoder == "proportional":
            names = [*TOWNS.names, None]
            return {names[each["node"]]: each["share"] for each in value}
        return {value: 1.0}


def _above(name: str, value: str) -> Iterator[str]:
    yield value
    if name == "town":
        node = TOWNS.names.index(value)
        yield TOWNS.names[TOWNS.tree.parent[node]]
    yield "*"


def _listed(text: str) -> list[Any]:
    found: list[Any] = json.loads(text)
    return found


def _even(values: Any) -> dict[Any, float]:
    return dict.fromkeys(values, 1 / len(values))


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """1 to 40 rows, some values missing, in random cells, by random recoders."""
    n = draw(st.integers(1, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    holes = draw(st.sampled_from([0.0, 0.3]))
    values = {
        "age": random.integers(20, 20 + draw(st.sampled_from([1, 3, 60])), n).tolist(),
        "wage": (random.integers(0, 4000, n) * 0.5).tolist(),
        "grade": random.choice(GRADES, n).tolist(),
        "town": random.choice(["a", "b", "c", "d"], n).tolist(),
        "sex": random.choice(["f", "m"], n).tolist(),
        "illness": random.choice(["x", "y", "z"], n).tolist(),
        "income": (random.integers(0, 100, n) * 10.0).tolist(),
    }
    arrays = {
        name: pa.array(each, TYPES.get(name, pa.string()), mask=random.random(n) < holes)
        for name, each in values.items()
    }
    chosen = {name: draw(st.sampled_from(options)) for name, options in RECODERS.items()}
    m = int(random.integers(1, n + 1))
    cell = np.unique(random.integers(0, m, n), return_inverse=True)[1]
    return made(pa.table(arrays), cell, chosen)


def made(source: pa.Table, cell: Any, recoders: Mapping[str, Mapping[str, Any]]) -> Pair:
    """Columns that have no recoder are released as they are."""
    cells = Cells(cell, int(cell.max()) + 1)
    released, axes = {}, []
    for name in source.column_names:
        values = source.column(name).combine_chunks()
        axis = Axis(name, name, _encoding(name, values), values.type)
        if name in recoders:
            domain = DOMAINS.get(name, Domain())
            recoder = registry.build("recoder", recoders[name])
            axis = replace(axis, form=recoder.releases, hierarchy=domain.hierarchy)
            values = recoder.recode(values, cells, domain).take(pa.array(cell))
        released[name] = values
        axes.append(axis)
    n = len(source)
    view = Axes(tuple(axes), len(recoders), n, n, least=2, seed=5)
    return Pair(source, pa.table(released), view, cell, recoders)


def _encoding(name: str, values: Any) -> Encoding:
    scale = SCALES.get(name, Scale.CONTINUOUS if name in TYPES else Scale.NOMINAL)
    missing = values.null_count > 0
    if scale is Scale.CONTINUOUS:
        numbers = to_float(values)
        there = numbers[~np.isnan(numbers)]
        low, high = (float(there.min()), float(there.max())) if len(there) else (0.0, 0.0)
        return Encoding(name, scale, missing, *find_moments(numbers, low, high), low, high)
    present = sorted(each for each in values.unique().to_pylist() if each is not None)
    if scale is Scale.NOMINAL:
        return Encoding(name, scale, missing, categories=pa.array(present, pa.string()))
    categories = pa.array(GRADES)
    ranks = np.array([GRADES.index(each) for each in values.drop_null().to_pylist()], np.float64)
    low, high = 0.0, len(GRADES) - 1.0
    return Encoding(name, scale, missing, *find_moments(ranks, low, high), low, high, categories)
