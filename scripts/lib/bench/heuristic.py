"""The heuristic search of full-domain recoding beside the exact one: its loss and its time, as
multiples of those of the exact search, after some numbers of looks.

    scripts/bench heuristic [--columns 8 16] [--rows 30000] [--looks 100 300 1000 5000]

Adult with ARX's hierarchies, and columns of the census of 1994 and 1995 (KDD), whose values are in
pairs, pairs of pairs, and so on. Lattices that are too large for the exact search are compared with
the first descent of both.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np
import pandas as pd
from kernels import DATA

from anonlib.arrays import GRID
from anonlib.kernels.full_domain.heuristic import HeuristicSearch
from anonlib.kernels.full_domain.search import (
    MOST_NODES,
    HeightLattice,
    LatticeSearch,
    NodeSearch,
)
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.table.block import Block
from tests.arx import NAMES, adult, block_of
from tests.support import halves

COLUMNS = (
    *("sex", "age", "race", "education", "marital_stat", "major_industry_code"),
    *("major_occupation_code", "class_of_worker", "hispanic_origin", "tax_filer_stat"),
    *("full_or_part_time_employment_stat", "detailed_household_summary_in_household"),
    *("num_persons_worked_for_employer", "citizenship", "family_members_under_18"),
    "weeks_worked_in_year",
)
NUMBERS = ("age", "weeks_worked_in_year")


class Descent(LatticeSearch):
    """The first descent of the searches alone."""

    def __init__(self, lattice: HeightLattice):
        NodeSearch.__init__(self, lattice)  # without arrays of all nodes

    def run(self) -> tuple[int, ...]:
        self._descend()
        return self.best

    def _rule_out_below(self, heights, failing) -> None:
        pass

    def _rule_out_above(self, heights) -> None:
        pass


def census(q: int, n: int) -> Block:
    """The distinct rows of n persons and q columns; income is protected."""
    path = DATA / "census_income_kdd" / "census_income_kdd_train.csv.gz"
    table = pd.read_csv(path, dtype=str, keep_default_na=False).sample(n, random_state=0)
    columns = [table[c].astype(int) if c in NUMBERS else table[c] for c in COLUMNS[:q]]
    codes = [np.unique(column, return_inverse=True)[1] for column in (*columns, table["income"])]
    trees = [halves(int(code.max()) + 1) for code in codes[:-1]]
    return block_of(codes, trees, "income")


def cases(block: Block) -> Iterator[tuple[str, Block]]:
    n = int(block.weight.sum())
    plain = replace(block, sensitive=block.sensitive[:, :0], protected=())
    for k, limit in [(5, 0.0), (5, 0.02), (10, 0.1)]:
        case = replace(plain, models=(KAnonymity(k=k),), may_suppress=int(limit * n))
        yield f"k {k:2}     may suppress {limit:4.0%}", case
    models = (KAnonymity(k=10), LDiversity(l=2, attribute=block.protected[0]))
    yield "k 10 l 2 may suppress   2%", replace(block, models=models, may_suppress=int(0.02 * n))


def timed(search: NodeSearch) -> float:
    began = perf_counter()
    search.run()
    return perf_counter() - began


def compare(text: str, case: Block, looks: list[int]) -> None:
    lattice = HeightLattice(case)
    is_small = lattice.n_nodes <= MOST_NODES
    plain = LatticeSearch(lattice) if is_small else Descent(lattice)
    seconds = timed(plain)
    share = GRID / (int(case.weight.sum()) * len(lattice.shape))
    print(
        f"{text}: {'exact' if is_small else 'first descent'} {plain.least * share:.4f}, "
        f"{lattice.n_looks:,} of {lattice.n_nodes:,} nodes in {seconds:.1f} s",
        flush=True,
    )
    for most in looks:
        search = HeuristicSearch(HeightLattice(case), most)
        own = timed(search)
        print(
            f"    {most:6,} looks: {search.least * share:.4f}, "
            f"{search.least / plain.least:.3f} of that loss, in {own:.1f} s"
            f"{f', {own / seconds:.2f} of that time' if is_small else ''}"
            f"{', exact' if search.is_exact else ''}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--looks", type=int, nargs="+", default=[100, 300, 1000, 5000])
    given = parser.parse_args()
    tables = [("Adult", adult(DATA, NAMES))]
    tables += [(f"census, {q} columns", census(q, given.rows)) for q in given.columns]
    for name, block in tables:
        n = int(block.weight.sum())
        print(f"{name}: {n:,} rows, {block.n:,} distinct with the label", flush=True)
        for text, case in cases(block):
            HeuristicSearch(HeightLattice(case), 10).run()  # compiles
            compare(text, case, given.looks)


if __name__ == "__main__":
    main()
