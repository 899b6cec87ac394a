"""Plug-ins that break their contracts: each is stopped where it is called, with an error that names
it and holds no value."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import anonlib
from anonlib import registry
from anonlib.arrays import Ints
from anonlib.errors import AnonlibError, BlockError, ConfigError, ContractError, Problem
from anonlib.kernels import Kernel, KernelResult
from anonlib.loss import Metric, ReleasedBlock
from anonlib.measure import Figure, Findings, Measure, Series
from anonlib.partition import (
    Among,
    Below,
    Grower,
    Leaf,
    Plane,
    Sample,
    TaskPartitioner,
    TreePartitioner,
)
from anonlib.partition.chain import cut_blocks, cut_parts, grow
from anonlib.privacy import Bools, CellCounts, PrivacyModel
from anonlib.recode import Cells, Column, Domain, Recoder
from anonlib.table.block import Block
from anonlib.table.schema import Scale
from anonlib.worker.contracts import check_cells, recode_column, search_cells
from tests.support import make_block

MARKER = "MARKER-of-a-raw-value"
K = 5

#: What the plug-ins below do, by the name of their behaviour.
DEEDS: dict[str, Callable[..., Any]] = {}


class Panic(BaseException):
    """As Rust's panics: no Exception."""


class Odd(Kernel):
    """Does as it is told."""

    type: ClassVar[str] = "odd"
    cost: ClassVar[str] = "O(1)"
    reference: ClassVar[str] = "a test"
    deed: str = "good"

    def cells(self, block: Block) -> Ints:
        return DEEDS[self.deed](block, in_rows(block))  # type: ignore[no-any-return]


class OddSearch(Odd):
    """May leave rows out, and finds levels."""

    type: ClassVar[str] = "odd_search"
    suppresses: ClassVar[bool] = True

    def find(self, block: Block) -> KernelResult:
        return DEEDS[self.deed](block, np.zeros(block.n, np.int64))  # type: ignore[no-any-return]


class OddRecoder(Recoder):
    """Does as it is told, with the first value of each cell."""

    type: ClassVar[str] = "odd_recoder"
    scales: ClassVar[frozenset[Scale]] = frozenset(Scale)
    deed: str = "good"

    def output(self, column: pa.DataType) -> pa.DataType:
        return column

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        first = values.take(pa.array(cells.order[cells.start]))
        return first if self.deed == "good" else DEEDS[self.deed](values, cells, first)


