"""Cost of a release in copies. One copy reads the source, shuffles it by a key and writes Delta, on
the same session in the same run.

    scripts/bench release [--rows 1000000 2000000 5000000] [--kernels mdav mondrian] [--roles light]
        [--partitioners kmeans mondrian target_tree target_clusters controller]
        [--measures moments marginals associations queries '{type: learning, split: after}']

`--roles nodes` releases nodes of nominal columns with 2-diversity, as `downcoding` and `minimality`
attack them. `differencing` compares with a release of the same rows by the same kernel with
another seed.
"""

import argparse
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import yaml
from _spark import next_stage, stages_since
from pyspark.sql import functions as F

import anonlib
from anonlib.progress import Progress
from anonlib.source.generator import EDUCATION_ORDER, generate
from anonlib.spark.session import session

KEPT = [
    *["birth_date", "age", "zip", "sex", "marital_status", "education", "hours", "capital_gain"],
    *["diagnosis", "label"],
]
#: What the quickstart's roles need in addition: identifiers, and a second sensitive column.
MORE = ["name", "national_id", "email", "income"]
#: The folder of the table that `differencing` compares with.
OTHER = "other"
QUICKSTART = Path(__file__).parents[3] / "conf" / "quickstart.yaml"


class Memory:
    """Peak resident memory of the JVM and of the largest Python worker, sampled from /proc."""

    def __init__(self) -> None:
        self.jvm = self.worker = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            for pid, rss in descendants(os.getpid()):
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
                except OSError:
                    continue
                if "java" in command.split(" ")[0]:
                    self.jvm = max(self.jvm, rss)
                elif "pyspark" in command:
                    self.worker = max(self.worker, rss)


