"""What all kernels cost for blocks of usual sizes, with ties and mixed types: microseconds of CPU
per row, and multiples of a plain compiled loop over MDAV on as many columns.

    scripts/bench worker [--rows 1000 3000 10000] [--k 10] [--repeat 5]

ties: eight numbers that often repeat. mixed: four numbers and four categories of Adult. nodes:
eight categories of Adult with hierarchies. The target of the first two is of two classes.
"""

import argparse
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from kernels import DATA, mdav_loop, people, seconds
from peel import COLUMNS, FOLDER
from threadpoolctl import threadpool_limits

from anonlib import cells
from anonlib.errors import InputError
from anonlib.hierarchy import read_hierarchy
from anonlib.registry import plugins


def ties(n: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    table = pd.DataFrame(people(n)).rename(columns=str)
    table["target"] = (table["0"] > table["0"].median()).astype(str)
    return table, {"scales": dict.fromkeys(table.columns[:-1], "continuous"), "target": "target"}


def mixed(n: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    numbers = ("age", "education-num", "capital-gain", "hours-per-week")
    names = ("workclass", "marital-status", "race", "sex")
    scales = dict.fromkeys(numbers, "continuous") | dict.fromkeys(names, "nominal")
    table = pd.read_csv(DATA / "adult" / "adult_train.csv.gz", usecols=[*scales, "income"])
    return table.sample(n, random_state=0), {"scales": scales, "target": "income"}


def nodes(n: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    table = pd.read_csv(FOLDER / "adult.csv.gz", sep=";", dtype=str).sample(n, random_state=0)
    given: dict[str, Any] = {"scales": dict.fromkeys(COLUMNS, "nominal")}
    given["hierarchies"] = {
        column: read_hierarchy(FOLDER / f"adult_hierarchy_{column}.csv") for column in COLUMNS
    }
    return table, given


TABLES: tuple[Callable[[int], tuple[pd.DataFrame, dict[str, Any]]], ...] = (ties, mixed, nodes)


def loop_seconds(table: pd.DataFrame, columns: Any, k: int, repeat: int) -> float:
    """CPU seconds of the plain loop; categories are numbers to it."""
    x = np.column_stack([pd.factorize(table[c], sort=True)[0] for c in columns]).astype(float)
    return seconds(lambda: mdav_loop(x, k), repeat)


def find_block(plugin: Any, table: pd.DataFrame, k: int, given: dict[str, Any]) -> Any:
    """The block that the kernel is given."""
    found = []

    def keep(_: Any, block: Any) -> Any:
        found.append(block)
        return np.zeros(block.n, np.int64)

    with mock.patch.object(plugin, "cells", keep):
        cells(table, plugin().type, k, **given)
    return found[0]


def measure(make: Callable[[int], Any], rows: int, k: int, repeat: int) -> None:
    table, given = make(rows)
    unit = loop_seconds(table, given["scales"], k, repeat)
    print(f"{make.__name__}, {rows:,} rows: the loop {1e6 * unit / rows:.2f} us per row")
    for kind, plugin in plugins("kernel").items():
        kernel: Any = plugin()
        try:
            block = find_block(plugin, table, k, given)
        except InputError:
            print(f"    {kind:13} can't cut such columns", flush=True)
            continue
        found = seconds(lambda kernel=kernel, block=block: kernel.cells(block), repeat)
        share = f"{found / unit:7.2f} of the loop"
        print(f"    {kind:13} {1e6 * found / rows:8.2f} us per row  {share}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    with threadpool_limits(1):  # as in Spark's workers; CPU seconds count those of all threads
        for make in TABLES:
            for rows in given.rows:
                measure(make, rows, given.k, given.repeat)


if __name__ == "__main__":
    main()