class OddParts(TaskPartitioner):
    """Does as it is told, with two halves."""

    type: ClassVar[str] = "odd_parts"
    deed: str

    def parts(self, block: Block, seed: int) -> list[Ints]:
        n = block.n
        return DEEDS[self.deed](np.arange(n // 2), np.arange(n // 2, n))  # type: ignore[no-any-return]


class OddTree(TreePartitioner):
    """Does as it is told."""

    type: ClassVar[str] = "odd_tree"
    bounds: ClassVar[bool] = True
    deed: str

    def grow(self, sample: Any, grower: Any, leaf: Leaf, most: float, seed: int) -> list[Leaf]:
        return DEEDS[self.deed](grower, leaf)  # type: ignore[no-any-return]


class OddMetric(Metric):
    """Does as it is told."""

    type: ClassVar[str] = "odd_metric"
    meaning: ClassVar[str] = "odd; 0 to 1, more is worse"
    undefined: ClassVar[str] = "it is odd"

    def update(self, released: ReleasedBlock) -> Any:
        return DEEDS["update"](released)

    def value(self, state: Any) -> Any:
        return DEEDS["value"](state)


class OddMeasure(Measure):
    """Does as it is told."""

    type: ClassVar[str] = "odd_measure"
    subjects: ClassVar[Any] = "table"
    names: ClassVar[Mapping[str, str]] = {"share": "a share; 0 to 1, more is worse"}
    deed: str

    def measure(self, case: Any) -> Findings:
        return DEEDS[self.deed]()  # type: ignore[no-any-return]


class OddModel(PrivacyModel):
    """Does as it is told."""

    type: ClassVar[str] = "odd_model"
    monotone: ClassVar[bool] = True
    reference: ClassVar[str] = "a test"
    deed: str

    def holds(self, cells: CellCounts) -> Bools:
        return DEEDS[self.deed](len(cells.n_rows))  # type: ignore[no-any-return]


ODD = {
    "kernel": [Odd, OddSearch],
    "recoder": [OddRecoder],
    "partitioner": [OddParts, OddTree],
    "metric": [OddMetric],
    "measure": [OddMeasure],
}


def in_rows(block: Block) -> Ints:
    """Cells of as many rows as the models need, in the block's order."""
    k = block.min_rows
    return np.minimum(np.arange(block.n) // k, max(block.n // k - 1, 0))


def fail(error: BaseException) -> Any:
    raise error


@pytest.fixture(autouse=True)
def _odd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the plug-ins, but for the metric: every release would use it."""
    real = registry.plugins

    def plugins(family: str) -> Mapping[str, Any]:
        odd = {each.type: each for each in ODD.get(family, []) if each is not OddMetric}
        return {**real(family), **odd}

    monkeypatch.setattr(registry, "plugins", plugins)
    monkeypatch.setitem(DEEDS, "good", lambda block, cells: cells)


@pytest.fixture
def metric(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds the metric, which is 0.5 if it is told nothing else."""
    found = registry.plugins

    def plugins(family: str) -> Mapping[str, Any]:
        odd = {OddMetric.type: OddMetric} if family == "metric" else {}
        return {**found(family), **odd}

    monkeypatch.setattr(registry, "plugins", plugins)
    monkeypatch.setitem(DEEDS, "update", lambda released: np.ones(1))
    monkeypatch.setitem(DEEDS, "value", lambda state: 0.5)


@pytest.fixture
def deed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], str]:
    def tell(work: Callable[..., Any]) -> str:
        monkeypatch.setitem(DEEDS, "told", work)
        return "told"

    return tell


def table(n: int = 60) -> pa.Table:
    random = np.random.default_rng(3)
    town = random.choice(["a", "b", "c"], n).tolist()
    return pa.table({"wage": random.normal(size=n), "age": np.arange(n) % 7.0, "town": town})


def release(n: int = 60, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "quasi_identifiers": ["wage", "age"],
        "sensitive": ["town"],
        "k": K,
        "one_row_per_person": True,
    }
    return anonlib.anonymize(table(n), **{**given, **changes})


def odd(kernel: str = "told") -> dict[str, str]:
    return {"type": "odd", "deed": kernel}


CELLS: dict[str, Callable[[Block, Ints], Any]] = {
    "too few": lambda block, cells: cells[:-1],
    "too many": lambda block, cells: np.append(cells, 0),
    "one": lambda block, cells: np.zeros(1, np.int64),
    "a number": lambda block, cells: np.int64(0),
    "nothing": lambda block, cells: None,
    "a list": lambda block, cells: cells.tolist(),
    "a column": lambda block, cells: cells[:, None],
    "floats": lambda block, cells: cells + 0.5,
    "whole floats": lambda block, cells: cells.astype(np.float64),
    "flags": lambda block, cells: np.zeros(block.n, np.bool_),
    "texts": lambda block, cells: cells.astype(str),
    "gaps": lambda block, cells: cells * 2,
    "a huge number": lambda block, cells: np.where(cells > 0, cells, 2**62),
    "without a cell": lambda block, cells: np.where(np.arange(block.n) < 3, -1, cells),
    "below": lambda block, cells: cells - 7,
}


@pytest.mark.parametrize("wrong", CELLS)
def test_cells_of_a_kernel(wrong: str, deed: Any) -> None:
    told = deed(CELLS[wrong])
    block = make_block(np.arange(20.0)[:, None], k=K)
    with pytest.raises(ContractError, match=r"^kernel odd: its cells must be "):
        check_cells(Odd(), CELLS[wrong](block, in_rows(block)), block)
    with pytest.raises(ContractError, match=r"^kernel odd: its cells must be "):
        anonlib.cells(np.arange(20.0)[:, None], kernel="odd", k=K, deed=told)


@pytest.mark.parametrize("wrong", ["gaps", "whole floats", "one"])
def test_a_release_with_other_cells_stops(wrong: str, deed: Any) -> None:
    with pytest.raises(BlockError, match=r"^kernel odd: its cells must be "):
        release(kernel=odd(deed(CELLS[wrong])))


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint64])
def test_cells_may_be_any_integers(kind: type) -> None:
    block = make_block(np.arange(20.0)[:, None], k=K)
    cells, m = check_cells(Odd(), in_rows(block).astype(kind), block)
    assert m == 4
    assert cells.dtype == np.int64
    assert cells.tolist() == in_rows(block).tolist()


