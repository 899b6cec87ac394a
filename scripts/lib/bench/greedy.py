"""Greedy on Adult's complete rows with ARX's hierarchies: seconds and loss at the 14 values of k
of the proportional representation paper, and time beside a plain Python version.

    scripts/bench greedy [--k 3 4 5 ...] [--losses nllm ncp entropy] [--plain-rows 5000]
        [--results out/bench/greedy.jsonl]

The benchmark makes the released tuples itself from the hierarchies' files, and counts their sizes
and losses with pandas: nllm, the mean over rows and columns of (leaves under the node - 1) / (all -
1), and ncp, of leaves under the node / all, 0 for one leaf. Resumable: results in the file are not
measured again.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from kernels import DATA
from reference_kernels import greedy_loop

from anonlib.hierarchy import read_hierarchy
from anonlib.kernels.greedy import Greedy
from anonlib.kernels.merge import number_by_first_row
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.block import Block, part
from anonlib.table.encoding import mix

ARX = DATA / "adult_hierarchies" / "arx"
COLUMNS = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
]
KS = [3, 4, 5, 10, 20, 50, 100, 250, 500, 1000, 2000, 5000, 10000, 15000]


def file(column: str) -> Path:
    return ARX / f"adult_hierarchy_{column}.csv"


def block(table: pd.DataFrame, k: int) -> tuple[Block, Any]:
    """The block in canonical order, and the rows in that order."""
    codes, trees = [], []
    for column in COLUMNS:
        hierarchy = read_hierarchy(file(column))
        places = hierarchy.places(pa.array(table[column]))
        found, code = np.unique(places, return_inverse=True)
        codes.append(code)
        trees.append(hierarchy.over(found, missing=False))
    nominal, none = np.column_stack(codes).astype(np.int32), np.zeros((len(table), 0))
    whole = Block(
        numeric=none,
        nominal=nominal,
        sensitive=none.astype(np.int32),
        unit=None,
        widths=np.zeros(0),
        n_categories=nominal.max(axis=0).astype(np.int64) + 1,
        models=(KAnonymity(k=k),),
        trees=tuple(trees),
    )
    order = np.argsort(mix(none, nominal), kind="stable")
    return part(whole, order), order


def released(table: pd.DataFrame, ids: Any) -> tuple[pd.DataFrame, float, float]:
    """The generalized table, its nllm and its ncp."""
    columns, lost, penalty = {}, [], []
    for column in COLUMNS:
        levels = pd.read_csv(file(column), sep=";", header=None, dtype=str)
        above = levels.set_index(0, drop=False).loc[table[column]].reset_index(drop=True)
        common = above.where(above.groupby(ids).transform("nunique") == 1)
        name = common.bfill(axis=1)[0]
        leaves = name.map({n: int((levels == n).any(axis=1).sum()) for n in name.unique()})
        columns[column] = name
        lost.append((leaves - 1).mean() / (len(levels) - 1))
        penalty.append(leaves.where(leaves > 1, 0).mean() / len(levels))
    return pd.DataFrame(columns), float(np.mean(lost)), float(np.mean(penalty))


def measured(table: pd.DataFrame, k: int, loss: str) -> dict[str, Any]:
    whole, order = block(table, k)
    begun = time.process_time()
    ids = Greedy(loss=loss).cells(whole)
    seconds = time.process_time() - begun
    release, nllm, ncp = released(table.iloc[order].reset_index(drop=True), ids)
    smallest = int(release.groupby(COLUMNS).size().min())
    if smallest < k:
        raise SystemExit(f"k = {k}: the release has a class of {smallest} rows")
    n_cells = int(ids.max()) + 1
    return {"seconds": seconds, "cells": n_cells, "smallest": smallest, "nllm": nllm, "ncp": ncp}


def against_plain(table: pd.DataFrame, k: int, rows: int) -> dict[str, Any]:
    """CPU seconds of both on the same rows in one run; their cells compared."""
    some = table.sample(rows, random_state=0)
    whole, _ = block(some, k)
    tuples = whole.tuples
    begun = time.process_time()
    plain = greedy_loop(whole.nominal[tuples.first], tuples.count, whole.trees, k)
    middle = time.process_time()
    ids = Greedy().cells(whole)
    ours = time.process_time() - middle
    if (number_by_first_row(plain[tuples.id]) != ids).any():
        raise SystemExit("the plain version has other cells")
    return {"rows": rows, "tuples": len(tuples.first), "plain": middle - begun, "seconds": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--k", type=int, nargs="+", default=KS)
    parser.add_argument("--losses", nargs="+", default=["nllm", "ncp", "entropy"])
    parser.add_argument("--plain-rows", type=int, default=5000)
    parser.add_argument("--results", type=Path, default=Path("out/bench/greedy.jsonl"))
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    done = {(r["case"], r["k"]): r for r in map(json.loads, lines)}

    def once(case: str, k: int, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if (case, k) not in done:
            done[case, k] = {"case": case, "k": k, **work()}
            with given.results.open("a") as file:
                file.write(json.dumps(done[case, k]) + "\n")
        return done[case, k]

    table = pd.read_csv(ARX / "adult.csv.gz", sep=";", dtype=str)
    Greedy().cells(block(table[:100], 3)[0])  # compiled before the clock starts
    for loss in given.losses:
        for k in given.k:
            r = once(loss, k, lambda k=k, loss=loss: measured(table, k, loss))
            print(
                f"greedy  {loss:8} k {k:6,}  {r['seconds']:6.2f} s  {r['cells']:6,} cells, "
                f"smallest {r['smallest']:6,}  nllm {r['nllm']:.4f}  ncp {r['ncp']:.4f}",
                flush=True,
            )
    r = once(
        f"plain, {given.plain_rows} rows", 10, lambda: against_plain(table, 10, given.plain_rows)
    )
    ratio = f"{r['plain'] / r['seconds']:,.0f} times as fast, the same cells"
    print(
        f"greedy  {r['rows']:,} rows, k 10: plain {r['plain']:.1f} s, ours {r['seconds']:.3f} s:",
        ratio,
    )


if __name__ == "__main__":
    main()
