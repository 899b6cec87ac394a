"""The paper's experiment: how well networks learn from a release, by the representation of its
nodes.

    scripts/bench representations [--tables adult voters] [--k 3 4 5 10 ...] [--trained 1 100]
        [--seeds 10] [--kernel greedy] [--results out/bench/representations.jsonl] [--show]
        [--living]

Networks are trained on two thirds of the rows, of the table as it is (1) or of its 100-anonymous
version, in each of the four representations; they are tested on the other rows of k-anonymous
versions of the whole table in each of them (k = 1: as they are). The split is the same for all.
Appends one line of JSON for each test, and continues where an earlier call stopped. Then prints
means and standard deviations over seeds, and draws them (SVG). --show only prints and draws.

Source: proportional representation, section IV, figures 3 (--trained 1) and 4, 5 (100). The table
of voters is invented (`_representations/tables.py`).
"""

import argparse
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from _representations.learn import Experiment
from _representations.report import Key, charts, dead, draw, told
from _representations.tables import REPRESENTATIONS, TABLES
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[3]
K = [1, 3, 4, 5, 10, 20, 50, 100, 250, 500, 1000, 2000, 5000, 10_000, 15_000]


def networks(given: argparse.Namespace) -> Iterator[tuple[int, str, int]]:
    """The training representations and seeds of networks: all representations for a seed, then the
    next seed. On the raw table fill_parent and proportional are the same."""
    for seed, trained, learned in product(range(given.seeds), given.trained, REPRESENTATIONS):
        if trained > 1 or learned == "proportional":
            yield trained, learned, seed


def measure(table: str, given: argparse.Namespace, done: dict[Key, float]) -> None:
    """Trains and tests the networks that the results lack."""
    experiment = Experiment(table, given.kernel)
    for trained, learned, seed in networks(given):
        tests = [
            Key(table, given.kernel, trained, learned, k, name, seed)
            for k, name in product(given.k, REPRESENTATIONS)
        ]
        if not (missing := [key for key in tests if key not in done]):
            continue
        network = experiment.network(trained, learned, seed)
        with given.results.open("a", encoding="utf-8") as file:
            for key in missing:
                done[key] = experiment.score(network, key.k, key.told)
                file.write(json.dumps(key._asdict() | {"score": done[key]}) + "\n")
        print(f"{table}: trained on k = {trained}, {learned}, seed {seed}", flush=True)


def read(path: Path) -> dict[Key, float]:
    """The results in a file; none without the file. An incomplete line is left out."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            fields = json.loads(line)
        except json.JSONDecodeError:
            continue  # the call was killed while it wrote
        score = fields.pop("score")
        found[Key(**fields)] = score
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["adult"], choices=[*TABLES])
    parser.add_argument("--k", type=int, nargs="+", default=K)
    parser.add_argument("--trained", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--kernel", default="greedy")
    parser.add_argument("--results", type=Path, default=ROOT / "out/bench/representations.jsonl")
    parser.add_argument("--show", action="store_true", help="print the results so far, run nothing")
    parser.add_argument("--living", action="store_true", help="show no dead networks (AUC 0.5)")
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    done = read(given.results)
    for table in given.tables:
        if not given.show:
            with threadpool_limits(1):
                measure(table, given, done)
        mine = {key: done[key] for key in done if key[:2] == (table, given.kernel)}
        silent = dead(mine)
        if given.living:
            mine = {k: mine[k] for k in mine if (k.trained, k.learned, k.seed) not in silent}
        if found := charts(mine):
            title = f"{table}, {given.kernel}"
            print(f"\n{title}; {len(silent)} dead networks{told(found)}")
            draw(found, title, given.results.with_name(f"representations_{table}.svg"))


if __name__ == "__main__":
    main()