def test_no_row_gets_into_a_cell_of_another_block(deed: Any) -> None:
    """Rows without a cell would be in the last one of the block before: here, of a controller."""

    sizes = []

    def leave(block: Block, cells: Ints) -> Ints:
        sizes.append(block.n)
        return np.where((np.arange(block.n) < K) & (len(sizes) == 2), -1, cells)

    with pytest.raises(BlockError, match=r"^kernel odd: its cells must be numbered"):
        release(200, kernel=odd(deed(leave)), partition={"max_rows": 100})
    assert len(sizes) == 2


def test_rows_without_a_cell_are_within_the_limit(deed: Any) -> None:
    block = replace(make_block(np.arange(20.0)[:, None], k=K), may_suppress=3)
    cells = np.where(np.arange(20) < 4, -1, 0)
    with pytest.raises(ContractError, match="4 rows have no cell, at most 3 may be without"):
        check_cells(OddSearch(), cells, block)
    assert check_cells(OddSearch(), cells, replace(block, may_suppress=4))[1] == 1
    heavy = replace(block, may_suppress=4, weight=np.full(20, 2))
    with pytest.raises(ContractError, match="8 rows have no cell, at most 4 may be without"):
        check_cells(OddSearch(), cells, heavy)
    with pytest.raises(ContractError, match="its cells must be numbered"):
        check_cells(OddSearch(), cells - 1, replace(block, may_suppress=20))


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (lambda block, cells: cells, "`find` must give a KernelResult"),
        (lambda block, cells: KernelResult(cells, None, b"?"), "`find` must give a KernelResult"),
        (lambda block, cells: KernelResult(cells[:-1]), "its cells must be an array of 20"),
        (lambda block, cells: KernelResult(cells, np.array([-1])), "its levels must be"),
        (lambda block, cells: KernelResult(cells, np.array([2])), "its levels must be"),
        (lambda block, cells: KernelResult(cells, np.array([0, 0])), "its levels must be"),
        (lambda block, cells: KernelResult(cells, [0]), "its levels must be"),
        (lambda block, cells: KernelResult(cells, np.array([0.5])), "its levels must be"),
    ],
)
def test_what_a_search_finds(found: Any, text: str, deed: Any) -> None:
    kernel = OddSearch(deed=deed(found))
    block = make_block(np.zeros((20, 0)), np.arange(20)[:, None] % 2, k=K)
    with pytest.raises(ContractError, match=f"^kernel odd_search: {text}"):
        search_cells(kernel, block)
    deed(lambda block, cells: KernelResult(cells, np.array([1]), "a note"))
    assert search_cells(kernel, block).note == "a note"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda low, high: [low],
        lambda low, high: [low, high[1:]],
        lambda low, high: [low, high, high[-1:]],
        lambda low, high: [low, high + 1],
        lambda low, high: [low, high, high[:0]],
        lambda low, high: [low, high[::-1]],
        lambda low, high: [low, high.astype(np.float64)],
        lambda low, high: [low, high.tolist()],
        lambda low, high: (low, high),
        lambda low, high: [],
        lambda low, high: None,
    ],
)
def test_parts_have_each_row_once(wrong: Any, deed: Any) -> None:
    step = OddParts(deed=deed(wrong))
    block = make_block(np.arange(20.0)[:, None], k=K)
    with pytest.raises(ContractError, match=r"^partitioner odd_parts: must give a list of parts"):
        cut_parts(block, [step], 0)
    deed(lambda low, high: [high, low.astype(np.int32)])
    assert [len(each) for each in cut_parts(block, [step], 0)] == [10, 10]


def test_a_release_with_parts_that_lack_rows_stops(deed: Any) -> None:
    step = {"type": "odd_parts", "deed": deed(lambda low, high: [low])}
    with pytest.raises(BlockError, match=r"^partitioner odd_parts: "):
        release(partition={"steps": [step]})


def test_parts_of_no_rows_are_not_asked_for(deed: Any) -> None:
    step = OddParts(deed=deed(lambda low, high: [low, high]))
    assert cut_blocks(make_block(np.zeros((0, 1)), k=K), [step], 10, 0, np.zeros(0, np.int64)) == []


