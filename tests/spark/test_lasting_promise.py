"""A release stays what it promised: batches, run ids and records of other configs and tables."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.support import MARKER, Said, Shell, multiset, people, settings, start_from
from tests.spark.test_append import KEY, batch, config, table
from tests.spark.test_known_rows import REREAD

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", KEY)


def refused(said: Said, *texts: str) -> None:
    assert said.code == 2, said.err
    for text in texts:
        assert text in said.error


def models_of(k: int, l: int | None = None) -> dict[str, Any]:  # noqa: E741
    models: list[dict[str, Any]] = [{"type": "k_anonymity", "k": k}]
    models += [] if l is None else [{"type": "l_diversity", "l": l, "attribute": "illness"}]
    return {"models": models}


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "out/table/_anonlib/manifest.json").read_text())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("promise")


@pytest.fixture
def started(shell: Shell, place: Path) -> Path:
    """The folder of a table of 80 persons, by the run `one`."""
    first = config(place, batch(0, 80), "error", privacy=models_of(5, 2))
    start_from(shell, place, first, "--run-id", "one")
    return place


def test_a_batch_may_only_strengthen(shell: Shell, spark: SparkSession, started: Path) -> None:
    """What is refused, and by which record, is in `tests/unit/test_promise.py`."""
    before = multiset(table(spark, started))
    # The public manifest is edited by hand; what Delta's log says of the commit counts.
    path = started / "out/table/_anonlib/manifest.json"
    path.write_text(path.read_text().replace("k=5", "k=2").replace("promise_sha256", "other"))
    weaker = config(started, batch(80, 40), privacy=models_of(2))
    refused(shell.release(weaker), "k_anonymity k=5 was promised", "l_diversity l=2")
    assert multiset(table(spark, started)) == before
    # Without the record the same promise is known again.
    (started / "out/table.private/one.json").unlink()
    assert shell.release(config(started, batch(80, 40), privacy=models_of(5, 2))).code == 0
    assert sum(multiset(table(spark, started)).values()) == 120


def test_a_stronger_batch_binds_the_next(shell: Shell, started: Path) -> None:
    first_promise = manifest_of(started)["promise_sha256"]
    stronger = models_of(5, 2)
    stronger["models"].append({"type": "alpha_k", "alpha": 0.9, "attribute": "illness"})
    said = shell.release(config(started, batch(80, 60), privacy=stronger))
    assert said.code == 0, said.err
    assert REREAD not in said.out  # the published rows were not audited for it
    assert manifest_of(started)["promise_sha256"] != first_promise
    said = shell.release(config(started, batch(140, 60), privacy=models_of(5, 2)))
    refused(said, "alpha_k alpha=0.9 attribute=illness was promised")


def test_orders_hierarchies_and_controllers_stay(shell: Shell, tmp_path: Path) -> None:
    """By another order or hierarchy a model may measure less, and a released interval means
    something else; without controllers, no model holds for each of them."""
    trees = {}
    for name, group in (("flat", "*"), ("deep", "g;h;*")):
        trees[name] = tmp_path / f"{name}.csv"
        values = [f"{MARKER}-illness-{i};{group}" for i in range(5)]
        trees[name].write_text("\n".join([*values, "other;*"]))
    close = {"type": "t_closeness", "t": 0.9, "attribute": "illness", "distance": "hierarchical"}
    private = models_of(5)
    private["models"].append(close)
    by_place = {"steps": [{"type": "controller", "column": "place"}, {"type": "kmeans"}]}

    def made(
        first: int, mode: str = "append", order: str = "abc", tree: str = "flat", **changes: Any
    ) -> Any:
        frame = batch(first, 60)
        frame["grade"] = [*"abc"] * 20
        frame["place"] = ["north"] * 30 + ["south"] * 30
        recode = {"columns": {"grade": "interval"}}
        given = {"privacy": private, "partition": by_place, "recode": recode, **changes}
        found = config(tmp_path, frame, mode, **given)
        grade = {"role": "quasi_identifier", "scale": "ordinal", "order": [*order]}
        found["attributes"] |= {"grade": grade, "place": {"role": "drop"}}
        found["attributes"]["illness"]["hierarchy"] = str(trees[tree])
        return found

    said = shell.release(made(0, "error"))
    assert said.code == 0, said.err
    changes: list[tuple[dict[str, Any], str]] = [
        ({"order": "bca"}, "the order of column grade was another one"),
        ({"tree": "deep"}, "the hierarchy of column illness was another one"),
        (
            {"partition": {"steps": [{"type": "kmeans"}]}},
            "each controller of column place, and are",
        ),
    ]
    for change, text in changes:
        refused(shell.release(made(60, **change)), text, "a batch may only strengthen it")
    said = shell.release(made(60))
    assert said.code == 0, said.err


def test_overwriting_says_what_is_weaker(shell: Shell, started: Path) -> None:
    release = {"acknowledge_overwrite": True}
    again = config(started, batch(0, 80), "overwrite", privacy=models_of(3), release=release)
    said = shell.release(again)
    assert said.code == 0, said.err
    assert "the replaced table promised more: k_anonymity k=5 was promised" in said.out


def test_a_run_id_is_of_one_config(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    people(60).to_parquet(tmp_path / "people.parquet", index=False)
    first = settings(tmp_path, release={"run_id": "one"})
    assert shell.release(first).code == 0
    before = multiset(table(spark, tmp_path))
    refused(
        shell.release({**first, "seed": 8}),
        "release.run_id: run one was published with another config",
    )
    # Another record path hides the record, not what the table says of itself.
    models = first["privacy"]["models"]
    weaker = [{"type": "k_anonymity", "k": 2}, *models[1:]]
    for change in (
        {"privacy": {"models": weaker}},
        {"partition": {"steps": [{"type": "mondrian"}]}},
    ):
        release = {**first["release"], "record": str(tmp_path / "elsewhere")}
        refused(
            shell.release({**first, **change, "release": release}),
            "release.run_id: run one was published with another config",
        )
    # Only the source has changed: the run is done, and that is said.
    people(90).to_parquet(tmp_path / "people.parquet", index=False)
    said = shell.release(first)
    assert said.code == 0
    assert "published before as version 0, 60 rows; the source was not read again" in said.out
    assert multiset(table(spark, tmp_path)) == before
    # Settings of Spark change no row.
    assert shell.release({**first, "spark": {"conf": {"spark.sql.ansi.enabled": "true"}}}).code == 0


def test_a_newer_version_of_the_source_is_said(
    shell: Shell, spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame(people(60))
    frame.write.format("delta").save(str(tmp_path / "raw"))
    first = settings(tmp_path, release={"run_id": "one"})
    first["source"] = {"format": "delta", "path": str(tmp_path / "raw")}
    assert shell.release(first).code == 0
    frame.write.format("delta").mode("append").save(str(tmp_path / "raw"))
    said = shell.release(first)
    assert "the source has changed since: version 0 was read, and it is at 1" in said.out


def test_a_record_is_never_overwritten_by_another_table(shell: Shell, tmp_path: Path) -> None:
    people(60).to_parquet(tmp_path / "people.parquet", index=False)
    shared = str(tmp_path / "records")
    texts = []
    for name in ("a", "b"):
        release = {"run_id": "one", "record": shared, "path": str(tmp_path / "out" / name)}
        said = shell.release(settings(tmp_path, release=release))
        texts.append((tmp_path / "records/one.json").read_text())
        if name == "a":
            assert said.code == 0, said.err
        else:
            refused(said, "release.run_id:", "is the record of another table's run")
            assert not (tmp_path / "out" / name / "_delta_log").exists()
    assert len({*texts}) == 1
