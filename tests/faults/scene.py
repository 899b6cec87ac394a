"""What a run of the harness works on: a source in one of several formats, a target that may be
there already, and files of others."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.orc as orc
import yaml
from deltalake import DeltaTable, write_deltalake

from tests.faults.checker import SENSITIVE, K, L, Table, digest, forms, read_table

Mode = Literal["new", "overwrite", "append"]
MODES: tuple[Mode, ...] = ("new", "overwrite", "append")
FORMATS = ("parquet", "csv", "json", "orc", "delta")
CHANGES = ("rewritten", "replaced", "appended", "truncated", "removed")
N = 240
#: In every identifier, and in no file but the source's.
NAME = "CANARYNAME"


def people(first: int, n: int = N, n_illnesses: int = 5) -> pd.DataFrame:
    """Persons from number `first` on. No two earn the same, and no mean is what somebody earns."""
    at = np.arange(first, first + n)
    wages = np.random.default_rng(first).choice(9 * 10**6, n, replace=False) * 10**4 + 10**10 + 7777
    return pd.DataFrame(
        {
            "name": [f"{NAME}-{i}" for i in at],
            "wage": wages,
            "city": [f"city-{i * i % 7 % 4}" for i in at],
            "illness": [f"illness-{i % n_illnesses}" for i in at],
        }
    )


@dataclass
class Scene:
    """One source, one target.

    Attributes:
        folder: Where all of it is.
        kind: The format of the source.
        mode: What the run does to the target.
        record: The folder of the private record.
        states: The rows that the source has had, one frame for each time.
        foreign: Files of others below `folder`/out, with their digests.
        before: The table before the run.
    """

    folder: Path
    kind: str
    mode: Mode
    record: Path | None = None
    states: list[pd.DataFrame] = field(default_factory=list)
    foreign: dict[str, str] = field(default_factory=dict)
    before: Table = field(default_factory=lambda: Table(-1, {}, pd.DataFrame()))

    @property
    def source(self) -> Path:
        return self.folder / "source"

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def target(self) -> Path:
        return self.out / "table"

    # --- the source

    def write_source(self, frame: pd.DataFrame) -> None:
        """Writes the source anew, in two files."""
        self.source.mkdir(exist_ok=True)
        half = len(frame) // 2
        if self.kind == "delta":
            write_deltalake(str(self.source), frame, mode="overwrite")
        else:
            for number, part in enumerate((frame[:half], frame[half:])):
                write_file(self.kind, self.source / f"part-{number}", part)
        self.note_state()

    def note_state(self) -> None:
        """Notes the rows that the source has now, if it can be read."""
        try:
            self.states.append(read_source(self.kind, self.source))
        except Exception:  # cut off
            self.states.append(pd.DataFrame({SENSITIVE: []}))

    def change(self, how: str, random: Random) -> None:
        """What others do to the source while it is read."""
        other = people(10_000, N, 4)
        if self.kind == "delta" and how in ("rewritten", "replaced", "appended"):
            mode = "append" if how == "appended" else "overwrite"
            write_deltalake(str(self.source), other, mode=mode)
            self.note_state()
            return
        files = self.data_files()
        if how in ("rewritten", "replaced"):
            for number, file in enumerate(files):
                there = self.folder / "new" if how == "replaced" else file
                write_file(self.kind, there, other[number::2])
                there.rename(file)
                self.note_state()
        elif how == "appended":
            write_file(self.kind, self.folder / "new", other)
            (self.folder / "new").rename(self.source / "part-2")
        elif how == "truncated":
            file = random.choice(files)
            os.truncate(file, random.randrange(file.stat().st_size))
        else:
            random.choice(files).unlink()
        self.note_state()

    def data_files(self) -> list[Path]:
        """The files with the source's rows."""
        if self.kind != "delta":
            return sorted(self.source.glob("part-*"))
        actions = pa.table(DeltaTable(str(self.source)).get_add_actions()).to_pylist()
        return [self.source / action["path"] for action in actions]

    def raw(self) -> list[bytes]:
        """Identifiers, and what some persons earn."""
        frames = [people(first) for first in (0, 5000, 10_000)]
        return forms([NAME], [int(w) for frame in frames for w in frame["wage"][:4]])

    # --- the run

    def config(self, run_id: str, first: bool = False) -> str:
        """The file with the config of a run; that of the `first` run makes the table."""
        mode = {"new": "error"}.get(self.mode, self.mode)
        source = {"format": self.kind, "path": str(self.source)}
        wage = {"role": "quasi_identifier", "scale": "continuous"}
        raw: dict[str, Any] = {
            "source": source | ({"options": {"header": "true"}} if self.kind == "csv" else {}),
            "attributes": {
                "name": {"role": "identifier"},
                "wage": wage | ({"type": "bigint"} if self.kind == "csv" else {}),
                "city": {"role": "quasi_identifier", "scale": "nominal"},
                SENSITIVE: {"role": "sensitive"},
            },
            "one_row_per_person": "name",
            "privacy": {
                "models": [
                    {"type": "k_anonymity", "k": K},
                    {"type": "l_diversity", "l": L, "attribute": SENSITIVE},
                ]
            },
            "partition": {"steps": [{"type": "kmeans"}], "max_rows": 100},
            "release": {
                "path": str(self.target),
                "mode": "error" if first else mode,
                "run_id": run_id,
                "acknowledge_overwrite": True,
                "acknowledge_returning": True,
            },
            "seed": 7,
        }
        if self.record is not None:
            raw["release"]["record"] = str(self.record)
        path = self.folder / f"{run_id}.yaml"
        path.write_text(yaml.safe_dump(raw))
        return str(path)

    # --- the target

    def write_target(self) -> None:
        """A table that others made; it is overwritten."""
        rows = pd.DataFrame({"wage": [1.5] * 9, "city": "c", SENSITIVE: ["a", "b", "c"] * 3})
        write_deltalake(str(self.target), rows)

    def note_target(self) -> None:
        self.before = read_table(self.target)

    def plant(self) -> None:
        """Puts files of others beside the target, and into a table that is there."""
        names = ["notes.txt", "table2/part-0.parquet", "_tables/lease-1.json", "table.bak/x.json"]
        if self.before.version >= 0:
            names += ["table/thesis.txt", "table/old/part-9.parquet", "table.private/thesis.json"]
        for name in names:
            path = self.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("years of work")
            self.foreign[name] = digest(path)


def write_file(kind: str, path: Path, frame: pd.DataFrame) -> None:
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "json":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "orc":
        orc.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    else:
        frame.to_parquet(path, index=False)


def read_source(kind: str, folder: Path) -> pd.DataFrame:
    if kind == "delta":
        return DeltaTable(str(folder)).to_pandas()
    reads = {
        "csv": pd.read_csv,
        "json": lambda path: pd.read_json(path, lines=True),
        "orc": pd.read_orc,
        "parquet": pd.read_parquet,
    }
    return pd.concat([reads[kind](path) for path in sorted(folder.glob("part-*"))])
