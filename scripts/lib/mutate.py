"""Mutation testing of the code that a release's promise rests on: the content gate, controllers,
the audit, the checks before the commit, the commit and the purge after it, leases, promises, the
ledger and the backlog, keys and privacy models.

    scripts/mutate [--module PATH ...] [--sample N] [--seed S] [--quick] [--again] [--log FILE]

Every mutant (`mutants.py`) is tried against the tests of the default suite that ran its lines, the
quickest first, until one fails. It replaces the code of live functions: for tests without Spark in
a forked process, for those on Spark in one process with their session, where a test that failed
must pass again without the mutant. What can't be replaced alive (the fields of classes, code that
runs in workers) is written into a copy of the checkout and tried in a new process. Equivalent
mutants are named, with a reason, in `mutants.txt`. Exit codes: 0 if 95 % were killed, else 1.
"""

import argparse
import ast
import json
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from fnmatch import fnmatch
from math import sqrt
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutants import Mutant, changed_tree, mutants
from mutate_live import BROKEN, Loop

ROOT = Path(__file__).parents[2]
WANTED = 0.95
#: By files: the tests without Spark, and those on it, that may know them.
TESTS: dict[str, tuple[str, str]] = {
    "anonlib/auditing/*": (
        """unit/test_audit_rules unit/test_audit_tokens unit/test_audit_report
        unit/test_audit_in_memory unit/test_staged_audit unit/test_audit_of_foreign_models
        unit/test_shortfalls unit/test_unions
        unit/test_rows_of_nobody unit/test_types_in_hand unit/test_release_models
        unit/test_records property/test_hierarchical_closeness""",
        """test_audit test_audit_shares test_audit_oracle test_tokens test_look_alikes
        test_audit_in_memory_as_spark""",
    ),
    "anonlib/run/staged_audit.py": (
        "unit/test_staged_audit",
        "test_tokens test_append test_partition_steps",
    ),
    "anonlib/run/publish.py": (
        "unit/test_target unit/test_publication unit/test_history",
        "test_target_changes test_publish test_overwrite test_append test_kill",
    ),
    "anonlib/run/history.py": (
        """unit/test_target unit/test_history unit/test_manifest_reading unit/test_completion
        unit/test_purge unit/test_published_audit""",
        "test_target_changes test_publish test_overwrite test_append test_kill",
    ),
    "anonlib/spark/lease.py": (
        "unit/test_lease unit/test_begun_tables unit/test_interrupted unit/test_completion",
        "test_kill",
    ),
    "anonlib/spark/process.py": ("unit/test_processes unit/test_lease", "test_kill"),
    "anonlib/run/ledger.py": ("unit/test_ledger unit/test_past", "test_persons test_append"),
    "anonlib/config/keys.py": ("unit/test_keys unit/test_config_databases", ""),
    "anonlib/privacy/*": (
        """unit/test_audit_rules unit/test_block unit/test_minimum_k unit/test_promise
        unit/test_privacy_counts
        property/test_privacy_models property/test_joint property/test_hierarchical_closeness""",
        "",
    ),
    "anonlib/content/content_rules.py": (
        "unit/test_content_rules unit/test_chance unit/test_gate_in_memory unit/test_records",
        "test_content",
    ),
    "anonlib/content/gate.py": ("unit/test_gate_in_memory", ""),
    "anonlib/decisions/limits.py": (
        """unit/test_sample_size unit/test_anonymize_refused unit/test_problems_in_memory
        unit/test_evaluation""",
        "",
    ),
    "anonlib/partition/settlement.py": (
        "unit/test_settlement unit/test_controllers_in_memory unit/test_least_extents",
        "test_partition_steps",
    ),
    "anonlib/run/promise.py": (
        "unit/test_promise unit/test_records unit/test_published_audit",
        "test_lasting_promise test_append",
    ),
    "anonlib/run/past.py": (
        "unit/test_past unit/test_published_audit",
        "test_append test_persons test_overwrite test_lasting_promise",
    ),
    "anonlib/run/backlog.py": ("unit/test_backlog_entries unit/test_sealing", "test_backlog"),
    "anonlib/spark/own_files.py": ("", "test_delta_files test_names_like_patterns"),
    "anonlib/run/completion.py": ("unit/test_completion", "test_overwrite test_kill"),
    "anonlib/run/old_version.py": ("unit/test_old_version", "test_overwrite"),
    "anonlib/run/purge.py": ("unit/test_purge", "test_overwrite"),
    "anonlib/run/suppression.py": ("", "test_partition_steps"),
}
MARKS = "not cluster and not airflow and not s3"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__.split("\n\n")[0])
    parser.add_argument("--module", nargs="+", default=[], help="only files that begin so")
    parser.add_argument("--sample", type=int, help="this number, drawn at random; else all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--quick", action="store_true", help="only tests without Spark")
    parser.add_argument("--again", action="store_true", help="only those not killed in the log")
    parser.add_argument("--seconds", type=float, default=300.0, help="of tests for one mutant")
    parser.add_argument("--log", type=Path, default=ROOT / "out/mutate.jsonl", help="the results")
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.job:
        return work(asked.job)
    begun = time.monotonic()
    there = [m for path in files(asked.module) for m in mutants(ROOT, path)]
    reasons = equivalents()
    if not asked.module and (stale := reasons.keys() - {m.name for m in there}):
        print("mutants.txt names mutants that don't exist:", *sorted(stale), sep="\n  ")
        return 1
    n = len(there) if asked.sample is None else min(asked.sample, len(there))
    chosen = sorted(random.Random(asked.seed).sample(there, n), key=lambda m: (m.path, m.number))
    asked.log.parent.mkdir(parents=True, exist_ok=True)
    if not asked.again:
        asked.log.unlink(missing_ok=True)
    tried = [mutant for mutant in chosen if mutant.name not in reasons]
    for stage in ("unit", *["spark"] * (not asked.quick)):
        for group in TESTS:
            killed = {name for name, killer, _ in results(asked.log) if killer}
            todo = [m for m in tried if by_table(m.path) == group and m.name not in killed]
            if todo and tests_of(stage, group):
                try_all(stage, group, todo, asked)
    rate = report(chosen, reasons, asked.log, len(there))
    print(f"{time.monotonic() - begun:.0f} seconds")
    return 0 if rate >= WANTED else 1


