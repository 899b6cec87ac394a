"""The work of one task: rows in, released rows out, in any order, and no data in errors."""

import hmac
import traceback
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from random import Random
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from anonlib import registry
from anonlib.arrays import MISSING, Ints
from anonlib.errors import BlockError, InfeasibleError, Problem
from anonlib.hierarchy.tree import Tree
from anonlib.kernels import Kernel
from anonlib.partition import Below, CutTree, FlatTree, Sample, flatten_tree
from anonlib.recode import Domain
from anonlib.table.block import Block, ClassMoments, Ranks, part
from anonlib.table.columns import BLOCK, CONTROLLER, HASH, HIGH, LOW, POOL, TOKEN
from anonlib.table.encoding import Encoding, find_moments, to_float
from anonlib.table.schema import Scale
from anonlib.worker.task import Task, Totals, anonymize_batches, anonymize_blocks, to_block

MARKER = "MARKER-of-a-raw-value"
K = 3


class Runs(Kernel):
    """Cells of K rows in the block's order."""

    type: ClassVar[str] = "runs"
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def cells(self, block: Block) -> Ints:
        return np.minimum(np.arange(block.n) // K, block.n // K - 1)


class Broken(Runs):
    """Fails with a text that holds data, as the given exception."""

    type: ClassVar[str] = "broken"
    error: str = "ValueError"

    def cells(self, block: Block) -> Ints:
        known: dict[str, type[Exception]] = {"ValueError": ValueError, "KeyError": KeyError}
        try:
            raise LookupError(MARKER)
        except LookupError as cause:
            raise known[self.error](MARKER) from cause


class Strongest(Runs):
    """Cells of as many rows as the block's models ask."""

    type: ClassVar[str] = "strongest"

    def cells(self, block: Block) -> Ints:
        return np.minimum(np.arange(block.n) // block.min_rows, block.n // block.min_rows - 1)


class Infeasible(Runs):
    type: ClassVar[str] = "infeasible"

    def cells(self, block: Block) -> Ints:
        raise InfeasibleError([Problem("block", f"{block.n} rows")])


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """These kernels in place of the real ones, which are tested elsewhere."""
    real = registry.plugins
    mine = {kernel.type: kernel for kernel in (Runs, Broken, Strongest, Infeasible)}

    def plugins(family: str) -> Any:
        return mine if family == "kernel" else real(family)

    monkeypatch.setattr(registry, "plugins", plugins)


def table(n: int = 40, seed: int = 0) -> pa.Table:
    """Ages and towns with ties and nulls, a diagnosis, two person columns, a note."""
    random = Random(seed)
    ages = [random.choice([None, 1.5, 2.0, 40.0, 41.25]) for _ in range(n)]
    towns = [random.choice([None, "a", "b"]) for _ in range(n)]
    columns = {
        "c0": pa.array(ages, pa.float64()),
        "c1": pa.array(towns, pa.string()),
        "c2": pa.array([random.choice(["flu", " FLU", "cold", "?", None]) for _ in range(n)]),
        "c3": pa.array([random.choice(["ab", "a", None]) for _ in range(n)]),
        "c4": pa.array([random.choice(["c", "bc"]) for _ in range(n)]),
        "c5": pa.array([random.randrange(4) for _ in range(n)], pa.int64()),
    }
    rows = list(zip(*(column.to_pylist() for column in columns.values()), strict=True))
    digests = [sha256(repr(row).encode()).digest()[:8] for row in rows]
    hashes = [int.from_bytes(digest, "big", signed=True) for digest in digests]
    columns[HASH] = pa.array(hashes, pa.int64())
    columns[BLOCK] = pa.array([5] * n, pa.int32())
    columns |= {LOW: columns[HASH], HIGH: pa.array([-(2**63) + i for i in range(n)], pa.int64())}
    return pa.table(columns)


def task(source: pa.Table, **changes: Any) -> Task:
    ages = to_float(source.column("c0").combine_chunks())
    present = ages[~np.isnan(ages)]
    low, high = float(present.min()), float(present.max())
    mean, sd = find_moments(ages, low, high)
    types = {"c0": pa.float64(), "c1": pa.string(), "c2": pa.string(), "c5": pa.int64()}
    fields = [pa.field(name, type) for name, type in types.items()]
    base = Task(
        encodings=(
            Encoding("c0", Scale.CONTINUOUS, True, mean, sd, low, high),
            Encoding("c1", Scale.NOMINAL, True, categories=pa.array(["a", "b"])),
        ),
        recoders=(("c0", {"type": "centroid"}, Domain()), ("c1", {"type": "mode"}, Domain())),
        kernel={"type": "runs"},
        models=({"type": "k_anonymity", "k": K},),
        metrics=({"type": "cell_size"}, {"type": "sse"}),
        protected=("c2",),
        missing_tokens=("?", ""),
        unit=(),
        token_key=b"",
        pseudonyms=(),
        pseudonym_key=b"",
        output=pa.schema(fields),
        max_rows=1000,
    )
    return replace(base, **changes)


def with_output(base: Task, name: str, **changes: Any) -> Task:
    output = base.output.insert(0, pa.field(name, pa.string()))
    return replace(base, output=output, **changes)


def rows(released: pa.Table) -> Counter[str]:
    """The released rows as a multiset."""
    return Counter(repr(row) for row in released.to_pylist())


@pytest.mark.parametrize("max_rows", [1000, 10])
def test_rows_in_are_rows_out(max_rows: int) -> None:
    source = table()
    made = task(source, max_rows=max_rows)
    released, totals = anonymize_blocks(source, made)
    assert released.schema == made.output
    assert released.num_rows == totals.n_rows
    assert released.num_rows == source.num_rows
    # What is not recoded is what it was, in the same rows.
    kept = ["c2", "c5"]
    assert rows(released.select(kept)) == rows(source.select(kept))
    classes = Counter(repr(row) for row in released.select(["c0", "c1"]).to_pylist())
    assert min(classes.values()) >= K


@pytest.mark.parametrize("max_rows", [1000, 10])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(seed: int, max_rows: int) -> None:
    source = table(seed=seed)
    made = task(source, max_rows=max_rows, unit=("c3", "c4"), token_key=b"t" * 32)
    made = with_output(made, TOKEN)
    expected = rows(anonymize_blocks(source, made)[0])
    for turn in range(4):
        order = list(range(source.num_rows))
        Random(turn).shuffle(order)
        shuffled = source.take(pa.array(order))
        chunked = pa.concat_tables([shuffled.slice(0, 7), shuffled.slice(7)])
        assert rows(anonymize_blocks(chunked, made)[0]) == expected


def with_blocks(source: pa.Table, blocks: list[int]) -> pa.Table:
    return source.set_column(source.column_names.index(BLOCK), BLOCK, pa.array(blocks, pa.int32()))


@pytest.mark.parametrize("restores", [False, True])
@pytest.mark.parametrize("max_rows", [1000, 10])
def test_blocks_of_one_task_are_anonymized_apart(max_rows: int, restores: bool) -> None:
    """Together, in any order of their rows, they give the rows and figures of each by itself."""
    random = Random(1)
    source = with_blocks(table(90), [random.choice([9, 2, 4]) for _ in range(90)])
    metrics = tuple({"type": name} for name in registry.plugins("metric"))
    made = task(source, metrics=metrics, max_rows=max_rows, unit=("c3", "c4"), token_key=b"t" * 32)
    ages = ("c0", {"type": "centroid", "restore_variance": restores}, Domain())
    made = with_output(made, TOKEN, recoders=(ages, made.recoders[1]))
    blocks = source.column(BLOCK).to_pylist()
    each = [
        anonymize_blocks(source.filter(pa.array([b == block for b in blocks])), made)
        for block in (2, 4, 9)
    ]
    together, totals = anonymize_blocks(source, made)
    assert rows(together) == sum((rows(released) for released, _ in each), Counter())
    of_each = [own for _, own in each]
    assert (totals.block, totals.n_blocks) == (2, 3)
    assert [own.n_blocks for own in of_each] == [1, 1, 1]
    assert totals.n_rows == sum(own.n_rows for own in of_each)
    assert totals.n_cells == sum(own.n_cells for own in of_each)
    for i, spec in enumerate(metrics):
        metric = registry.build("metric", spec)
        first, second, third = (own.states[i] for own in of_each)
        merged = metric.merge(metric.merge(first, second), third)
        np.testing.assert_allclose(totals.states[i], merged, rtol=1e-12)


def test_each_block_holds_the_models_of_its_controller() -> None:
    """A kernel that knows only the block's own models: none of another block is asked."""
    source = with_blocks(table(60), [0] * 20 + [1] * 20 + [2] * 20)
    controller = pa.array([7] * 20 + [8] * 20 + [7] * 20, pa.int32())
    source = source.append_column(CONTROLLER, controller)
    own = {8: ({"type": "k_anonymity", "k": 11},)}
    made = task(source, own=own, kernel={"type": "strongest"})
    assert anonymize_blocks(source, made)[1].n_cells == 20 // K + 1 + 20 // K


@pytest.mark.parametrize(
    ("sizes", "pools", "expected"),
    [
        ([10, 10, 10], [0, 0, 1], [0, 1, 2]),  # none fails
        ([10, 2, 10], [0, 0, 1], [0, 0, 2]),  # the only other one of its pool
        ([2, 1, 10], [0, 0, 1], [0, 0, 2]),
        ([2, 10, 1, 2, 4], [0, 0, 1, 1, 1], [0, 0, 2, 2, 4]),
        ([2, 10, 10], [0, 1, 1], None),  # alone in its pool
    ],
)
def test_blocks_are_merged_within_their_pool(
    sizes: list[int], pools: list[int], expected: list[int] | None
) -> None:
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    source = with_blocks(table(len(blocks)), blocks.tolist())
    source = source.set_column(0, "c0", pa.array(blocks * 1.0))
    made = task(source, pools=np.array(pools))
    released, totals = anonymize_blocks(source, made)
    assert totals.n_rows == len(blocks)
    if expected is None:
        assert totals.failed
        assert released.num_rows == 0
        return
    assert not totals.failed
    merged = np.array(expected)[blocks]
    apart, same = anonymize_blocks(with_blocks(source, merged.tolist()), task(source))
    assert rows(released) == rows(apart)
    assert (totals.n_blocks, totals.n_cells) == (len({*expected}), same.n_cells)
    assert (totals.low, totals.high) == (same.low, same.high)


def stump(threshold: float) -> FlatTree:
    """A forest of one cut of the ages, as tasks encode them."""
    ends = np.array([-1], np.int32), np.array([-2], np.int32), np.zeros(1, np.int32)
    cuts = (Below(0, threshold),)
    block, _ = to_block(table(), task(table()))
    return flatten_tree(CutTree(cuts, *ends), Sample(block, np.arange(block.n), 1.0))


def with_pools(source: pa.Table, pools: list[int]) -> pa.Table:
    return source.drop_columns([BLOCK]).append_column(POOL, pa.array(pools, pa.int32()))


def test_rows_with_pools_get_their_blocks() -> None:
    """In any order, they are released as rows that come with blocks."""
    source = table(60)
    first = to_block(source.take([0]), task(source))[0].numeric[0, 0]
    block, ordered = to_block(source, task(source))
    side = (block.numeric[:, 0] >= first).astype(int)
    assert 0 < side.sum() < 60
    made = task(source, pools=np.array([1, 0]), tree=stump(first))
    expected, totals = anonymize_blocks(with_blocks(ordered, side.tolist()), made)
    for order in (np.arange(60), np.random.default_rng(0).permutation(60)):
        sent = with_pools(ordered, (1 - side).tolist()).take(pa.array(order))
        released, own = anonymize_blocks(sent, made)
        assert released.to_pylist() == expected.to_pylist()
        assert (own.n_blocks, own.n_cells) == (2, totals.n_cells)


def test_a_row_of_another_pool_stops_the_task() -> None:
    """Other rows of its leaf may be in another task, and are anonymized there without it."""
    source = table(60)
    block, ordered = to_block(source, task(source))
    first = float(np.median(block.numeric[:, 0]))
    pools = (block.numeric[:, 0] >= first).astype(int)
    made = task(source, pools=np.array([0, 1]), tree=stump(first))
    assert anonymize_blocks(with_pools(ordered, pools.tolist()), made)[1].n_blocks == 2
    for row in (0, 59):
        changed = pools.copy()
        changed[row] = 1 - changed[row]
        with pytest.raises(BlockError, match="Spark sent rows to another task than the plan says"):
            anonymize_blocks(with_pools(ordered, changed.tolist()), made)


def test_batches_of_a_partition() -> None:
    """Empty ones are no block; a partition without rows gives none."""
    source = table(40)
    made = task(source)
    batches = [source.slice(0, 0).to_batches(), source.to_batches(max_chunksize=7)]
    told: list[Totals] = []
    found = anonymize_batches([batch for part in batches for batch in part], made, told.append)
    assert rows(pa.Table.from_batches(found)) == rows(anonymize_blocks(source, made)[0])
    assert [each.n_rows for each in told] == [40]
    none = pa.Table.to_batches(source.slice(0, 0))
    assert [*anonymize_batches(none, made, told.append)] == []
    assert len(told) == 1


def test_the_totals_of_a_block() -> None:
    source = table()
    totals = anonymize_blocks(source, task(source))[1]
    assert (totals.block, totals.n_rows, totals.n_cells) == (5, 40, 40 // K)
    assert totals.states[0].tolist() == [40.0, 40 // K]
    assert len(totals.states) == 2


def test_the_totals_sum_the_hashes_of_the_rows() -> None:
    """Modulo 2**64, as the digest of the scan does."""
    source = table()
    totals = anonymize_blocks(source, task(source))[1]
    for found, half in ((totals.low, LOW), (totals.high, HIGH)):
        assert found % 2**64 == sum(source.column(half).to_pylist()) % 2**64


def test_only_named_columns_come_out() -> None:
    """Neither the hash, the block nor the person's columns."""
    source = table()
    made = task(source, unit=("c3", "c4"), token_key=b"k")
    assert anonymize_blocks(source, made)[0].column_names == ["c0", "c1", "c2", "c5"]


def test_block_is_in_canonical_order() -> None:
    source = table()
    block, ordered = to_block(source, task(source, unit=("c3",)))
    assert block.n == 40
    assert len(block.tuples.first) == len(set(zip(*source.select(["c0", "c1"]), strict=True)))
    for i, (age, town, value, person) in enumerate(
        zip(*(ordered.column(c).to_pylist() for c in ("c0", "c1", "c2", "c3")), strict=True)
    ):
        assert block.numeric[i, 1] == (age is None)
        assert block.nominal[i, 0] == {"a": 0, "b": 1, None: 2}[town]
        assert (block.sensitive[i, 0] == MISSING) == (value in (None, "?"))
        assert block.unit is not None
        assert (block.unit[i] == MISSING) == (person is None)
    assert block.n_categories.tolist() == [3]
    assert len(block.widths) == block.numeric.shape[1] == 2
    assert block.protected == ("c2",)
    for array in (block.numeric, block.nominal, block.sensitive):
        assert array.flags.c_contiguous


def test_ranks_and_hierarchies_reach_the_block() -> None:
    tree = Tree(np.full(4, 3), np.array([0, 1, 2, 0]), np.array([1, 2, 3, 3]), np.eye(4)[3])
    made = task(table())
    ages, other = made.encodings
    sizes = Encoding("c5", Scale.ORDINAL, False, 1.0, 1.0, 0.0, 2.0, pa.array([0, 1, 2]))
    encodings = (ages, replace(other, tree=tree), sizes)
    source = table().set_column(
        table().column_names.index("c5"), "c5", pa.array(np.arange(table().num_rows) % 3)
    )
    block, _ = to_block(source, replace(made, encodings=encodings))
    assert block.ranks == (None, None, Ranks(3, -1.0, 1.0))
    assert block.trees == (tree,)


@pytest.mark.parametrize(
    ("encoding", "n_classes"),
    [
        (Encoding("c2", Scale.NOMINAL, True, categories=pa.array([" FLU", "?", "cold", "flu"])), 5),
        (Encoding("c5", Scale.CONTINUOUS, False, 1.5, 0.5, 0.0, 3.0), 0),
    ],
)
def test_target_is_in_the_rows_order(encoding: Encoding, n_classes: int) -> None:
    source = table()
    block, ordered = to_block(source, task(source, target=encoding))
    assert block.n_classes == n_classes
    codes = {" FLU": 0.0, "?": 1.0, "cold": 2.0, "flu": 3.0, None: 4.0}
    values = ordered.column(encoding.id).to_pylist()
    expected = [codes[v] if n_classes else (v - 1.5) / 0.5 for v in values]
    assert block.target is not None
    assert block.target.tolist() == expected
    for start, count in zip(block.tuples.first, block.tuples.count, strict=True):
        assert (np.diff(block.target[start : start + count]) >= 0).all()
    half = part(block, np.arange(0, 40, 2))
    assert half.target is not None
    assert half.target.tolist() == expected[::2]


def test_missing_numbers_of_a_target_are_at_the_mean() -> None:
    source = table()
    ages = source.column("c0").to_pylist()
    odd = pa.array([float("nan") if age == 2.0 else age for age in ages])
    encoding = Encoding("c0", Scale.CONTINUOUS, True, 10.0, 2.0, 1.5, 41.25)
    expected = [0.0 if age in (None, 2.0) else (age - 10.0) / 2.0 for age in ages]
    assert encoding.target(odd).tolist() == expected
    assert encoding.n_classes == 0


def test_moments_of_the_classes_reach_the_block() -> None:
    source = table()
    zeros = np.zeros((2, 2), object)
    moments = ClassMoments(zeros[0], zeros, zeros)
    assert to_block(source, task(source, moments=moments))[0].moments is moments


@pytest.mark.parametrize("error", ["ValueError", "KeyError"])
def test_errors_hold_no_data(error: str) -> None:
    source = table()
    made = task(source, kernel={"type": "broken", "error": error})
    with pytest.raises(BlockError) as caught:
        anonymize_blocks(source, made)
    assert str(caught.value) == f"kernel broken failed with {error}"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert MARKER not in "".join(traceback.format_exception(caught.value))


def test_errors_of_arrow_hold_no_data() -> None:
    """A column that is not what the task says: Arrow's own text shows the value."""
    source = table()
    bad = source.set_column(0, "c0", pa.array([MARKER] * 40))
    with pytest.raises(BlockError) as caught:
        anonymize_blocks(bad, task(source))
    assert MARKER not in "".join(traceback.format_exception(caught.value))
    unseen = source.set_column(1, "c1", pa.array([MARKER] * 40))
    with pytest.raises(BlockError, match="the source has changed") as caught:
        anonymize_blocks(unseen, task(source))
    assert MARKER not in "".join(traceback.format_exception(caught.value))


def test_errors_of_ours_keep_their_text() -> None:
    source = table()
    with pytest.raises(BlockError, match="block: 40 rows") as caught:
        anonymize_blocks(source, task(source, kernel={"type": "infeasible"}))
    assert caught.value.__context__ is None


def test_keys_are_not_shown() -> None:
    keys = dict.fromkeys(("token_key", "pseudonym_key", "link_key"), MARKER.encode())
    assert MARKER not in repr(task(table(), **keys))


def test_pseudonyms_are_hmacs() -> None:
    source = table()
    key = bytes(range(32))
    made = with_output(task(source), "c3", pseudonyms=("c3",), pseudonym_key=key)
    found = anonymize_blocks(source, made)[0]
    expected = {
        text: hmac.new(key, f"{len(text)}:{text}".encode(), sha256).hexdigest()
        for text in ("ab", "a")
    }
    assert set(found.column("c3").to_pylist()) == {None, *expected.values()}
    counts = Counter(source.column("c3").to_pylist())
    released = Counter(found.column("c3").to_pylist())
    assert released[None] == counts[None]
    assert released[expected["ab"]] == counts["ab"]
    other = replace(made, pseudonym_key=b"another key")
    assert not set(anonymize_blocks(source, other)[0].column("c3").to_pylist()) & set(
        expected.values()
    )


def test_pseudonyms_of_numbers() -> None:
    source = table()
    made = task(source, pseudonyms=("c5",), pseudonym_key=b"key")
    output = made.output.set(3, pa.field("c5", pa.string()))
    found = anonymize_blocks(source, replace(made, output=output))[0].column("c5").to_pylist()
    assert hmac.new(b"key", b"1:2", sha256).hexdigest() in found


def tokens(*columns: list[Any]) -> list[Any]:
    """The tokens of three rows or more that are one cell, in the order of the rows."""
    source = table(len(columns[0]))
    for place, values in zip((3, 4), columns, strict=False):
        source = source.set_column(place, f"c{place}", pa.array(values))
    unit = ("c3", "c4")[: len(columns)]
    source = source.set_column(5, "c5", pa.array(range(len(columns[0])), pa.int64()))
    made = with_output(task(table()), TOKEN, unit=unit, token_key=b"token key")
    found = anonymize_blocks(source, made)[0]
    order = found.column("c5").to_pylist()
    return [t for _, t in sorted(zip(order, found.column(TOKEN).to_pylist(), strict=True))]


def test_tokens_tell_persons_apart() -> None:
    a, b, c, d, e = tokens(["ab", "a", "ab", None, "1:a"], ["c", "bc", "c", "c", "c"])
    assert a == c
    assert a != b  # the same text end to end
    assert d is None
    assert len({a, b, e}) == 3
    assert a == hmac.new(b"token key", b"2:ab1:c", sha256).hexdigest()


def test_tokens_of_floats_have_one_zero() -> None:
    a, b, c = tokens([0.0, -0.0, 1.0])
    assert a == b != c
    source = table(3).set_column(3, "c3", pa.array([0.0, -0.0, 1.0]))
    block, _ = to_block(source, task(table(), unit=("c3",)))
    assert block.unit is not None
    assert len(set(block.unit.tolist())) == 2


def test_units_of_two_columns_are_pairs() -> None:
    source = table(200)
    block, ordered = to_block(source, task(source, unit=("c3", "c4")))
    pairs = list(zip(*(ordered.column(c).to_pylist() for c in ("c3", "c4")), strict=True))
    assert block.unit is not None
    known: dict[int, Any] = {}
    for code, pair in zip(block.unit.tolist(), pairs, strict=True):
        if None in pair:
            assert code == MISSING
        else:
            assert known.setdefault(code, pair) == pair
    assert len(known) == 4
