"""A release by the command line: the seconds from the start of its process to its exit, and of each
stage. The first call of each may compile kernels and is not printed.

    scripts/bench process [--rows 500000] [--repeats 3]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from anonlib.source.generator import EDUCATION_ORDER, generate
from anonlib.spark.session import session

QUICKSTART = Path(__file__).parents[3] / "conf" / "quickstart.yaml"
CONTINUOUS = ["age", "hours", "capital_gain"]
NOMINAL = ["zip", "sex", "marital_status"]


def mondrian(source: Path) -> dict[str, Any]:
    """Seven quasi-identifiers, k = 5 and l = 2, from Parquet."""
    quasi = {"role": "quasi_identifier"}
    return {
        "source": {"format": "parquet", "path": str(source)},
        "attributes": {
            **{name: {**quasi, "scale": "continuous"} for name in CONTINUOUS},
            **{name: {**quasi, "scale": "nominal"} for name in NOMINAL},
            "education": {**quasi, "scale": "ordinal", "order": list(EDUCATION_ORDER)},
            "diagnosis": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}]},
        "partition": {"steps": [{"type": "mondrian"}]},
        "kernel": "mondrian",
    }


def write_people(rows: int, path: Path) -> None:
    spark = session({"spark.master": "local[2]"})
    columns = [*CONTINUOUS, *NOMINAL, "education", "diagnosis"]
    generate(spark, rows, 1).select(*columns).write.parquet(str(path))
    spark.stop()


def run(config: dict[str, Any], folder: Path) -> tuple[float, dict[str, float], float]:
    """Seconds from start to exit, of each stage, and of what is before and after the stages."""
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "anonlib", "release", str(path), "--log-format", "json"]
    begun = time.time()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.time() - begun
    if done.returncode:
        raise SystemExit(done.stderr)
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    stages = {x["stage"]: x["seconds"] for x in lines if x.get("seconds") is not None}
    return seconds, stages, seconds - sum(stages.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anonlib-bench-") as name:
        folder = Path(name)
        write_people(given.rows, folder / "people")
        cases = {
            "quickstart": yaml.safe_load(QUICKSTART.read_text()),
            f"mondrian, {given.rows:,} rows": mondrian(folder / "people"),
        }
        for each in range(given.repeats + 1):
            for case, config in cases.items():
                target = str(folder / f"{case.split(',')[0]}-{each}")
                seconds, stages, rest = run({**config, "release": {"path": target}}, folder)
                if each:
                    shares = "  ".join(f"{stage} {s:.1f}" for stage, s in stages.items())
                    print(f"{case:24} {seconds:5.1f} s  ({shares}  rest {rest:.1f})", flush=True)


if __name__ == "__main__":
    main()
