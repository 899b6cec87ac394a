"""CONTRIBUTING.md: its examples are plug-ins that keep their families' contracts, as files in the
folders that the text names and as a package with the entry points that it shows."""

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonlib
from anonlib import registry
from anonlib.arrays import snap
from anonlib.cli import main
from anonlib.encode import encode
from anonlib.loss import ReleasedBlock
from anonlib.measure.learners import TaskSize
from anonlib.recode import Cells, Domain
from anonlib.worker.contracts import merge_states, update_metric
from tests.property import test_kernel_contract as kernels
from tests.property import test_partitioners as partitioners
from tests.property import test_privacy_models as models
from tests.support import make_block
from tests.texts import entries, examples, install_examples, write_examples
from tests.unit import test_audit_rules as audits
from tests.unit import test_listing as listings
from tests.unit import test_recode_contract as recoders

#: Family and name of each example.
ADDED = [
    ("kernel", "neighbours"),
    ("partitioner", "halves"),
    ("privacy model", "present_values"),
    ("audit", "present_values"),
    ("recoder", "lowest"),
    ("measure", "kept"),
    ("metric", "largest_cell"),
    ("encoding", "is_present"),
    ("learner", "nearest_rows"),
]


@pytest.fixture
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The examples' files, in folders that are searched with the package's own."""
    write_examples(tmp_path)
    before = set(sys.modules)
    for name in examples():
        folder = Path(name).parent
        package = importlib.import_module(".".join(folder.parts))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / folder)])
    registry.plugins.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    registry.plugins.cache_clear()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def made(family: str, name: str, **parameters: Any) -> Any:
    return registry.plugin(family, name)(**parameters)


def test_every_example_is_a_plugin(added: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for family, name in ADDED:
        plugin = registry.plugin(family, name)
        assert plugin.__name__.lower().removesuffix("audit") == name.replace("_", "")
        assert sys.modules[plugin.__module__].__file__ in map(str, added.rglob("*.py"))
    assert len(ADDED) == len(examples())
    assert main(["kernels", "--json"]) == 0
    assert "neighbours" in [each["type"] for each in json.loads(capsys.readouterr().out)]


def test_kernel(added: Path) -> None:
    kernel = made("kernel", "neighbours")
    kernels.test_cells(kernel=kernel)
    kernels.test_cells_with_hierarchies(kernel=kernel)
    for n in range(1, 22):
        kernels.test_few_rows(kernel=kernel, n=n)
    for model in kernels.MODELS:
        kernels.test_every_model_holds(kernel=kernel, model=model, n_persons=300)
    kernels.test_no_rows(kernel=kernel)
    kernels.test_infeasible_text_has_no_values(kernel=kernel)
    kernels.test_read_only_and_strided_arrays(kernel=kernel)
    kernels.test_every_cell_has_k_persons(kernel=kernel)
    kernels.test_every_cell_is_diverse(kernel=kernel)
    kernels.test_describes_itself(kernel=kernel)
    ids = anonlib.cells(np.arange(25.0)[::-1].reshape(-1, 1), kernel="neighbours", k=10)
    assert ids.tolist() == [0] * 15 + [1] * 10  # the least ten values are in the last rows


def test_partitioner(added: Path) -> None:
    partitioners.test_blocks_cover_the_rows_once(name="halves")
    partitioners.test_a_table_without_rows_or_variety(name="halves")
    partitioners.test_every_kernel_can_work_on_the_blocks(name="halves", kernel="neighbours")
    tree, leaves = partitioners.leaves_of(
        made("partitioner", "halves", column=1), partitioners.normal(80), 10
    )
    assert [cut.column for cut in tree.cuts] == [1] * 7
    assert [len(leaf.rows) for leaf in leaves] == [10] * 8


@given(first=models.CELL, second=models.CELL, n=st.integers(1, 9))
@settings(max_examples=100)
def check_model(first: models.Rows, second: models.Rows, n: int) -> None:
    """What holds by definition, and of a union where it holds of both."""
    model = made("privacy model", "present_values", n=n, attribute="s")
    cells = [first, second, first + second]
    held = model.holds(models.counts(*cells)).tolist()
    assert held == [models.present(cell).total() >= n for cell in cells]
    assert held[2] or not (held[0] and held[1])


def test_privacy_model(added: Path) -> None:
    check_model()
    audits.test_every_privacy_model_has_its_audit()
    model = made("privacy model", "present_values", n=4, attribute="illness")
    values = np.where(np.arange(60) % 3 == 0, "flu", None)
    table = pa.table({"age": snap(np.arange(60.0)), "illness": pa.array(values.tolist())})
    ids = anonlib.cells(
        table, kernel="neighbours", k=2, scales={"age": "continuous"}, models=[model]
    )
    assert np.bincount(ids[values == "flu"], minlength=ids.max() + 1).min() >= 4
    assert ids.max() > 0
    built = registry.build("audit", registry.spec(model))
    assert (built.label, built.required) == ("present_values n=4 attribute=illness", 4)


def test_release_in_memory(added: Path) -> None:
    """All of them together, and the audit's half without Spark."""
    random = np.random.default_rng(2)
    illness = np.where(random.random(400) < 0.7, random.choice(["flu", "cold"], 400), None)
    table = pa.table(
        {"wage": random.normal(3000, 500, 400), "age": random.integers(18, 90, 400)}
    ).append_column("illness", pa.array(illness.tolist()))
    release = anonlib.anonymize(
        table,
        quasi_identifiers=["age", "wage"],
        sensitive=["illness"],
        one_row_per_person=True,
        kernel="neighbours",
        partition={"steps": [{"type": "halves"}], "max_rows": 100},
        recode={"columns": {"wage": "lowest"}},
        privacy={
            "models": [
                {"type": "k_anonymity", "k": 3},
                {"type": "present_values", "n": 4, "attribute": "illness"},
            ]
        },
    )
    present = release.table.to_pandas().groupby(["age", "wage"])["illness"].count()
    last = release.audit.verdicts[-1]
    assert (last.model, last.value) == ("present_values n=4 attribute=illness", present.min())
    assert present.min() >= 4


