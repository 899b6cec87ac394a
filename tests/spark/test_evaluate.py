"""Measuring before the commit, after it, and on trial: what measures see, and what is left."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession

from anonlib import registry
from anonlib.measure import Figure, Findings, Measure
from anonlib.measure.case import Case
from anonlib.run.run_table import list_past_runs
from anonlib.table.columns import DEAL, LINK
from tests.spark.support import (
    MARKER,
    Shell,
    holding,
    left,
    multiset,
    people,
    settings,
    texts_in,
    write_people,
)

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("noted")]

OVERWRITE = {"mode": "overwrite", "acknowledge_overwrite": True}


class Probe(Measure):
    """Shows a test what a measure can see."""

    type: ClassVar[str] = "probe"
    names: ClassVar[dict[str, str]] = {"n": "released rows; 0 or more"}
    needs_pairs: ClassVar[bool] = True
    seen: ClassVar[list[Callable[[Case], None]]] = []

    @property
    def held_out(self) -> float:
        return 0.3

    def measure(self, case: Case) -> Findings:
        for look in self.seen:
            look(case)
        return Findings((Figure("n", float(case.n_released)),))


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Callable[[Case], None]]]:
    """What is done with the case; the measure `probe` is the only one there is."""
    known = registry.plugins
    monkeypatch.setattr(
        registry,
        "plugins",
        lambda family: {"probe": Probe} if family == "measure" else known(family),
    )
    Probe.seen.clear()
    yield Probe.seen
    Probe.seen.clear()


def config(folder: Path, **changes: Any) -> dict[str, Any]:
    return settings(folder, **{"evaluate": {}, "release": OVERWRITE, **changes})


def metrics(spark: SparkSession, folder: Path) -> list[tuple[Any, ...]]:
    table = spark.read.format("delta").load(str(folder / "out" / "table.private" / "metrics"))
    found = table.where("measure = 'probe'").orderBy("time")
    return [tuple(row) for row in found.select("outcome", "figure", "value").collect()]


def test_what_measures_see_before_the_commit(
    shell: Shell,
    spark: SparkSession,
    drawings: None,  # what is looked for may be in them
    tmp_path: Path,
    probe: list[Callable[[Case], None]],
) -> None:
    write_people(tmp_path)
    frame = people()
    seen: dict[str, Any] = {}

    def look(case: Case) -> None:
        assert case.pairs is not None
        seen["theirs"], seen["ours"] = (side.to_pandas() for side in case.pairs)
        ids = [column.id for column in case.schema.released]
        before, after = (case.parts(0.3, ids, 1, after=late) for late in (False, True))
        assert before is not None
        assert after is not None
        for name, split in (("before", before), ("after", after)):
            parts = {key: getattr(split, key).rows.toPandas() for key in ("train", "raw", "test")}
            seen[name] = {key: part.astype(str) for key, part in parts.items()}
        seen["released"] = case.released.toPandas()
        seen["hashes"] = {row[0] for row in case.source.select(DEAL).collect()}
        seen["ids"] = {column.name: column.id for column in case.schema.columns}

    probe.append(look)
    assert shell.release(config(tmp_path)).code == 0
    wage, city, illness = (seen["ids"][name] for name in ("wage", "city", "illness"))
    # Every row is among so few, each beside what it was released as.
    assert len(seen["theirs"]) == len(seen["ours"]) == 60
    assert sorted(seen["theirs"][wage]) == sorted(frame["wage"])
    assert (seen["theirs"][illness] == seen["ours"][illness]).all()
    means = seen["theirs"].groupby(seen["ours"][wage])[wage].mean()
    assert (abs(means - means.index) <= 1).all()
    # The links of staged rows say nothing to who has the source.
    links = set(seen["released"][LINK])
    assert len(links) == len(seen["hashes"]) == 60
    assert not links & seen["hashes"]
    # Of a shadow, nobody who was held out is part; both splits hold out the same persons.
    for split in (seen["before"], seen["after"]):
        assert 3 <= len(split["test"]) <= 30
        assert len(split["train"]) == len(split["raw"]) == 60 - len(split["test"])
    ill = {name: sorted(split["test"][illness]) for name, split in seen.items() if "fore" in name}
    assert sorted(seen["after"]["test"][illness]) == ill["before"]
    together = [*seen["before"]["raw"][wage], *seen["before"]["test"][wage]]
    assert sorted(together) == sorted(frame["wage"].astype(str))
    assert sorted(seen["before"]["train"][illness]) == sorted(seen["before"]["raw"][illness])
    assert (seen["before"]["train"].groupby([wage, city]).size() >= 3).all()
    # Nothing of it is published, or left behind.
    published = spark.read.format("delta").load(str(tmp_path / "out" / "table"))
    assert published.columns == ["wage", "city", "illness"]
    assert left(tmp_path / "out") == {"table", "table.private"}
    assert holding(f"{MARKER}-name", tmp_path / "out") == []
    private = texts_in(tmp_path / "out" / "table.private")
    marked = {name for name, data in private.items() if MARKER.encode() in data}
    # The distributions of columns name what is released of them.
    assert {Path(name).suffix for name in marked} == {".json", ".html"}
    assert not any(f"{MARKER}-name".encode() in data for data in private.values())


def test_gates_stop_a_release(
    shell: Shell, spark: SparkSession, tmp_path: Path, probe: list[Callable[[Case], None]]
) -> None:
    write_people(tmp_path)
    assert shell.release(config(tmp_path)).code == 0
    target = str(tmp_path / "out" / "table")
    before = multiset(spark.read.format("delta").load(target))
    gates = [{"figure": "probe.n", "at_most": 59}]
    said = shell.release(config(tmp_path, gates=gates, seed=8), "--run-id", "r2")
    assert said.code == 4
    page = f"{tmp_path}/out/table.private/r2.html"
    assert said.error == (
        "error: gates not passed, nothing was released: probe.n at most 59: 60; all figures: "
        f"{page}\n"
    )
    assert Path(page).is_file()
    assert spark.sql(f"DESCRIBE HISTORY delta.`{target}`").count() == 1
    assert multiset(spark.read.format("delta").load(target)) == before
    record = json.loads((tmp_path / "out" / "table.private" / "r2.json").read_text())
    assert record["outcome"] == "stopped"
    assert record["evaluation"]["gates"][0]["passed"] is False
    assert metrics(spark, tmp_path) == [("published", "n", 60.0), ("stopped", "n", 60.0)]
    row, _ = list_past_runs(str(tmp_path / "out" / "table.private" / "runs"))
    assert (row["outcome"], row["exit_code"], row["error"]) == ("stopped", 4, "GateError")
    assert row["gates"] == [{"gate": "probe.n at most 59", "passed": False}]
    assert (row["rows_out"], row["version"]) == (60, None)
    assert Path(row["record"]).name == "r2.json"
    assert left(tmp_path / "out") == {"table", "table.private"}
    gates = [{"figure": "probe.n", "at_most": 60}]
    assert shell.release(config(tmp_path, gates=gates), "--run-id", "r2").code == 0


def test_trial_and_published(
    shell: Shell, spark: SparkSession, tmp_path: Path, probe: list[Callable[[Case], None]]
) -> None:
    write_people(tmp_path)
    gates = [{"figure": "probe.n", "at_most": 59}]
    given = config(tmp_path, gates=gates, spark={"grouped_map": "pandas"})
    seen: list[tuple[int | None, bool, int]] = []

    def look(case: Case) -> None:
        ids = [column.id for column in case.schema.released]
        before, after = (case.parts(0.3, ids, 1, after=late) for late in (False, True))
        assert before is not None
        n_pairs = None if case.pairs is None else case.pairs[0].num_rows
        seen.append((n_pairs, after is None, before.train.n))

    path = tmp_path / "measured.yaml"
    path.write_text(json.dumps(given), "utf-8")
    said = shell("evaluate", str(path))
    assert said.code == 2
    assert "no table is at" in said.error
    probe.append(look)
    said = shell("evaluate", str(path), "--trial")
    assert said.code == 4  # measured all the same
    assert "failed  probe.n at most 59: 60" in said.out
    assert left(tmp_path / "out") == {"table.private"}
    probe.clear()
    assert shell.release({**given, "gates": []}).code == 0
    probe.append(look)
    said = shell("evaluate", str(path))
    assert said.code == 4
    # What is published has no link to its source.
    assert seen[0][:2] == (60, False)
    assert seen[1][:2] == (None, True)
    assert seen[0][2] == seen[1][2]
    assert [outcome for outcome, *_ in metrics(spark, tmp_path)] == [
        "evaluated",
        "published",
        "evaluated",
    ]
    assert left(tmp_path / "out") == {"table", "table.private"}
