"""What tasks find of the values of columns, without Spark: all of them together find what one look
at the whole table finds."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.content.content_rules import bound_hashes
from anonlib.run import column_values
from anonlib.run.column_values import _HASH, _N, _NUMBER, _PLACE, ColumnValues, Look
from anonlib.table.hashes import hash_values
from anonlib.text import fold_text

TEXTS = ["Ann", " ann ", "ＡＮＮ", "007", "7", "", "\u200b", "Straße", "STRASSE", "Đặng", None]
NUMBERS = [7.0, -0.5, float("nan"), None, 0.0, 12.0]
TYPES = {"a": pa.string(), "b": pa.float64(), "c": pa.string(), "d": pa.bool_()}


def look_of(share: float) -> Look:
    return Look(("a", "d"), {"a": share, "b": 1.0, "c": 1.0}, (("a", "c"), ("b", "c")), 5)


def found_by_tasks(tasks: Sequence[pa.Table], look: Look, batch: int) -> ColumnValues:
    """What a pass finds whose rows are dealt to tasks, and come in batches."""
    listed = {id: TYPES[id] for id in look.categorical}
    output = pa.schema(
        {_PLACE: pa.int32(), _HASH: pa.int64(), _NUMBER: pa.float64(), _N: pa.int64(), **listed}
    )
    parts = [column_values._look_at(t.to_batches(batch), look, output) for t in tasks]
    every = pa.Table.from_batches([each for part in parts for each in part], output)
    merged = every.group_by([_PLACE, _HASH, *listed]).aggregate([(_NUMBER, "max"), (_N, "sum")])
    merged = merged.rename_columns({f"{_NUMBER}_max": _NUMBER, f"{_N}_sum": _N})
    return column_values._read(merged, look)


def seen_by_people(value: object) -> str | None:
    """A text as the gate compares it."""
    if value is None or value != value:
        return None
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else str(value)
    text = fold_text(str(value))
    return (str(int(text)) if text.isdecimal() else text) or None


def rows() -> st.SearchStrategy[list[tuple[object, ...]]]:
    one = st.tuples(
        st.sampled_from(TEXTS), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.booleans()
    )
    return st.lists(one, min_size=1, max_size=30)


@given(rows(), st.integers(1, 4), st.integers(1, 10), st.sampled_from([1.0, 0.5]))
def test_tasks_find_what_the_table_has(
    given_rows: list[tuple[object, ...]], n_tasks: int, batch: int, share: float
) -> None:
    columns = dict(zip(TYPES, map(list, zip(*given_rows, strict=True)), strict=True))
    table = pa.table({id: pa.array(columns[id], type) for id, type in TYPES.items()})
    tasks = [table.slice(i * 7, 7) for i in range(5)][:n_tasks]
    tasks.append(table.slice(7 * min(n_tasks, 5)))
    look = look_of(share)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_values, "CHUNK_ROWS", 3)
        found = found_by_tasks(tasks, look, batch)
    texts = {id: [*map(seen_by_people, columns[id])] for id in look.shares}
    for id, sketch in found.sketches.items():
        expected = sorted({t for t in texts[id] if t is not None})
        hashes = column_values.number_texts([pa.array(expected, pa.string())], look.key)[0]
        kept = hashes <= bound_hashes(look.shares[id])
        assert sketch.hashes.tolist() == sorted(hashes[kept].tolist())
        numbers = [float(t) if t.lstrip("-").isdecimal() else np.nan for t in expected]
        in_order = np.array(numbers)[kept][np.argsort(hashes[kept])]
        np.testing.assert_array_equal(sketch.numbers, in_order)
        assert sketch.n_present == sum(t is not None for t in texts[id])
    for c, p in look.pairs:
        both = zip(texts[c], texts[p], strict=True)
        assert found.equal[c, p] == sum(x == y and x is not None for x, y in both)
    for id in look.categorical:
        values, hashes = found.categories[id]
        assert set(values.to_pylist()) == {x for x in columns[id] if x is not None}
        assert len(values) == len(set(values.to_pylist()))
        assert hashes.to_pylist() == hash_values(values).tolist()


def test_another_key_keeps_other_values() -> None:
    texts = pa.array([f"person {i}" for i in range(1000)])
    kept = [column_values.number_texts([texts], key)[0] <= bound_hashes(0.1) for key in (1, 2)]
    assert [int(some.sum()) for some in kept] == pytest.approx([100, 100], abs=40)
    assert int((kept[0] & kept[1]).sum()) < 30


def test_a_key_is_not_shown() -> None:
    assert "5" not in repr(look_of(1.0)).split("pairs")[1]


@pytest.mark.parametrize(("rows", "size"), [(4, 10**9), (10**9, 2_000)])
def test_chunks_are_bounded_by_rows_and_by_bytes(
    monkeypatch: pytest.MonkeyPatch, rows: int, size: int
) -> None:
    monkeypatch.setattr(column_values, "CHUNK_ROWS", rows)
    monkeypatch.setattr(column_values, "CHUNK_BYTES", size)
    table = pa.table({"a": ["x" * 500] * 10})
    chunks = [*column_values.chunk_rows(table.to_batches(1))]
    assert [len(chunk) for chunk in chunks] == [4, 4, 2]