LEAVES: dict[str, Callable[[Grower, Leaf], Any]] = {
    "nothing": lambda grower, leaf: None,
    "no leaf": lambda grower, leaf: [],
    "half": lambda grower, leaf: [Leaf(grower.cut(leaf.id, Below(0, 0.0))[0], leaf.rows[:5])],
    "no leaf any more": lambda grower, leaf: grower.cut(leaf.id, Below(0, 0.0)) and [leaf],
    "column": lambda grower, leaf: grower.cut(leaf.id, Below(99, 0.0)),
    "column below 0": lambda grower, leaf: grower.cut(leaf.id, Below(-1, 0.0)),
    "no number": lambda grower, leaf: grower.cut(leaf.id, Below(0, float("nan"))),
    "codes of numbers": lambda grower, leaf: grower.cut(leaf.id, Among(0, np.array([1]))),
    "plane": lambda grower, leaf: grower.cut(leaf.id, Plane(np.ones(9, np.float32), 0.0)),
    "endless plane": lambda grower, leaf: grower.cut(
        leaf.id, Plane(np.full(2, np.inf, np.float32), 0.0)
    ),
    "no cut": lambda grower, leaf: grower.cut(leaf.id, (0, 1.0)),  # type: ignore[arg-type]
    "twice": lambda grower, leaf: [grower.cut(leaf.id, Below(0, 0.0)) for _ in range(2)],
}


@pytest.mark.parametrize("wrong", LEAVES)
def test_leaves_of_a_tree(wrong: str, deed: Any) -> None:
    step = OddTree(deed=deed(LEAVES[wrong]))
    sample = Sample(make_block(np.arange(40.0).reshape(20, 2), k=K), np.arange(20), 1.0)
    with pytest.raises(ContractError, match=r"^partitioner odd_tree: "):
        grow(sample, [step], 10, 0, np.zeros(20, np.int64), np.array([20]))


VALUES: dict[str, Callable[..., Any]] = {
    "each row's": lambda values, cells, first: values,
    "too few": lambda values, cells, first: first[:-1],
    "too many": lambda values, cells, first: pa.concat_arrays([first, first[:1]]),
    "single precision": lambda values, cells, first: first.cast(pa.float32()),
    "texts": lambda values, cells, first: first.cast(pa.string()),
    "chunks": lambda values, cells, first: pa.chunked_array([first]),
    "numpy": lambda values, cells, first: first.to_numpy(),
    "nothing": lambda values, cells, first: None,
    "no numbers": lambda values, cells, first: pa.array(np.full(cells.m, np.nan)),
    "infinite": lambda values, cells, first: pa.array(np.full(cells.m, np.inf)),
}


