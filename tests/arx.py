"""Adult with the hierarchies of ARX's example, for tests and benchmarks of full-domain recoding."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from anonlib.hierarchy import read_hierarchy
from anonlib.hierarchy.tree import Tree
from anonlib.table.block import Block

#: The quasi-identifiers of ARX's example.
NAMES = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass")
NAMES += ("occupation",)


def adult(data: Path, names: Sequence[str]) -> Block:
    """The distinct rows with their multiplicities, without a model; salary-class is protected.
    data: the folder of the public tables."""
    folder = data / "adult_hierarchies" / "arx"
    table = pd.read_csv(folder / "adult.csv.gz", sep=";", dtype=str)
    codes, trees = [], []
    for name in names:
        hierarchy = read_hierarchy(folder / f"adult_hierarchy_{name}.csv")
        places, code = np.unique(hierarchy.places(pa.array(table[name])), return_inverse=True)
        codes.append(code)
        trees.append(hierarchy.over(places, missing=False))
    codes.append(np.unique(table["salary-class"], return_inverse=True)[1])
    return block_of(codes, trees, "salary-class")


def block_of(codes: Sequence[np.ndarray], trees: Sequence[Tree], protected: str) -> Block:
    """The distinct rows of nominal columns, with their multiplicities.

    codes: int[n] for each column; the last one is the protected column.
    """
    rows, weight = np.unique(np.column_stack(codes).astype(np.int32), axis=0, return_counts=True)
    return Block(
        numeric=np.zeros((len(rows), 0)),
        nominal=np.ascontiguousarray(rows[:, :-1]),
        sensitive=np.ascontiguousarray(rows[:, -1:]),
        unit=None,
        widths=np.zeros(0),
        n_categories=np.array([tree.high[-1] for tree in trees]),
        models=(),
        protected=(protected,),
        trees=tuple(trees),
        weight=weight,
    )