def files(wanted: Sequence[str]) -> list[str]:
    """The files with mutants, relative to the checkout."""
    found = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "anonlib").rglob("*.py"))
    return [f for f in found if by_table(f) and (not wanted or f.startswith(tuple(wanted)))]


def by_table(path: str) -> str:
    """The entry of TESTS for a file; empty for other files."""
    return next((pattern for pattern in TESTS if fnmatch(path, pattern)), "")


def tests_of(stage: str, group: str) -> list[str]:
    unit, spark = TESTS[group]
    names = unit.split() if stage == "unit" else [f"spark/{name}" for name in spark.split()]
    return [f"tests/{name}.py" for name in names]


def equivalents() -> dict[str, str]:
    """By mutant: why no test can kill it."""
    found: dict[str, str] = {}
    name = ""
    for line in (Path(__file__).parent / "mutants.txt").read_text("utf-8").splitlines():
        if line.startswith(" "):
            found[name] += line.strip() + " "
        elif line and not line.startswith("#"):
            name = line
            found[name] = ""
    return found


def results(log: Path) -> list[tuple[str, str | None, str]]:
    """Mutant, the test that killed it (empty: none did; None: not tried), and the stage."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [tuple(json.loads(line)) for line in lines]


def note(log: Path, stage: str, mutant: Mutant, killer: str | None) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps([mutant.name, killer, stage]) + "\n")
    if killer is not None:
        state = f"killed by {killer}" if killer else f"survives the {stage} tests"
        print(f"{mutant.path}:{mutant.line}: {mutant.name.partition(' ')[2]}: {state}", flush=True)


def try_all(stage: str, group: str, todo: list[Mutant], asked: argparse.Namespace) -> None:
    """Tries mutants of one group in live processes, and what is not possible there in copies."""
    known, broken, all_of_them = len(results(asked.log)), "", {m.name: m for m in todo}
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        job = Path(folder, "job")
        while todo:
            job.write_bytes(pickle.dumps((stage, group, todo, asked)))
            code = subprocess.run([sys.executable, __file__, "--job", job], check=False).returncode
            done = {name for name, _, _ in results(asked.log)[known:]}
            todo = [mutant for mutant in todo if mutant.name not in done]
            if todo and code != BROKEN:
                raise SystemExit(f"the tests of {group} can't be run: code {code}")
            if todo and todo[0].name == broken:  # twice: whatever comes after it fails
                note(asked.log, stage, todo.pop(0), "the session is broken after it")
            broken = todo[0].name if todo else ""
        parked = [name for name, killer, _ in results(asked.log)[known:] if killer is None]
        copy = Path(folder, "copy")
        for mutant in [all_of_them[name] for name in parked]:
            note(asked.log, stage, mutant, killer_of_copy(stage, mutant, copy))


def work(job: Path) -> int:
    """Tries mutants in this process."""
    stage, group, todo, asked = pickle.loads(job.read_bytes())  # noqa: S301 - our own
    loop = Loop(
        todo,
        lambda mutant, killer: note(asked.log, stage, mutant, killer),
        job.with_name("lines"),
        forked=stage == "unit",
        most=asked.seconds,
    )
    given = [
        *tests_of(stage, group),
        "-q",
        "-m",
        MARKS,
        "-p",
        "no:cacheprovider",
        f"--rootdir={ROOT}",
    ]
    return int(pytest.main(given, plugins=[loop]))


def killer_of_copy(stage: str, mutant: Mutant, copy: Path) -> str:
    """Runs the tests in a copy of the checkout with the mutant; what killed it, or nothing."""
    if not copy.exists():
        for name in ("anonlib", "tests", "scripts", "conf", "jobs"):
            shutil.copytree(ROOT / name, copy / name)
        for file in (*ROOT.glob("*.md"), *ROOT.glob("*.toml")):
            shutil.copy2(file, copy)
    place = copy / mutant.path
    before = place.read_text("utf-8")
    place.write_text(ast.unparse(changed_tree(ROOT, mutant)), "utf-8")
    tests = tests_of(stage, by_table(mutant.path))
    order = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        MARKS,
        "-p",
        "no:cacheprovider",
        *tests,
    ]
    try:
        ended = subprocess.run(
            order, cwd=copy, capture_output=True, text=True, timeout=900, check=False
        )
    except subprocess.TimeoutExpired:
        return "does not end"
    finally:
        place.write_text(before, "utf-8")
    failed = [line for line in ended.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else "does not end well" if ended.returncode else ""


def report(chosen: Sequence[Mutant], reasons: dict[str, str], log: Path, n_all: int) -> float:
    """Prints what was found; returns the share of mutants that were killed."""
    killed = {name for name, killer, _ in results(log) if killer}
    n: dict[str, Counter[str]] = defaultdict(Counter)
    print("\nsurvivors:")
    for mutant in chosen:
        state = "equivalent" if mutant.name in reasons else "survived"
        state = "killed" if mutant.name in killed else state
        n[mutant.path][state] += 1
        if state == "survived":
            print(f"  {mutant.path}:{mutant.line}: {mutant.name.partition(' ')[2]}")
    for path, found in sorted(n.items()):
        print(
            f"{path}: " + ", ".join(f"{found[s]} {s}" for s in ("killed", "survived", "equivalent"))
        )
    total = sum(n.values(), Counter[str]())
    tried = total["killed"] + total["survived"]
    rate = total["killed"] / max(tried, 1)
    print(f"all: {n_all} mutants, {tried} tried, {dict(total)}: {rate:.1%} killed", end="")
    if len(chosen) < n_all:
        low, high = wilson(total["killed"], tried)
        print(f", of all of them between {low:.1%} and {high:.1%} (Wilson, 95 %)", end="")
    print()
    return rate


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share, of which a sample of n has k."""
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * sqrt(k * (n - k) / max(n, 1) + z * z / 4)
    return centre - half, centre + half


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