@pytest.mark.parametrize("wrong", VALUES)
def test_values_of_a_recoder(wrong: str, deed: Any) -> None:
    recoder = OddRecoder(deed=deed(VALUES[wrong]))
    values, cells = pa.array(np.arange(20.0)), Cells(np.arange(20) // K, 4)
    with pytest.raises(ContractError, match=r"^recoder odd_recoder: ") as caught:
        recode_column(recoder, values, cells, Domain())
    assert not any(number in str(caught.value) for number in ("5.0", "10.0"))


@pytest.mark.parametrize("wrong", ["each row's", "no numbers"])
def test_a_release_with_other_values_stops(wrong: str, deed: Any) -> None:
    with pytest.raises(BlockError, match=r"^recoder odd_recoder: "):
        release(recode={"columns": {"age": {"type": "odd_recoder", "deed": deed(VALUES[wrong])}}})


def test_infinite_values_come_only_from_infinite_ones() -> None:
    cells = Cells(np.arange(20) // K, 4)
    good = OddRecoder()
    infinite = pa.array(np.full(20, np.inf))
    assert recode_column(good, infinite, cells, Domain()).to_pylist() == [np.inf] * 4
    nested = pa.StructArray.from_arrays([infinite], ["lower"])
    assert len(recode_column(good, nested, cells, Domain())) == 4
    listed = pa.array([[1.0, None], None] * 10)
    assert len(recode_column(good, listed, cells, Domain())) == 4


# --- arrays are not written to


def test_blocks_are_read_only(deed: Any) -> None:
    def zero(block: Block, cells: Ints) -> Ints:
        block.numeric[:] = 0
        return cells

    block = make_block(np.arange(20.0)[:, None], np.zeros((20, 1)), k=K, sensitive=np.zeros(20))
    block = replace(block, unit=np.arange(20, dtype=np.int32), weight=np.ones(20, np.int64))
    for name in ["numeric", "nominal", "sensitive", "unit", "widths", "n_categories", "weight"]:
        assert not getattr(block, name).flags.writeable, name
    with pytest.raises(BlockError, match=r"^kernel odd failed with ValueError$"):
        release(kernel=odd(deed(zero)))


def test_arrays_of_callers_stay_their_own() -> None:
    numbers = np.arange(20.0)[:, None]
    ids = np.zeros(20, np.int64)
    block, cells = make_block(numbers, k=K), Cells(ids, 1)
    seen = ReleasedBlock(block, ids, 1, least_extents={0: np.zeros(1)})
    ids[0] = 0
    frozen = [cells.id, cells.order, cells.start, cells.count, seen.id, seen.order, seen.start]
    frozen += [seen.rows, seen.columns, seen.weight, seen.squares_within, *seen.nodes]
    frozen += [seen.least_extents[0]]
    assert not any(array.flags.writeable for array in frozen)


@pytest.mark.parametrize("name", ["id", "order", "start", "count"])
def test_cells_are_read_only(name: str, deed: Any) -> None:
    def swap(values: Column, cells: Cells, first: Column) -> Column:
        getattr(cells, name)[:] = 0
        return first

    with pytest.raises(BlockError, match=r"^recoder odd_recoder failed with ValueError$"):
        release(recode={"columns": {"age": {"type": "odd_recoder", "deed": deed(swap)}}})


# --- cells without a release


def test_cells_must_hold_the_models(deed: Any) -> None:
    def single(block: Block, cells: Ints) -> Ints:
        return np.arange(block.n)

    with pytest.raises(ContractError, match="kernel odd: 20 of its 20 cells do not hold the"):
        anonlib.cells(np.arange(20.0)[:, None], kernel="odd", k=K, deed=deed(single))
    found = anonlib.cells(np.arange(20.0)[:, None], kernel="odd", k=K)
    assert np.bincount(found).tolist() == [5] * 4


@pytest.mark.parametrize(
    "answer",
    [
        lambda m: True,
        lambda m: None,
        lambda m: np.ones(m, np.int64),
        lambda m: np.ones(m + 1, np.bool_),
        lambda m: np.ones(1, np.bool_),
        lambda m: fail(ValueError(MARKER)),
    ],
)
def test_what_a_model_says_of_cells(answer: Any, deed: Any) -> None:
    block = make_block(np.arange(20.0)[:, None], k=K)
    block = replace(block, models=(OddModel(deed=deed(answer)),))
    with pytest.raises(ContractError, match=r"^privacy model odd_model(:| failed with) "):
        block.holds(in_rows(make_block(block.numeric, k=K)), 4)


# --- metrics


@pytest.mark.usefixtures("metric")
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, np.float32("nan")])
def test_losses_are_finite_or_none(number: float, tmp_path: Path, deed: Any) -> None:
    DEEDS["value"] = lambda state: number
    made = release()
    assert made.losses["odd_metric"] is None
    made.save_record(tmp_path / "record.json")
    text = (tmp_path / "record.json").read_text("utf-8")
    assert json.loads(text, parse_constant=pytest.fail)["losses"]["odd_metric"] is None


@pytest.mark.usefixtures("metric")
@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("update", lambda released: fail(ValueError(MARKER))),
        ("update", lambda released: [1.0]),
        ("update", lambda released: np.zeros((2, 2))),
        ("update", lambda released: np.zeros(2, np.float32)),
        ("update", lambda released: released.id.sort()),
        ("value", lambda state: fail(ValueError(MARKER))),
        ("value", lambda state: MARKER),
    ],
)
def test_a_metric_that_fails_is_named(name: str, work: Any, deed: Any) -> None:
    DEEDS[name] = work
    with pytest.raises(AnonlibError, match=r"^metric odd_metric(:| failed with) ") as caught:
        release()
    assert MARKER not in str(caught.value)


# --- measures


