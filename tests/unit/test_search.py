"""One search over a table's distinct tuples: the same as the kernel on its rows; what fails."""

from collections import Counter
from dataclasses import replace
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from anonlib import registry
from anonlib.arrays import Ints
from anonlib.errors import BlockError
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.kernels import Kernel
from anonlib.local.cell_grouping import cells
from anonlib.recode import Cells, Domain
from anonlib.table.block import Block
from anonlib.table.columns import HASH, TUPLE
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Scale
from anonlib.worker.task import Task, recode_cells, spread_cells
from anonlib.worker.tuple_search import CHECK, COUNT, SUMMARY, Bounds, search

K, N = 5, 400
TREES = {
    "c0": "a;ab;*\nb;ab;*\nc;cde;*\nd;cde;*\ne;cde;*\n",
    "c1": "1;1-2;1-4;*\n2;1-2;1-4;*\n3;3-4;1-4;*\n4;3-4;1-4;*\n5;5-6;5-6;*\n6;5-6;5-6;*\n",
    "c2": "x;*\ny;*\n",
}


class Rows(Kernel):
    """Puts the rows of a tuple into several cells, which is against the contract."""

    type: ClassVar[str] = "rows"
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def cells(self, block: Block) -> Ints:
        return np.arange(block.n)


@pytest.fixture
def hierarchies(tmp_path: Any) -> dict[str, Hierarchy]:
    for name, text in TREES.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return {name: read_hierarchy(tmp_path / f"{name}.csv") for name in TREES}