def test_recoder(added: Path) -> None:
    lowest = made("recoder", "lowest")
    recoders.test_declares_scales_and_describes_its_parameters(lowest)
    for column in recoders.COLUMNS.values():
        for test in (
            recoders.test_one_value_per_cell_of_the_declared_type,
            recoders.test_no_rows_give_no_values,
            recoders.test_only_missing_values_give_null,
            recoders.test_the_order_of_rows_does_not_matter,
            recoders.test_a_cell_is_recoded_from_its_own_rows_only,
            recoders.test_the_source_is_left_untouched,
        ):
            test(lowest, column, Domain())
    values, cells = pa.array([3, 1, None, 7, None, None]), Cells(np.array([0, 0, 0, 1, 1, 1]), 2)
    assert lowest.recode(values, cells, Domain()).to_pylist() == [1, None]


def test_measure(added: Path) -> None:
    kept = made("measure", "kept")
    listings.test_figures_and_their_meanings_are_said(type(kept))
    (figure,) = kept.measure(SimpleNamespace(n_source=40, n_released=30)).figures
    assert (figure.name, figure.value) == ("share", 0.75)
    (figure,) = kept.measure(SimpleNamespace(n_source=0, n_released=0)).figures
    assert (figure.value, figure.note) == (None, "the source has no rows")


def test_metric(added: Path) -> None:
    metric = made("metric", "largest_cell")
    block = make_block(np.arange(20.0)[:, None], k=5)
    states = [
        update_metric(metric, ReleasedBlock(block, np.repeat([0, 1], [n, 20 - n]), 2))
        for n in (5, 12)
    ]
    assert [metric.value(state) for state in states] == [15, 12]
    assert metric.value(merge_states(metric, *states)) == 15
    assert metric.value(np.zeros(1)) is None


def test_encoding(added: Path) -> None:
    table = pa.table({"age": pa.array([30, None, 41])})
    plain = encode(table, {"age": "is_present"})
    assert plain.names == ("age is there",)
    assert plain.features.toarray().tolist() == [[1.0], [0.0], [1.0]]
    both = encode(table, {"age": {"type": "is_present", "missing": True}})
    assert both.features.toarray().tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


def test_learner(added: Path) -> None:
    learner = made("learner", "nearest_rows", n=1)
    assert (learner.suits(2), learner.suits(0)) == (True, False)
    model = learner.estimator(TaskSize(n_classes=2, n_rows=4, n_rarest=2, seed=0))
    model.fit(np.array([[0.0], [1.0], [8.0], [9.0]]), ["a", "a", "b", "b"])
    assert model.predict(np.array([[0.4], [8.6]])).tolist() == ["a", "b"]


def test_format_and_lint(added: Path) -> None:
    """As `scripts/test` asks of the package."""
    ruff = [str(Path(sys.executable).parent / "ruff")]
    config = ["--config", str(Path(anonlib.__file__).parents[1] / "pyproject.toml"), str(added)]
    for command in (["format", "--check"], ["check"]):
        done = subprocess.run([*ruff, *command, *config], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout.decode()


def test_a_package_with_entry_points(tmp_path: Path) -> None:
    """In a fresh Python, which loads no more than the package's own plug-ins do."""
    install_examples(tmp_path)
    assert sum(map(len, entries().values())) == len(ADDED)
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from anonlib import registry
for family, name in {ADDED}:
    assert registry.plugin(family, name).__module__.startswith("contributed."), name
assert not {{"pyspark", "numba", "sklearn"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