def measured(deed: str, **gate: Any) -> Any:
    gates = [{"figure": "odd_measure.share", **gate}] if gate else []
    return release(evaluate={"measures": [{"type": "odd_measure", "deed": deed}]}, gates=gates)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int64(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (2, 2),
        (0.25, 0.25),
        (np.float32("nan"), None),
        (10**400, None),
    ],
)
def test_numbers_of_figures_are_those_of_json(value: Any, expected: Any) -> None:
    figure = Figure("share", value)
    assert figure.value == expected
    assert type(figure.value) is type(expected)
    if expected is not None:
        series = Series("s", "", ("a", "b"), (("x", value), (None, 1)))
        assert type(series.rows[0][1]) is type(expected)
    else:
        with pytest.raises(ContractError, match="series s: a number is not finite"):
            Series("s", "", ("a",), ((value,),))


@pytest.mark.parametrize("value", [MARKER, np.zeros(2), 1j, np.bool_(True), [1]])
def test_figures_and_series_take_numbers_only(value: Any) -> None:
    with pytest.raises(ContractError, match=r"^figure share: must be a number, not of") as caught:
        Figure("share", value)
    assert MARKER not in str(caught.value)
    if not isinstance(value, str):
        with pytest.raises(ContractError, match=r"^series s: must be a number, not of type"):
            Series("s", "", ("a",), ((value,),))
    with pytest.raises(ContractError, match=r"^series s: each row needs 2 cells"):
        Series("s", "", ("a", "b"), ((1,),))


def test_a_record_with_numbers_of_numpy(tmp_path: Path, deed: Any) -> None:
    series = Series("s", "", ("a",), ((np.int64(2),),))
    made = measured(deed(lambda: Findings((Figure("share", np.float32(0.5)),), (series,))))
    made.save_record(tmp_path / "record.json")
    assert json.loads((tmp_path / "record.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "work",
    [
        lambda: fail(ValueError(MARKER)),
        lambda: fail(Panic(MARKER)),
        lambda: None,
        lambda: Findings((Figure("other", 0.5),)),
        lambda: Findings((Figure("share", MARKER),)),  # type: ignore[arg-type]
    ],
)
def test_a_measure_that_fails_is_named(work: Any, deed: Any) -> None:
    with pytest.raises(ContractError, match=r"^measure odd_measure(:| failed with) ") as caught:
        measured(deed(work))
    assert MARKER not in str(caught.value)


@pytest.mark.parametrize(("value", "passes"), [(-0.5, False), (0.0, True), (-1e-12, True)])
def test_no_gate_passes_by_a_value_that_can_not_be(value: float, passes: bool, deed: Any) -> None:
    told = deed(lambda: Findings((Figure("share", value),)))
    if passes:
        assert measured(told, at_most=0.3).evaluation.gates[0].passed
    else:
        with pytest.raises(AnonlibError, match=r"the value is outside the figure's range, 0 to 1"):
            measured(told, at_most=0.3)


# --- errors


@pytest.mark.parametrize("error", [ValueError(MARKER), KeyError(MARKER), Panic(MARKER)])
def test_a_kernel_that_fails_is_named(error: BaseException, deed: Any) -> None:
    told = deed(lambda block, cells: fail(error))
    expected = f"^kernel odd failed with {type(error).__name__}$"
    with pytest.raises(BlockError, match=expected) as caught:
        release(kernel=odd(told))
    assert caught.value.__cause__ is caught.value.__context__ is None
    with pytest.raises(ContractError, match=expected):
        anonlib.cells(np.arange(20.0)[:, None], kernel="odd", k=K, deed=told)


def test_errors_of_anonlib_keep_their_text(deed: Any) -> None:
    told = deed(lambda block, cells: fail(ConfigError([Problem("block", "too small")])))
    with pytest.raises(ConfigError, match=r"^block: too small$"):
        anonlib.cells(np.arange(20.0)[:, None], kernel="odd", k=K, deed=told)


def test_an_interrupt_stays_one(deed: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        release(kernel=odd(deed(lambda block, cells: fail(KeyboardInterrupt()))))


def test_errors_of_spark_are_left_to_their_translation() -> None:
    error = type("Py4JError", (Exception,), {"__module__": "py4j.protocol"})()
    with pytest.raises(type(error)):
        registry.run_plugin(Odd(), lambda: fail(error))