def descendants(root: int) -> list[tuple[int, int]]:
    """(pid, resident bytes) of all processes below one."""
    parents, sizes = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                sizes[int(folder.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
                parents[int(folder.name)] = int(fields[1])
            except (OSError, IndexError):
                continue
    found, wanted = [], {root}
    while wanted:
        wanted = {pid for pid, parent in parents.items() if parent in wanted}
        found += [(pid, sizes[pid]) for pid in wanted]
    return found


#: What partitioners need: the controllers are seven groups of ages.
PARAMETERS = {"controller": {"column": "owner"}}


def config(
    source: Path, target: Path, kernel: str, partitioner: str, given: argparse.Namespace
) -> dict[str, Any]:
    other = {
        "type": "differencing",
        "source": {"format": "delta", "path": str(target.parent / OTHER)},
    }
    measures = [other if name == "differencing" else name for name in given.measures]
    quasi = "quasi_identifier"
    continuous = {"role": quasi, "scale": "continuous"}
    nominal = {"role": quasi, "scale": "nominal"}
    return {
        "source": {"format": "parquet", "path": str(source)},
        "attributes": {
            **dict.fromkeys(["birth_date", "age", "hours", "capital_gain"], continuous),
            **dict.fromkeys(["zip", "sex", "marital_status"], nominal),
            "education": {"role": quasi, "scale": "ordinal", "order": list(EDUCATION_ORDER)},
            "diagnosis": {"role": "sensitive"},
            "label": {"role": "target", "public": True},
            "owner": {"role": "drop"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 10}]},
        "partition": {
            "steps": [{"type": partitioner, **PARAMETERS.get(partitioner, {})}],
            "max_rows": given.max_rows,
        },
        **({"evaluate": {"measures": measures}} if measures else {}),
        "kernel": kernel,
        "release": {"path": str(target), "record": str(target.parent / "records")},
        **ROLES[given.roles](),
    }


def node_roles() -> dict[str, Any]:
    """Nominal columns, released as their values or the root."""
    nominal = {"role": "quasi_identifier", "scale": "nominal"}
    kept = ["age", "zip", "sex", "marital_status", "education", "hours"]
    dropped = ["birth_date", "capital_gain", "label", "owner"]
    return {
        "attributes": {
            **dict.fromkeys(kept, nominal),
            **{name: {"role": "drop"} for name in dropped},
            "diagnosis": {"role": "sensitive"},
        },
        "privacy": {"models": [{"type": "k_anonymity", "k": 10}, {"type": "l_diversity", "l": 2}]},
        "recode": {"nominal": "lca"},
    }


def quickstart_roles() -> dict[str, Any]:
    """Unique identifiers, and l-diversity of two columns."""
    raw = yaml.safe_load(QUICKSTART.read_text())
    attributes = {**raw["attributes"], "owner": {"role": "drop"}}
    kept = ("one_row_per_person", "privacy", "recode")
    return {"attributes": attributes, **{section: raw[section] for section in kept}}


#: What each choice of roles changes in the config of `light`.
ROLES = {"light": dict[str, Any], "quickstart": quickstart_roles, "nodes": node_roles}


def release_other(
    source: Path, folder: Path, kernel: str, partitioner: str, given: argparse.Namespace
) -> None:
    """Releases the rows with another seed, by the same kernel, for `differencing`."""
    shutil.rmtree(folder / OTHER, ignore_errors=True)
    plain = argparse.Namespace(**{**vars(given), "measures": []})
    raw = config(source, folder / OTHER, kernel, partitioner, plain)
    anonlib.release(anonlib.parse({**raw, "seed": 1}))


def copy(spark: Any, source: Path, target: Path) -> float:
    """Seconds of one copy."""
    shutil.rmtree(target, ignore_errors=True)
    begun = time.monotonic()
    frame = spark.read.parquet(str(source)).repartition(16, "birth_date")
    frame.write.format("delta").save(str(target))
    return time.monotonic() - begun


def one(
    spark: Any, folder: Path, rows: int, kernel: str, partitioner: str, given: argparse.Namespace
) -> None:
    source, target = folder / f"source-{rows}", folder / "table"
    if not source.exists():
        owner = F.pmod(F.year("birth_date"), F.lit(7)).alias("owner")
        columns = KEPT if given.roles != "quickstart" else [*KEPT, *MORE]
        generate(spark, rows, 1).select(*columns, owner).write.parquet(str(source))
        if not (folder / "copy").exists():
            copy(spark, source, folder / "copy")  # warms up what the first copy would pay for
    if "differencing" in given.measures:
        release_other(source, folder, kernel, partitioner, given)
    before = copy(spark, source, folder / "copy")
    shutil.rmtree(target, ignore_errors=True)
    progress, first = Progress(), next_stage(spark)
    begun = time.monotonic()
    with Memory() as memory:
        parsed = anonlib.parse(config(source, target, kernel, partitioner, given))
        result = anonlib.release(parsed, progress)
    seconds = time.monotonic() - begun
    shuffled = sum(stage.shuffleWriteBytes() for stage in stages_since(spark, first))
    written = sum(stage.outputBytes() for stage in stages_since(spark, first))
    spilled = sum(stage.diskBytesSpilled() for stage in stages_since(spark, first))
    tasks = sum(stage.numCompleteTasks() for stage in stages_since(spark, first))
    unit = (before + copy(spark, source, folder / "copy")) / 2
    shares = "  ".join(f"{name} {s / unit:.2f}" for name, s in progress.seconds.items())
    print(
        f"{rows:>10,} rows  {partitioner:15} {kernel:9} {seconds / unit:5.2f} copies  ({shares})  "
        f"copy {unit:.1f} s  {1e6 * seconds / rows:.2f} us/row  blocks {result.n_blocks}  "
        f"ncp {result.losses['ncp']:.4f}  per row shuffled {shuffled / rows:.0f} B "
        f"spilled {spilled / rows:.0f} B  written {written / rows:.0f} B  tasks {tasks:,}  "
        f"JVM {memory.jvm / 2**20:,.0f} MB  worker {memory.worker / 2**20:,.0f} MB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 2_000_000, 5_000_000])
    parser.add_argument("--kernels", nargs="+", default=["mondrian", "mdav"])
    parser.add_argument("--partitioners", nargs="+", default=["kmeans"])
    parser.add_argument("--roles", choices=[*ROLES], default="light")
    parser.add_argument("--max-rows", type=int, default=10_000)
    parser.add_argument("--measures", type=yaml.safe_load, nargs="*", default=[])
    parser.add_argument("--driver-memory", default="2g")
    given = parser.parse_args()
    spark = session({"spark.driver.memory": given.driver_memory, "spark.master": "local[2]"})
    with tempfile.TemporaryDirectory(prefix="anonlib-bench-") as name:
        folder = Path(name)
        for rows in given.rows:
            for partitioner in given.partitioners:
                for kernel in given.kernels:
                    one(spark, folder, rows, kernel, partitioner, given)
            shutil.rmtree(folder / f"source-{rows}")
    spark.stop()


if __name__ == "__main__":
    main()