def rows(seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    columns = {
        "c0": pa.array(random.choice(list("abcde"), N, p=[0.5, 0.2, 0.2, 0.09, 0.01])),
        "c1": pa.array(random.choice(list("123456"), N), mask=random.random(N) < 0.01),
        "c2": pa.array(random.choice(list("xy"), N)),
        "c3": pa.array(random.choice(["flu", "cold", "gout"], N)),
    }
    return pa.table(columns)


def counted(table: pa.Table) -> pa.Table:
    """As Spark counts them, in any order."""
    tuples = list(zip(*(table.column(c).to_pylist() for c in ("c0", "c1", "c2")), strict=True))
    number = {each: 7 * i + 1 for i, each in enumerate(sorted(set(tuples), key=repr))}
    keyed = Counter(zip(tuples, table.column("c3").to_pylist(), strict=True))
    found = [
        {"c0": t[0], "c1": t[1], "c2": t[2], "c3": s, TUPLE: number[t], CHECK: -number[t],
         HASH: int(sha256(f"{number[t]} {s}".encode()).hexdigest()[:15], 16), COUNT: n}
        for (t, s), n in keyed.items()
    ]  # fmt: skip
    return pa.Table.from_pylist(found)


def task(
    table: pa.Table, hierarchies: dict[str, Hierarchy], kernel: str, *models: dict[str, Any]
) -> Task:
    encodings = []
    for id in TREES:
        present = table.column(id).combine_chunks().drop_null().unique()
        places = hierarchies[id].places(present)
        missing = table.column(id).null_count > 0
        found = present.take(pa.array(np.argsort(places)))
        tree = hierarchies[id].over(np.sort(places), missing=missing)
        encodings.append(Encoding(id, Scale.NOMINAL, missing, categories=found, tree=tree))
    fields = [pa.field(id, pa.string()) for id in (*TREES, "c3")]
    lca = {"type": "lca", "level": 0}
    return Task(
        encodings=tuple(encodings),
        recoders=tuple((id, lca, Domain(None, hierarchies[id])) for id in TREES),
        kernel={"type": kernel},
        models=({"type": "k_anonymity", "k": K}, *models),
        metrics=tuple({"type": name} for name in registry.plugins("metric")),
        protected=("c3",),
        missing_tokens=(),
        unit=(),
        token_key=b"",
        pseudonyms=(),
        pseudonym_key=b"",
        output=pa.schema(fields),
        max_rows=N,
    )  # fmt: skip


def joined(table: pa.Table, found: pa.Table) -> Counter[Any]:
    """The released rows: each as its tuple is."""
    released = {row[TUPLE]: (row["c0"], row["c1"], row["c2"]) for row in found.to_pylist()}
    count: Counter[Any] = Counter()
    for row in table.to_pylist():
        if row[TUPLE] in released:
            count[released[row[TUPLE]], row["c3"]] += row[COUNT]
    return count


@pytest.mark.parametrize("kernel", ["greedy", "full_domain"])
@pytest.mark.parametrize("models", [(), ({"type": "l_diversity", "l": 2, "attribute": "c3"},)])
def test_the_same_as_on_rows(
    hierarchies: dict[str, Hierarchy], kernel: str, models: tuple[dict[str, Any], ...]
) -> None:
    table = rows()
    given = task(table, hierarchies, kernel, *models)
    tuples = counted(table)
    found = search(tuples, given, Bounds(10_000, 0))
    built = [registry.build("privacy model", spec) for spec in models]
    ids = cells(
        table, kernel, K, scales=dict.fromkeys(TREES, "nominal"), hierarchies=hierarchies,
        models=built,
    )  # fmt: skip
    own = Cells(ids, int(ids.max()) + 1)
    by_row = spread_cells(recode_cells(table, own, given), own)
    by_tuple = joined(tuples, found)
    assert sum(by_tuple.values()) == N
    classes: Counter[Any] = Counter()
    for (released, _), count in by_tuple.items():
        classes[released] += count
    assert min(classes.values()) >= K
    if kernel == "greedy":  # full_domain releases levels, lca what is common
        expected = zip(*(by_row[id].to_pylist() for id in TREES), strict=True)
        assert classes == Counter(expected)
    else:
        heights = {id: h.heights for id, h in hierarchies.items()}
        [summary] = [row[SUMMARY] for row in found.to_pylist() if row[SUMMARY]]
        for id, level in zip(TREES, summary["levels"], strict=True):
            names = {row[id] for row in found.to_pylist() if row[id] is not None}
            assert {int(heights[id][hierarchies[id].names.index(n)]) for n in names} == {level}


def test_the_order_of_tuples_does_not_matter(hierarchies: dict[str, Hierarchy]) -> None:
    table = rows(1)
    given, tuples = task(table, hierarchies, "greedy"), counted(table)
    shuffled = tuples.take(pa.array(np.random.default_rng(2).permutation(len(tuples))))
    one, other = (search(each, given, Bounds(10_000, 0)) for each in (tuples, shuffled))
    assert sorted(one.to_pylist(), key=repr) == sorted(other.to_pylist(), key=repr)


def test_suppressed_tuples_are_absent(hierarchies: dict[str, Hierarchy]) -> None:
    table = rows(3)
    given, tuples = task(table, hierarchies, "full_domain"), counted(table)
    none, some = (search(tuples, given, Bounds(10_000, limit)) for limit in (0, N // 5))
    [whole], [part] = ([r[SUMMARY] for r in f.to_pylist() if r[SUMMARY]] for f in (none, some))
    assert whole["n_rows"] == N
    assert N - N // 5 <= part["n_rows"] < N
    assert sum(joined(tuples, some).values()) == part["n_rows"]
    assert part["n_tuples"] == len(some)


def test_too_many_tuples(hierarchies: dict[str, Hierarchy]) -> None:
    table = rows()
    given, tuples = task(table, hierarchies, "greedy"), counted(table)
    with pytest.raises(BlockError, match="more than max_tuples = 9 distinct"):
        search(tuples, given, Bounds(9, 0))


def test_what_is_released_goes_by_the_tuple(
    hierarchies: dict[str, Hierarchy], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rows()
    given, tuples = task(table, hierarchies, "rows"), counted(table)
    real = registry.plugins
    monkeypatch.setattr(registry, "plugins", lambda f: {"rows": Rows} if f == "kernel" else real(f))
    with pytest.raises(BlockError, match="rows of one tuple into several cells"):
        search(tuples, given, Bounds(10_000, 0))


def test_two_tuples_of_one_hash_are_refused(hierarchies: dict[str, Hierarchy]) -> None:
    table = rows()
    given, tuples = task(table, hierarchies, "greedy"), counted(table)
    given = replace(given, models=({"type": "k_anonymity", "k": N},))
    same = tuples.set_column(
        tuples.schema.get_field_index(TUPLE), TUPLE, pa.array([1] * len(tuples))
    )
    with pytest.raises(BlockError, match="two tuples have the same hash"):
        search(same, given, Bounds(10_000, 0))


@pytest.mark.parametrize("recoder", [{"type": "lca", "level": 1}, {"type": "suppress"}])
def test_losses_are_of_what_is_released(
    hierarchies: dict[str, Hierarchy], recoder: dict[str, Any]
) -> None:
    """Nodes above the lowest common ones lose more."""
    table = rows(4).drop_columns("c1").append_column("c1", rows(4)["c1"].fill_null("1"))
    given = task(table, hierarchies, "greedy")
    recoders = tuple((id, recoder, domain) for id, _, domain in given.recoders)
    given = replace(given, recoders=recoders)
    tuples = counted(table)
    found = search(tuples, given, Bounds(10_000, 0))
    [summary] = [row[SUMMARY] for row in found.to_pylist() if row[SUMMARY]]
    lost = sum(
        count * hierarchies[id].tree.loss[hierarchies[id].names.index(name)]
        for (names, _), count in joined(tuples, found).items()
        for id, name in zip(TREES, names, strict=True)
    )
    metrics = [spec["type"] for spec in given.metrics]
    state = np.array(summary["states"][metrics.index("nllm")])
    value = registry.build("metric", {"type": "nllm"}).value(state)
    assert value == pytest.approx(lost / N / len(TREES))
