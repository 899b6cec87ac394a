"""Cells of one block that are released with the same values and share persons: one class."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import anonlib
from anonlib.auditing.report import Verdict
from anonlib.auditing.verdicts import advise_equal_cells
from anonlib.errors import AuditError
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.recode import Cells
from anonlib.table.block import Block
from anonlib.worker.unions import merge_failing_unions
from tests.support import audit_spec

CONTINUOUS: dict[str, Any] = {"role": "quasi_identifier", "scale": "continuous"}
#: Two cells of four persons, three with A: alpha is 3/4. They share `z`: together 6/7 have A.
PERSONS, VALUES = ["p1", "p2", "p3", "z", "p4", "p5", "p6", "z"], [*"AAABAAAB"]
#: Two further cells of four persons, half of them with A.
OTHERS, HALVES = [f"b{i}" for i in range(8)], [*"ABABABAB"]
MODELS = [
    {"type": "k_anonymity", "k": 4},
    {"type": "alpha_k", "alpha": 0.75, "attribute": "s"},
]


def release(table: pd.DataFrame, **changes: Any) -> Any:
    quasi = [name for name in table if name not in ("s", "pid")]
    chosen = {
        "attributes": {
            **dict.fromkeys(quasi, CONTINUOUS),
            "s": {"role": "sensitive"},
            "pid": {"role": "drop"},
        },
        "unit": ["pid"],
        "privacy": {"models": MODELS},
        **changes,
    }
    return anonlib.anonymize(table, chosen)


def table() -> pd.DataFrame:
    """The four cells, by x and y."""
    x = [1.0, 2, 3, 4, 101, 102, 103, 104]
    return pd.DataFrame(
        {
            "x": [*x, *x],
            "y": [0.0] * 8 + [1000.0] * 8,
            "pid": [*PERSONS, *OTHERS],
            "s": [*VALUES, *HALVES],
        }
    )


@pytest.mark.parametrize("kernel", ["mdav", "mondrian", "greedy"])
def test_cells_that_differ_in_a_suppressed_column_only(kernel: str) -> None:
    """Without x, the first two cells are one class. They are merged with another cell."""
    found = release(table(), kernel={"type": kernel}, recode={"columns": {"x": "suppress"}})
    assert found.audit.passed
    assert len(found.table) == 16
    apart = release(table(), kernel={"type": kernel}, recode={"columns": {"x": "interval"}})
    assert apart.audit.n_classes == 4


def test_classes_of_cells_of_several_blocks_are_told() -> None:
    """They are not merged: the audit stops the release, and says why."""
    counts, k = AlphaK(alpha=0.5, attribute="s"), KAnonymity(k=2)
    spec = audit_spec(("q", "s"), ("q",), (k, counts), persons="token", token="t")
    failing = Verdict(counts.type, False, 0.6, 0.5, 1, (4,), spec={"type": counts.type})
    advice = advise_equal_cells([failing], spec, 1)
    assert advice.startswith("some cells were released with the same values")
    assert advise_equal_cells([failing], spec, 0) == ""  # each class is one cell
    assert advise_equal_cells([replace(failing, holds=True)], spec, 1) == ""
    assert advise_equal_cells([replace(failing, spec={"type": k.type})], spec, 1) == ""
    assert advise_equal_cells([failing], replace(spec, persons="rows"), 1) == ""


def test_a_release_of_several_blocks_that_is_stopped() -> None:
    """The two cells are in blocks of their own, each with a hundred rows that are far away."""
    x, n = np.array([1.0, 2, 3, 4] * 26), 200
    rows = pd.DataFrame(
        {
            "x": [*x, *(x + 1000)],
            "y": ([0.0] * 4 + [10.0] * 100) * 2,
            "pid": [
                *PERSONS[:4],
                *(f"n{i}" for i in range(n // 2)),
                *PERSONS[4:],
                *(f"m{i}" for i in range(n // 2)),
            ],
            "s": [*VALUES[:4], *"AB" * (n // 4), *VALUES[4:], *"AB" * (n // 4)],
        }
    )
    partition = {"steps": [{"type": "mondrian"}], "max_rows": 104}
    with pytest.raises(AuditError, match="1 class fails; some cells were released"):
        release(rows, partition=partition, recode={"columns": {"x": "suppress"}})
    one = {"steps": [{"type": "single"}]}
    assert release(rows, partition=one, recode={"columns": {"x": "suppress"}}).audit.passed


def make_block(x: list[float], persons: list[int], codes: list[int]) -> Block:
    return Block(
        numeric=np.array(x)[:, None],
        nominal=np.zeros((len(x), 0), np.int32),
        sensitive=np.array(codes, np.int32)[:, None],
        unit=np.array(persons, np.int32),
        widths=np.array([4.0]),
        n_categories=np.zeros(0, np.int64),
        models=(KAnonymity(k=2), AlphaK(alpha=0.6, attribute="s")),
        protected=("s",),
    )


def test_only_unions_that_fail_are_merged() -> None:
    """In the first block, cells 0 and 1 share person 1 and have two of three persons with 0, so
    they merge with cell 2. In the second, they share nobody."""
    x, codes = [0.0, 0, 1, 1, 4, 4], [0, 1, 0, 1, 0, 1]
    first = make_block(x, [0, 1, 2, 1, 3, 4], codes)
    second = make_block(x, [0, 1, 2, 3, 4, 5], codes)
    cells = Cells(np.repeat(np.arange(6), 2), 6, block=np.repeat([0, 1], 3))
    values = {"x": pa.array([[1.0], [1.0], [2.0]] * 2)}
    start = np.array([0, 6])
    merged = merge_failing_unions([first, second], start, cells, values)
    assert merged.id.tolist() == [0] * 6 + [1, 1, 2, 2, 3, 3]
    assert merged.m == 4
    assert merged.block is not None
    assert merged.block.tolist() == [0, 1, 1, 1]
    apart = {"x": pa.array([1.0, 2, 3] * 2)}
    assert merge_failing_unions([first, second], start, cells, apart) is cells
    both = [second, second]
    assert merge_failing_unions(both, start, cells, values) is cells
