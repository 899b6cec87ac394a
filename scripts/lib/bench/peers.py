"""Adult by anonlib in memory, and by other libraries of Python: seconds, lines of code, and what
anonlib's audit says of each result.

    scripts/bench peers [--k 10] [--l 2] [--runs 3]

The other libraries run in an environment of their own, .venv/peers. Seconds are those of the call,
without imports and without reading the table, the least of all runs, each in a fresh process;
anonlib's kernels are compiled when it is installed. Lines are those of the function below that
makes the result, from the table in pandas. The audit takes every released value as one of a
nominal column.
"""

import argparse
import importlib
import inspect
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).parents[3]
KNOWN = ["age", "sex", "race", "marital-status", "education"]
SECRET = "occupation"


@dataclass(frozen=True)
class Asked:
    """The models' k and l, and the folder of the public tables."""

    k: int
    l: int  # noqa: E741  # its name in the literature
    data: Path


def read_adult(data: Path) -> pd.DataFrame:
    """The complete rows."""
    table = pd.read_csv(data / "adult" / "adult_train.csv.gz", na_values="?").dropna()
    return table[[*KNOWN, SECRET]].reset_index(drop=True)


def anonlib_kernel(table: pd.DataFrame, asked: Asked, kernel: str) -> pd.DataFrame:
    import anonlib

    return anonlib.anonymize(
        table,
        quasi_identifiers=KNOWN,
        sensitive=[SECRET],
        k=asked.k,
        l=asked.l,
        one_row_per_person=True,
        kernel=kernel,
    ).table


def anonypy_mondrian(table: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    from anonypy import Preserver

    kinds = {name: "category" for name in table if name != "age"}
    rows = Preserver(table.astype(kinds), KNOWN, SECRET).anonymize_l_diversity(asked.k, asked.l)
    found = pd.DataFrame(rows).explode(KNOWN)
    return found.loc[found.index.repeat(found["count"])].drop(columns="count")


def anjana_l_diversity(table: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    from anjana.anonymity import l_diversity

    folder = asked.data / "adult_hierarchies" / "arx"
    files = {name: folder / f"adult_hierarchy_{name}.csv" for name in KNOWN}
    trees = {
        name: dict(pd.read_csv(file, sep=";", header=None, dtype=str))
        for name, file in files.items()
    }
    return l_diversity(table.astype({"age": str}), [], KNOWN, SECRET, asked.k, asked.l, 5, trees)


def pycanon_check(table: pd.DataFrame, _: Asked) -> pd.DataFrame:
    """Only counts, as `anonlib.audit` does."""
    from pycanon import anonymity

    anonymity.k_anonymity(table, KNOWN)
    anonymity.l_diversity(table, KNOWN, [SECRET])
    return table


def anonlib_check(table: pd.DataFrame, asked: Asked) -> pd.DataFrame:
    """The same as `pycanon_check`."""
    audit(table, asked)
    return table


#: By the library, an underscore and what of it: what makes a result.
MAKERS: dict[str, Callable[[pd.DataFrame, Asked], pd.DataFrame]] = {
    "anonlib_mdav": partial(anonlib_kernel, kernel="mdav"),
    "anonlib_mondrian": partial(anonlib_kernel, kernel="mondrian"),
    "anonypy_mondrian": anonypy_mondrian,
    "anjana_l_diversity": anjana_l_diversity,
    "anonlib_check": anonlib_check,
    "pycanon_check": pycanon_check,
}


def audit(table: pd.DataFrame, asked: Asked) -> Any:
    import anonlib

    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    others = {name: {"role": "insensitive"} for name in table if name not in (*KNOWN, SECRET)}
    models = [{"type": "k_anonymity", "k": asked.k}, {"type": "l_diversity", "l": asked.l}]
    config = {
        "source": {"format": "dataframe"},
        "attributes": dict.fromkeys(KNOWN, nominal) | {SECRET: {"role": "sensitive"}} | others,
        "one_row_per_person": True,
        "privacy": {"models": models},
        "recode": {"nominal": "mode"},
        "release": {"path": "unused"},
        "seed": 1,
    }
    return anonlib.audit(table, config)


def run_once(name: str, asked: Asked, out: Path) -> None:
    """Makes one result, in this process."""
    maker = MAKERS[name]
    table = read_adult(asked.data)
    importlib.import_module(name.partition("_")[0])
    begun = time.perf_counter()
    found = maker(table, asked)
    seconds = time.perf_counter() - begun
    found.astype(str).to_parquet(out / "found.parquet", index=False)
    (out / "seconds.json").write_text(json.dumps(seconds))


def measure(name: str, args: argparse.Namespace) -> dict[str, Any]:
    own = name.startswith("anonlib")
    python = sys.executable if own else str(ROOT / ".venv" / "peers" / "bin" / "python")
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        given = ["--k", str(args.k), "--l", str(args.l), "--data", str(args.data)]
        for _ in range(args.runs):
            command = [python, __file__, "--once", name, "--out", folder, *given]
            subprocess.run(command, check=True)
            seconds.append(json.loads((Path(folder) / "seconds.json").read_text()))
        found = pd.read_parquet(Path(folder) / "found.parquet")
    maker: Any = MAKERS[name]
    source = inspect.getsource(getattr(maker, "func", maker))
    lines = [line for line in source.splitlines()[1:] if line.strip()]
    report = audit(found, Asked(args.k, args.l, args.data))
    return {
        "what": name,
        "seconds": round(min(seconds), 2),
        "lines": len([line for line in lines if '"""' not in line]),
        "rows": len(found),
        "classes": report.n_classes,
        "audit": "; ".join(
            [f"{v.model} {'holds' if v.holds else 'fails'} ({v.value:g})" for v in report.verdicts]
            + [str(problem) for problem in report.problems]
        ),
    }


def main() -> None:
    from kernels import DATA

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--l", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA)
    args = parser.parse_args()
    for name in MAKERS:
        print(json.dumps(measure(name, args)), flush=True)


def once() -> None:
    parser = argparse.ArgumentParser()
    for flag in ("--once", "--out", "--data"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--k", type=int)
    parser.add_argument("--l", type=int)
    args = parser.parse_args()
    run_once(args.once, Asked(args.k, args.l, Path(args.data)), Path(args.out))


if __name__ == "__main__":
    once() if "--once" in sys.argv else main()
