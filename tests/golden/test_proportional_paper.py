"""Tables I to III of the paper on proportional representations: six animals.

Figure 1 is a picture; its tree is told by Tables II and III: felidae are R_00 to R_02 (cat, lion,
tiger), canine R_03 and R_04 (dog, and one that the text does not name), cetaceans R_05 and R_06
(dolphin, whale), R_10 to R_12 are these groups, R_20 is mammals. Table IIc has a 1 under R_05 for
canine, too; but in Table III, dolphins (R_05) are 0 at canine (R_11) and 1 at cetaceans (R_12), so
that is a misprint. Shares are cut, not rounded, after two digits there: 2/3 is 0.66.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from anonlib import cells
from anonlib.arrays import Ints
from anonlib.encode import encode
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.recode import Cells, Domain
from anonlib.recode.lca import Lca
from anonlib.recode.proportional import Proportional

RACE = """\
cat;felidae;mammals
lion;felidae;mammals
tiger;felidae;mammals
dog;canine;mammals
wolf;canine;mammals
dolphin;cetaceans;mammals
whale;cetaceans;mammals
"""
#: Table Ia
T = pd.DataFrame(
    {
        "gender": ["M", "F", "F", "M", "M", "F"],
        "race": ["cat", "lion", "dog", "dolphin", "whale", "whale"],
    }
)
#: Table Ib
ANONYMOUS = [("*", "mammals")] * 3 + [("*", "cetaceans")] * 3
BY_HAND = np.array([0, 0, 0, 1, 1, 1])

RELEASED = ["cat", "dog", "felidae", "canine", "mammals"]
TABLE_2 = {
    "one_class": """\
1 0 0 0 0 0 0 0 0 0 0
0 0 0 1 0 0 0 0 0 0 0
0 0 0 0 0 0 0 1 0 0 0
0 0 0 0 0 0 0 0 1 0 0
0 0 0 0 0 0 0 0 0 0 1""",
    "fill_parent": """\
1 0 0 0 0 0 0 1 0 0 1
0 0 0 1 0 0 0 0 1 0 1
0 0 0 0 0 0 0 1 0 0 1
0 0 0 0 0 0 0 0 1 0 1
0 0 0 0 0 0 0 0 0 0 1""",
    "fill_child": """\
1 0 0 0 0 0 0 0 0 0 0
0 0 0 1 0 0 0 0 0 0 0
1 1 1 0 0 0 0 1 0 0 0
0 0 0 1 1 0 0 0 1 0 0
1 1 1 1 1 1 1 1 1 1 1""",  # canine: without the misprint
}
TABLE_3 = """\
0.33 0.66 1 0.33 0.33 0 0.33 0 0 0 0.66 0.33 0 1
0.33 0.66 1 0.33 0.33 0 0.33 0 0 0 0.66 0.33 0 1
0.33 0.66 1 0.33 0.33 0 0.33 0 0 0 0.66 0.33 0 1
0.66 0.33 1 0 0 0 0 0 0.33 0.66 0 0 1 1
0.66 0.33 1 0 0 0 0 0 0.33 0.66 0 0 1 1
0.66 0.33 1 0 0 0 0 0 0.33 0.66 0 0 1 1"""
#: R_00 to R_06, R_10 to R_12, R_20
COLUMNS = [
    *("cat", "lion", "tiger", "dog", "wolf", "dolphin", "whale"),
    *("felidae", "canine", "cetaceans", "mammals"),
]


@pytest.fixture
def trees(tmp_path: Path) -> dict[str, Hierarchy]:
    texts = {"gender": "M;*\nF;*\n", "race": RACE}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    return {name: read_hierarchy(tmp_path / f"{name}.csv") for name in texts}


def numbers(table: str) -> list[list[float]]:
    return [[float(x) for x in line.split()] for line in table.splitlines()]


def recoded(recoder: Any, trees: dict[str, Hierarchy], cell_id: Ints = BY_HAND) -> pa.Table:
    """T in cells, every column recoded."""
    found = Cells(cell_id, int(cell_id.max()) + 1)
    columns = {
        name: recoder.recode(pa.array(T[name]), found, Domain(None, tree)).take(pa.array(cell_id))
        for name, tree in trees.items()
    }
    return pa.table(columns)


def in_order(features: Any, names: tuple[str, ...], column: str, nodes: list[str]) -> Any:
    """The features of a column in the order that the paper has them."""
    places = [names.index(f"{column}={node}") for node in nodes]
    assert len(places) == sum(name.startswith(f"{column}=") for name in names)
    return features.toarray()[:, places]


def test_table_1(trees: dict[str, Hierarchy]) -> None:
    released = recoded(Lca(), trees)
    assert [*zip(*released.to_pydict().values(), strict=True)] == ANONYMOUS


@pytest.mark.parametrize("encoding", TABLE_2)
def test_table_2(encoding: str, trees: dict[str, Hierarchy]) -> None:
    found = encode(pa.table({"race": RELEASED}), {"race": encoding}, trees)
    assert in_order(*found, "race", COLUMNS).tolist() == numbers(TABLE_2[encoding])


def test_table_3(trees: dict[str, Hierarchy]) -> None:
    released = recoded(Proportional(), trees)
    found = encode(released, dict.fromkeys(trees, "proportional"), trees)
    gender = in_order(*found, "gender", ["M", "F", "*"])
    matrix = np.hstack([gender, in_order(*found, "race", COLUMNS)])
    cut = np.floor(100 * matrix + 1e-9) / 100
    assert cut.tolist() == numbers(TABLE_3)
    thirds = np.rint(3 * matrix)
    assert np.allclose(matrix, thirds / 3, rtol=0, atol=1e-15)


def test_formula_1(trees: dict[str, Hierarchy]) -> None:
    """Example 2: M(l1, R_felidae) is 2/3."""
    found = encode(recoded(Proportional(), trees), {"race": "proportional"}, trees)
    assert found.features[0, found.names.index("race=felidae")] == pytest.approx(2 / 3, abs=1e-15)


def lost(released: pa.Table, trees: dict[str, Hierarchy]) -> float:
    """Normalized Lost Leaves Metric, added up over rows and columns."""
    return sum(
        trees[name].tree.loss[trees[name].names.index(value)]
        for name in trees
        for value in released.column(name).to_pylist()
    )


def test_greedy_loses_no_more_than_the_version_of_the_paper(trees: dict[str, Hierarchy]) -> None:
    scales = dict.fromkeys(T.columns, "nominal")
    found = cells(T, kernel="greedy", k=3, scales=scales, hierarchies=trees)
    assert np.bincount(found).tolist() == [3, 3]
    by_hand = lost(recoded(Lca(), trees), trees)
    assert by_hand == pytest.approx(3 * (1 + 1) + 3 * (1 + 1 / 6))
    assert lost(recoded(Lca(), trees, found), trees) <= by_hand
