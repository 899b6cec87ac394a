"""What tests of several files share: where the data is, blocks to try kernels on;
and which files begin first."""

import ast
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
import pytest
from hypothesis import strategies as st

from anonlib.arrays import Ints, snap
from anonlib.auditing import AuditSpec
from anonlib.hierarchy.tree import Tree
from anonlib.kernels import Kernel
from anonlib.privacy import PrivacyModel
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.table.block import Block

#: The files that take a minute or more, longest first. Files are dealt out whole, in their order:
#: one of these that began late would keep one process busy when the others have nothing left.
LONG = (
    "tests/cluster/test_standalone.py",
    "tests/s3/test_s3_release.py",
    "tests/cluster/test_yarn.py",
    "tests/airflow/test_airflow_dag.py",
    "tests/faults/test_faults.py",
    "tests/s3/test_s3_drivers.py",
    "tests/airflow/test_airflow_scheduled.py",
    "tests/spark/test_catalog.py",
    "tests/spark/test_tutorial.py",
)


def data_dir() -> Path:
    """The folder of the public tables. Without it the test skips; on CI it fails."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ANONLIB_DATA", beside))
    if not folder.is_dir():
        skip_or_fail("no data: set ANONLIB_DATA to the folder with the public tables")
    return folder


def skip_or_fail(reason: str) -> NoReturn:
    """Skips a test for what the machine lacks; with ANONLIB_NO_SKIPS, as on CI, fails it."""
    if os.environ.get("ANONLIB_NO_SKIPS"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@cache
def parse_source(path: Path) -> ast.Module:
    """A file of Python as a tree, which the tests of all sources share: nobody changes it."""
    return ast.parse(path.read_text("utf-8"))


def processes_of(temporary: Path) -> list[Path]:
    """The folders in /proc of all processes with this folder for temporary files (TMPDIR)."""
    mark, found = f"TMPDIR={temporary}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(process)
    return found


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Path]:
    """A file system of this size. Only root can mount one: else the test skips."""
    place.mkdir(parents=True, exist_ok=True)
    size, mount = f"size={megabytes}m", shutil.which("mount") or "mount"
    done = subprocess.run([mount, "-t", "tmpfs", "-o", size, "tmpfs", place], check=False)
    if done.returncode:
        skip_or_fail("a small file system can be mounted by root only")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


class OneCell(Kernel):
    """A kernel, so that configs need none of the real ones."""

    type: ClassVar[str] = "one_cell"
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def cells(self, block: Block) -> Ints:
        return np.zeros(block.n, np.int64)


def make_block(
    numeric: Any,
    nominal: Any = None,
    *,
    k: int = 2,
    sensitive: Any = None,
    l: int = 2,  # noqa: E741
    unit: Any = None,
    target: Any = None,
    n_classes: int = 0,
) -> Block:
    """A block of k-anonymity; with `sensitive` codes, of distinct l-diversity too. Its target is,
    if none is given, of three classes."""
    x = snap(np.asarray(numeric, np.float64))
    n = len(x)
    codes = np.zeros((n, 0), np.int32) if nominal is None else np.asarray(nominal, np.int32)
    models: tuple[PrivacyModel, ...] = (KAnonymity(k=k),)
    if target is None:
        target, n_classes = np.arange(n) % 3, 3
    if sensitive is not None:
        models += (LDiversity(l=l, attribute="disease"),)
    return Block(
        numeric=x,
        nominal=codes,
        sensitive=np.zeros((n, 0), np.int32)
        if sensitive is None
        else np.asarray(sensitive, np.int32).reshape(n, 1),
        unit=None if unit is None else np.asarray(unit, np.int32),
        widths=np.ptp(x, axis=0) if n else np.zeros(x.shape[1]),
        n_categories=(codes.max(axis=0, initial=0) + 1).astype(np.int64),
        models=models,
        protected=() if sensitive is None else ("disease",),
        target=snap(np.asarray(target, np.float64)),
        n_classes=n_classes,
    )


def audit_spec(*columns_and_models: Any, **more: Any) -> AuditSpec:
    """A spec of rows that are persons, without sets, whose insensitive columns are checked; unless
    `more` says otherwise."""
    usual = {"acknowledge_unique": False, "persons": "rows", "sets": ()}
    return AuditSpec(*columns_and_models, **(usual | more))


def suited(kernel: Any, block: Block) -> Block:
    """The block as the kernel takes it: where it needs hierarchies, of three columns, the numeric
    ones with their ranks as codes and hierarchies that halve them down to pairs; rows in order."""
    if not kernel.needs_hierarchies or block.numeric.shape[1] == 0:
        return block
    kept = max(0, 3 - block.numeric.shape[1])
    columns = [np.unique(x, return_inverse=True)[1] for x in block.numeric.T[:3]]
    codes = np.column_stack([*columns, block.nominal[:, :kept]]).astype(np.int32)
    sizes = np.append(codes.max(axis=0, initial=0)[: len(columns)] + 1, block.n_categories[:kept])
    order = np.lexsort(codes.T)
    return replace(
        block,
        numeric=np.zeros((block.n, 0)),
        widths=np.zeros(0),
        nominal=np.ascontiguousarray(codes[order]),
        n_categories=sizes,
        sensitive=block.sensitive[order],
        unit=None if block.unit is None else block.unit[order],
        target=None if block.target is None else block.target[order],
        trees=(*(halves(int(c)) for c in sizes[: len(columns)]), *[None] * kept)[: len(sizes)],
    )


def halves(c: int) -> Tree:
    """Neighbours in pairs, and so on, up to one root over c codes."""
    low, high, parent, top = [*range(c)], [*range(1, c + 1)], [-1] * c, [*range(c)]
    while len(top) > 1 or len(parent) == c:
        pairs, top = [top[i : i + 2] for i in range(0, len(top), 2)], []
        for pair in pairs:
            top.append(len(parent))
            for node in pair:
                parent[node] = len(parent)
            parent.append(len(parent))
            low.append(low[pair[0]])
            high.append(high[pair[-1]])
    arrays = np.array(parent), np.array(low), np.array(high)
    loss = (arrays[2] - arrays[1] - 1) / max(c - 1, 1)
    loss[-1] = 1.0
    return Tree(*arrays, loss)


@st.composite
def blocks(draw: st.DrawFn, *, max_k: int = 6, max_columns: int = 20, max_rows: int = 300) -> Block:
    """Blocks that hold their models as one cell, in any row order: k rows to hundreds, many ties
    and duplicates, constant columns, only numeric or only nominal ones, sensitive codes, units,
    targets of some classes or numbers."""
    k = draw(st.integers(2, max_k))
    n = draw(st.integers(k, 4 * k + 3) | st.integers(50, max_rows))
    p = draw(st.integers(0, max_columns))
    q = draw(st.integers(0 if p else 1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = random.choice(draw(st.sampled_from([[0], [1], [0, 1, 3], [2**20], [2**30]])), p)
    numeric = random.integers(-spread, spread, (n, p), endpoint=True) * draw(
        st.sampled_from([1.0, 2.0**-20, 2.0**-10])
    )
    nominal = random.integers(
        0, random.integers(1, draw(st.sampled_from([2, 4])), q, endpoint=True), (n, q)
    )
    sensitive = unit = None
    if draw(st.booleans()):
        sensitive = random.integers(-1, draw(st.integers(1, 3)), n, endpoint=True)
        sensitive[random.permutation(n)[:2]] = [0, 1]
    if draw(st.booleans()):
        unit = random.integers(0, draw(st.integers(k, 4 * k)), n)
        unit[random.permutation(n)[:k]] = np.arange(k)
    n_classes = draw(st.sampled_from([0, 1, 2, 5]))
    target = random.integers(0, n_classes, n) if n_classes else random.integers(-9, 9, n) / 4
    return make_block(
        numeric, nominal, k=k, sensitive=sensitive, unit=unit, target=target, n_classes=n_classes
    )
