"""The tables of the experiment, and how they are anonymized and encoded.

Source: TA_DA, section VI. All columns but the sensitive one and the label are quasi-identifiers;
identifiers and incomplete rows are left out. Categories have codes in the order of their names.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from kernels import DATA

from anonlib.arrays import Bools, Codes, Floats, Ints, snap
from anonlib.kernels.mondrian import Mondrian
from anonlib.partition import Partitioner
from anonlib.partition.chain import cut_blocks
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.table.block import Block, part
from anonlib.table.encoding import mix


class Source(NamedTuple):
    """Where a table is, and its numeric and ordinal columns; all others are nominal."""

    path: str
    separator: str
    numeric: tuple[str, ...]
    sensitive: str
    label: str
    drop: tuple[str, ...] = ()


SOURCES = {
    "bank": Source(
        "bank_marketing/bank-full.csv.gz",
        ";",
        ("age", "balance", "day", "duration", "campaign", "pdays", "previous"),
        "default",
        "y",
    ),
    "nursery": Source("nursery/nursery.csv.gz", ",", (), "social", "class"),
    "customer": Source(
        "customer_segmentation/Train.csv",
        ",",
        ("Age", "Work_Experience", "Family_Size"),
        "Spending_Score",
        "Segmentation",
        ("ID",),
    ),
}


@dataclass(frozen=True)
class Table:
    """n rows of a table.

    numeric: float64[n, p], as they are; nominal: int32[n, q], codes 0..n_categories-1; sensitive
    and label: int32[n], codes 0..n_sensitive-1 and 0..n_classes-1.
    """

    name: str
    numeric: Floats
    nominal: Codes
    n_categories: Ints
    sensitive: Codes
    n_sensitive: int
    label: Codes
    n_classes: int

    @property
    def n(self) -> int:
        return len(self.label)

    def of(self, rows: Ints) -> "Table":
        """The table of some rows."""
        return replace(
            self,
            numeric=self.numeric[rows],
            nominal=self.nominal[rows],
            sensitive=self.sensitive[rows],
            label=self.label[rows],
        )


@cache
def load(name: str) -> Table:
    """A table of `SOURCES`; only its complete rows (an empty field is missing, "unknown" isn't)."""
    source = SOURCES[name]
    frame = pd.read_csv(DATA / source.path, sep=source.separator, dtype=str, keep_default_na=False)
    frame = frame.drop(columns=[*source.drop])
    frame = frame[(frame != "").all(axis=1)]
    others = (*source.numeric, source.sensitive, source.label)
    nominal = [column for column in frame.columns if column not in others]
    codes = {c: np.unique(frame[c], return_inverse=True)[1] for c in [*nominal, *others[-2:]]}
    sensitive, label = codes[source.sensitive], codes[source.label]
    return Table(
        name,
        np.column_stack(
            [np.empty((len(frame), 0)), *(frame[c].astype(float) for c in others[:-2])]
        ),
        np.column_stack([codes[c] for c in nominal]).astype(np.int32),
        np.array([codes[c].max() + 1 for c in nominal]),
        sensitive.astype(np.int32),
        int(sensitive.max()) + 1,
        label.astype(np.int32),
        int(label.max()) + 1,
    )


def controllers(n: int, count: int, seed: int) -> list[Ints]:
    """The rows, ascending, of `count` data controllers of like size, at random."""
    order = np.random.default_rng([seed, count]).permutation(n)
    return [np.sort(rows) for rows in np.array_split(order, count)]


def cells(
    table: Table,
    owners: Sequence[Ints],
    k: int,
    l: int,  # noqa: E741
    steps: Sequence[Partitioner],
    seed: int,
) -> Ints:
    """int64[n], the cell of every row: each controller's rows are partitioned by the steps, each
    block is anonymized by Mondrian."""
    whole = _block(table, k, l)
    found, n_cells = np.empty(table.n, np.int64), 0
    for rows in owners:
        mine = part(whole, rows)
        # Canonical order, and in it a place for each row that does not depend on the file's order.
        keys = [table.sensitive[rows], table.label[rows], mix(mine.numeric, mine.nominal)]
        order = np.lexsort(keys)
        mine, rows = part(mine, order), rows[order]
        place = np.random.default_rng([seed, 1]).permutation(mine.n)
        for block in cut_blocks(mine, steps, mine.n, seed, place):
            cell = Mondrian().cells(part(mine, block))
            found[rows[block]] = n_cells + cell
            n_cells += int(cell.max()) + 1
    return found


def _block(table: Table, k: int, l: int) -> Block:  # noqa: E741
    spread = table.numeric.std(axis=0)
    numeric = snap((table.numeric - table.numeric.mean(axis=0)) / np.where(spread > 0, spread, 1))
    models: tuple[PrivacyModel, ...] = (KAnonymity(k=k),)
    protected = ("sensitive",) if l > 1 else ()
    if protected:
        models += (LDiversity(l=l, attribute="sensitive"),)
    return Block(
        numeric=numeric,
        nominal=table.nominal,
        sensitive=table.sensitive[:, None][:, : len(protected)],
        unit=None,
        widths=np.ptp(numeric, axis=0),
        n_categories=table.n_categories,
        models=models,
        protected=protected,
        target=table.label.astype(np.float64),
        n_classes=table.n_classes,
    )


class Released(NamedTuple):
    """A released table. middle: float64[n, p], the middle of each interval; sets: bool[n, sum of
    n_categories], which categories each set has, column after column; sensitive: bool[n,
    n_sensitive], the one-hot sensitive column, which is released as it is."""

    middle: Floats
    sets: Bools
    sensitive: Bools


def release(table: Table, cell_id: Ints) -> Released:
    """Intervals of numbers and sets of categories, the same in all rows of a cell."""
    m = int(cell_id.max()) + 1
    p = table.numeric.shape[1]
    low, high = np.full((m, p), np.inf), np.full((m, p), -np.inf)
    np.minimum.at(low, cell_id, table.numeric)
    np.maximum.at(high, cell_id, table.numeric)
    sets = np.zeros((m, int(table.n_categories.sum())), np.bool_)
    first = np.cumsum(table.n_categories) - table.n_categories
    sets[cell_id[:, None], table.nominal + first] = True
    sensitive = table.sensitive[:, None] == np.arange(table.n_sensitive)
    return Released((low[cell_id] + high[cell_id]) / 2, sets[cell_id], sensitive)


def raw(table: Table) -> Released:
    """The table as it is, every row a cell of its own."""
    return release(table, np.arange(table.n))


def features(released: Released, like: Released) -> Floats:
    """float64[n, f] for learning: middles standardized as those of `like` are, multi-hot sets, the
    one-hot sensitive column."""
    mean, spread = like.middle.mean(axis=0), like.middle.std(axis=0)
    middle = (released.middle - mean) / np.where(spread > 0, spread, 1)
    return np.column_stack([middle, released.sets, released.sensitive]).astype(np.float64)
