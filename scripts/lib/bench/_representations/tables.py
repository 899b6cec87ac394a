"""The tables of the experiment, and how they are anonymized and encoded.

Source: proportional representation, section IV.A. Florida's register of voters can't be had: the
table in its place is generated, with its columns and hierarchies of the same sizes, and says
nothing about Florida.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from kernels import DATA

import anonlib
from anonlib.arrays import Ints
from anonlib.encode import encode
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.recode import Cells, Domain
from anonlib.recode.lca import Lca
from anonlib.recode.proportional import Proportional

#: encoding -> the recoder of the columns that it is of, in the paper's order of colours
REPRESENTATIONS: dict[str, Any] = {
    "proportional": Proportional(),
    "fill_parent": Lca(),
    "one_class": Lca(),
    "fill_child": Lca(),
}


@dataclass(frozen=True)
class Table:
    """n rows: the quasi-identifiers as texts, their hierarchies, int64[n] classes to be learned."""

    values: pd.DataFrame
    hierarchies: dict[str, Hierarchy]
    label: Ints

    def tuples(self) -> Ints:
        """int64[n]: the cells of the table as it is, its distinct tuples."""
        return np.asarray(self.values.groupby([*self.values.columns], sort=True).ngroup())

    def cells(self, kernel: str, k: int) -> Ints:
        """int64[n]: the cells of a k-anonymous version."""
        scales = dict.fromkeys(self.values.columns, "nominal")
        trees = self.hierarchies
        return anonlib.cells(self.values, kernel, k, scales=scales, hierarchies=trees)

    def features(self, cell_id: Ints, representation: str) -> Any:
        """csr_matrix[m, f]: the features of the cells."""
        cells = Cells(cell_id, int(cell_id.max()) + 1)
        recoder = REPRESENTATIONS[representation]
        released = {
            name: recoder.recode(pa.array(self.values[name]), cells, Domain(None, tree))
            for name, tree in self.hierarchies.items()
        }
        columns = dict.fromkeys(released, representation)
        return encode(pa.table(released), columns, self.hierarchies).features


def adult() -> Table:
    """Adult's complete rows with ARX's hierarchies; the label is salary-class."""
    folder = DATA / "adult_hierarchies" / "arx"
    values = pd.read_csv(folder / "adult.csv.gz", sep=";", dtype=str)
    label = np.unique(values.pop("salary-class"), return_inverse=True)[1]
    trees = {c: read_hierarchy(folder / f"adult_hierarchy_{c}.csv") for c in values.columns}
    return Table(values, trees, label)


N_VOTERS, N_ZIP_NODES = 30_162, 1165
YEARS = range(1922, 2002)


def voters() -> Table:
    """Invented voters: zip codes of 1165 nodes, gender of 3, race of 9, year of birth of 106; the
    label is a party of 10, which depends on all four."""
    random = np.random.default_rng(0)
    zips = _zips(random)
    texts = {
        "zip": [[z, f"{z[:4]}*", f"{z[:3]}**", "*****"] for z in zips],
        "gender": [[g, "*"] for g in ("F", "M")],
        "race": [[str(r), "*"] for r in (1, 2, 3, 4, 5, 6, 7, 9)],
        "born": [[str(y), _years(y, 4), _years(y, 16), "*"] for y in YEARS],
    }
    popular = random.dirichlet(np.full(len(zips), 1.0))
    place = random.choice(len(zips), N_VOTERS, p=popular)
    gender = random.random(N_VOTERS) < 0.47
    race = random.choice(8, N_VOTERS, p=[0.01, 0.02, 0.13, 0.17, 0.62, 0.01, 0.02, 0.02])
    born = random.triangular(0, 30, len(YEARS), N_VOTERS).astype(np.int64)
    prefix = np.unique([z[:4] for z in zips], return_inverse=True)[1][place]
    # Scores of parties, some for each value of a column; all but three parties are small.
    scores = np.array([0.0] * 3 + [-5.0] * 7) + random.gumbel(size=(N_VOTERS, 10))
    for values, weight in ((prefix, 1.0), (gender, 0.4), (race, 1.2), (born // 10, 1.0)):
        levels = random.normal(size=(int(values.max()) + 1, 10))
        levels -= levels.mean(axis=0)
        scores += weight * levels[values.astype(np.int64)]
    chosen = {"zip": place, "gender": gender.astype(np.int64), "race": race, "born": born}
    columns = {name: [row[0] for row in texts[name]] for name in texts}
    values = pd.DataFrame({n: np.array(columns[n])[chosen[n]] for n in columns})
    return Table(values, {n: _hierarchy(rows) for n, rows in texts.items()}, scores.argmax(axis=1))


def _zips(random: np.random.Generator) -> list[str]:
    """Zip codes from 320 on that have, with their prefixes and the root, N_ZIP_NODES nodes."""
    nodes, zips = {"*****"}, set()
    areas = random.choice(np.arange(3200, 3500), 230, replace=False)
    while len(nodes) < N_ZIP_NODES:
        z = f"{random.choice(areas)}{random.integers(10)}"
        new = {z, f"{z[:4]}*", f"{z[:3]}**"}
        if len(nodes | new) <= N_ZIP_NODES:
            nodes |= new
            zips.add(z)
    return sorted(zips)


def _years(year: int, width: int) -> str:
    first = YEARS[0] + (year - YEARS[0]) // width * width
    return f"{first}-{first + width - 1}"


def _hierarchy(rows: list[list[str]]) -> Hierarchy:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "hierarchy.csv"
        path.write_text("".join(f"{';'.join(row)}\n" for row in rows), encoding="utf-8")
        return read_hierarchy(path)


TABLES: dict[str, Callable[[], Table]] = {"adult": adult, "voters": voters}
