"""What must hold on the disk after a run that ended in any way. Imports nothing of anonlib: Delta's
log is read by delta-rs, the files by pyarrow, classes are counted by pandas.

The target is the old table, or a new one of the rows of one state of the source, that holds its
models; nothing foreign is gone; no raw value is in what is left.
"""

import hashlib
import json
import stat
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

QUASI = ["wage", "city"]
SENSITIVE = "illness"
K, L = 3, 2


class Broken(AssertionError):
    """The invariant does not hold."""


def require(holds: object, text: str) -> None:
    if not holds:
        raise Broken(text)


@dataclass(frozen=True)
class Table:
    """The table that a reader sees: version (-1: none), files by path with their digest, rows."""

    version: int
    files: Mapping[str, str]
    rows: pd.DataFrame


def read_table(path: Path) -> Table:
    """Reads the table by its log. Every file that the log names must be there as the log has it."""
    if not [*path.glob("_delta_log/*.json")]:
        return Table(-1, {}, pd.DataFrame())
    table = DeltaTable(str(path))
    files, parts = {}, []
    for action in pa.table(table.get_add_actions()).to_pylist():
        file = path / action["path"]
        require(file.is_file(), f"{file} is in the log and not there")
        require(file.stat().st_size == action["size_bytes"], f"{file} has another length")
        part = pq.read_table(file)
        require(action["num_records"] in (None, len(part)), f"{file} has other rows")
        files[action["path"]] = digest(file)
        parts.append(part.to_pandas())
    return Table(table.version(), files, pd.concat(parts) if parts else pd.DataFrame())


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def files_in(folder: Path) -> dict[str, str]:
    """Every file below a folder, by its path, with its digest."""
    return {str(f.relative_to(folder)): digest(f) for f in folder.rglob("*") if f.is_file()}


# --- the target


def is_old(table: Table, before: Table) -> bool:
    return (table.version, table.files) == (before.version, before.files)


def require_promise(rows: pd.DataFrame) -> None:
    """The table holds k-anonymity and l-diversity, counted class by class, and has no column that
    it should not have."""
    found = sorted(rows.columns)
    require(found == sorted([*QUASI, SENSITIVE]), f"the table has the columns {found}")
    classes = rows.groupby(QUASI, dropna=False)
    require(classes.size().min() >= K, "a class has fewer than k rows")
    require(classes[SENSITIVE].nunique().min() >= L, "a class has fewer than l values")


def require_old_or_new(
    table: Table, before: Table, states: Iterable[pd.DataFrame], *, appended: bool
) -> bool:
    """Whether the table is a new one.

    Args:
        table: The table now.
        before: The table before the run.
        states: The rows that the source had at any time, one frame for each time.
        appended: Whether the rows come to those that were there; else they replace them.

    Raises:
        Broken: It is neither.
    """
    if is_old(table, before):
        return False
    require(table.version > before.version, "the table changed without a new version")
    require_promise(table.rows)
    here = illnesses(table.rows)
    if appended:
        kept = before.files.items() <= table.files.items()
        require(kept, "files of earlier batches are not what they were")
        here -= illnesses(before.rows)
    require(
        any(here == illnesses(state) for state in states),
        f"{sum(here.values())} rows are new: not those of any state of the source",
    )
    return True


def illnesses(rows: pd.DataFrame) -> Counter[str]:
    """The sensitive values, which are released as they are."""
    return Counter(rows[SENSITIVE].fillna("missing"))


# --- what else is there


def require_foreign(folder: Path, foreign: Mapping[str, str]) -> None:
    """Files of others are there, as they were."""
    for name, was in foreign.items():
        require((folder / name).is_file(), f"{name}, a file of others, is gone")
        require(digest(folder / name) == was, f"{name}, a file of others, is not what it was")


def require_private(folder: Path) -> None:
    """Nobody else reads what a run leaves beside its target."""
    for work in folder.glob("_*.anonlib"):
        mode = stat.S_IMODE(work.stat().st_mode)
        require(mode == 0o700, f"{work.name}: mode {mode:o}")


def require_tidy(
    out: Path,
    target: Path,
    record: Path,
    foreign: Collection[str],
    table: Table,
    *,
    there_before: bool,
) -> None:
    """After a run that ended well nothing is left but the table, its manifest and its record. Of a
    table that was there before, data files of a run that died while it wrote them are left to
    VACUUM: they have audited rows, and no reader sees them."""
    names = {path.name for path in out.iterdir()} - {name.split("/")[0] for name in foreign}
    names -= {target.name, record.name, "filler"}
    require(not names, f"{sorted(names)} are left beside the target")
    kept = {name.removeprefix(f"{target.name}/") for name in foreign}
    kept |= table.files.keys()
    kept |= {str(Path(name).with_name(f".{Path(name).name}.crc")) for name in kept}
    ours = ("_delta_log", "_anonlib")
    inside = {name for name in files_in(target) if name.split("/")[0] not in ours} - kept
    if there_before:
        inside = {name for name in inside if not Path(name).name.lstrip(".").startswith("part-")}
    require(not inside, f"{sorted(inside)} are in the target, and not in its log")


def require_recorded(target: Path, record: Path, run_id: str, table: Table) -> None:
    """The manifest beside the table is about this run, and so is the private record."""
    manifest = json.loads((target / "_anonlib" / "manifest.json").read_text())
    require(manifest["run_id"] == run_id, "the manifest is that of another run")
    require(manifest["rows_released"] == len(table.rows), "the manifest counts other rows")
    found = json.loads((record / f"{run_id}.json").read_text())
    require(found["outcome"] == "published", f"the record says {found['outcome']}")


def errors_in(text: str) -> list[str]:
    """The lines in which a run says why it ended."""
    return [line for line in text.splitlines() if line.startswith(("error: ", "interrupted: "))]


def require_said(text: str, code: int | None) -> None:
    """A run that failed says why, in one error; `code` is None if it was killed."""
    require("Traceback" not in text, "a traceback was printed")
    n = len(errors_in(text))
    wanted = {None: (0, 1), 0: (0,)}.get(code, (1,))
    require(n in wanted, f"{n} errors were said, with exit code {code}")


# --- raw values


def forms(texts: Iterable[str], numbers: Iterable[int]) -> list[bytes]:
    """How raw values can stand in a file: in two encodings, numbers also in eight bytes."""
    numbers = list(numbers)
    found = [
        form
        for text in [*texts, *map(str, numbers)]
        for form in (text.encode(), text.encode("utf-16-le"))
    ]
    return found + [struct.pack(way, n) for n in numbers for way in ("<q", ">q", "<d", ">d")]


def require_no_raw(folders: Sequence[Path], raw: Sequence[bytes]) -> None:
    """None of the forms is in a file below the folders; of Parquet files, in no decoded value."""
    for folder in folders:
        for path in folder.rglob("*"):
            if not path.is_file():
                continue
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # of a driver that lives
                continue
            if path.suffix == ".parquet" and data[-4:] == b"PAR1":  # else cut off by the fault
                data += str(pq.read_table(path).to_pydict()).encode()
            place = f"{path.relative_to(folder)} below {folder.name}"
            require(not any(form in data for form in raw), f"a raw value is in {place}")
