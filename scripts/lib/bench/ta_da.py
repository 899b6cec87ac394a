"""The paper's experiment: target-aware partitioning before Mondrian, beside Mondrian alone.

    scripts/bench ta_da [--task classification clustering] [--only bank nursery customer]
                        [--k 20 5 50 ...] [--l 1 2 3] [--seeds 3] [--protocol paper held_out]
                        [--methods raw mondrian ...] [--out out/bench/ta_da] [--tables]

Appends one line of JSON for each run to results.jsonl in the output folder, and continues where an
earlier call stopped; k by k, in the order of --k. Then prints a table of means and standard
deviations over seeds, and of paired differences to Mondrian alone with 95 % intervals, and draws
them (SVG). --tables only prints and draws, from all results of the chosen kind.

Source: TA_DA, section VI (`_ta_da/`). The two protocols of classification answer different
questions. paper: anonymize all rows, then split them; released test rows are then grouped by their
own labels. held_out: test rows are split off before, and stay raw.
"""

import argparse
import json
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import NamedTuple

from _ta_da.plots import draw
from _ta_da.report import differences, means
from _ta_da.results import Key, Result, read
from _ta_da.tables import SOURCES, load
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[3]


class Task(NamedTuple):
    """The module in `_ta_da` whose `run` does it; the protocols it takes, if it takes any; the
    metrics it gives, and the methods there are, the baseline among them."""

    module: str
    protocols: tuple[str, ...]
    metrics: tuple[str, ...]
    methods: tuple[str, ...]


TASKS = {
    "classification": Task(
        "classify",
        ("paper", "held_out"),
        ("accuracy", "f1_macro"),
        ("raw", "mondrian", "target_tree+mondrian", "plain_tree+mondrian"),
    ),
    "clustering": Task(
        "clusters",
        (),
        ("ari", "nmi", "ari_from_raw", "one_hot_ari", "one_hot_ari_from_raw"),
        (
            "raw",
            "mondrian",
            "target_clusters+mondrian",
            "coded_clusters+mondrian",
            "paper_clusters+mondrian",
        ),
    ),
}


def keys(given: argparse.Namespace) -> Iterator[Key]:
    """The runs to be made, in their order; what is raw is so for every k and l."""
    for k, l, seed, task, dataset in product(  # noqa: E741
        given.k, given.l, range(given.seeds), given.task, given.only
    ):
        kind = TASKS[task]
        if l > load(dataset).n_sensitive:
            continue
        for protocol, method in product(kind.protocols or ("",), kind.methods):
            if (protocol in given.protocol or not protocol) and method in given.methods:
                size = (0, 0) if method == "raw" else (k, l)
                yield Key(task, dataset, *size, method, protocol, seed)


def run(key: Key) -> dict[str, float]:
    work = import_module(f"_ta_da.{TASKS[key.task].module}").run
    protocol = (key.protocol,) if key.protocol else ()
    found: dict[str, float] = work(key.dataset, key.k, key.l, key.method, *protocol, key.seed)
    return found


def main() -> None:
    given = arguments()
    path = given.out / "results.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {result.key for result in read(path)}
    if not given.tables:
        for key in dict.fromkeys(keys(given)):
            if key in done:
                continue
            begun = time.process_time()
            with threadpool_limits(1):
                found = run(key)
            seconds = round(time.process_time() - begun, 1)
            line = json.dumps(key._asdict() | found | {"seconds": seconds})
            print(line, flush=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
    results = [result for result in read(path) if chosen(result, given)]
    for task, kind in TASKS.items():
        mine = [result for result in results if result.key.task == task]
        if mine:
            print(means(mine, kind.metrics), differences(mine, kind.metrics), sep="\n\n")
            for picture in draw(mine, kind.metrics, given.out):
                print(picture)


def chosen(result: Result, given: argparse.Namespace) -> bool:
    key = result.key
    return (
        key.task in given.task
        and key.dataset in given.only
        and key.method in given.methods
        and key.protocol in (*given.protocol, "")
        and ((key.k in given.k and key.l in given.l) or key.method == "raw")
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    methods = list(dict.fromkeys(m for task in TASKS.values() for m in task.methods))
    protocols = [*TASKS["classification"].protocols]
    for name, there in (
        ("task", [*TASKS]),
        ("only", [*SOURCES]),
        ("protocol", protocols),
        ("methods", methods),
    ):
        parser.add_argument(f"--{name}", nargs="+", choices=there, default=there, metavar="NAME")
    parser.add_argument("--k", type=int, nargs="+", default=[20, 5, 50, 10, 2, 15, 25])
    parser.add_argument("--l", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/ta_da")
    parser.add_argument(
        "--tables", action="store_true", help="print the results so far, run nothing"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
