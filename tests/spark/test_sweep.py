"""A tiny sweep on Spark: done once, gone on with, and true to a release."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from pyspark.sql import SparkSession

from anonlib.config.minimum_k import VARIABLE
from anonlib.sweeps import in_spark as sweeping
from tests.spark.support import MARKER, Said, Shell, holding, settings

pytestmark = pytest.mark.spark


def people(n: int = 60) -> pd.DataFrame:
    random = np.random.default_rng(2)
    wage = random.normal(size=n)
    return pd.DataFrame(
        {
            "wage": wage,
            "city": [f"{MARKER}-city-{i}" for i in random.integers(0, 4, n)],
            "label": np.where(wage + random.normal(0, 0.3, n) > 0, f"{MARKER}-a", f"{MARKER}-b"),
        }
    )


def config(folder: Path) -> dict[str, Any]:
    quasi = {"role": "quasi_identifier"}
    base = settings(folder, privacy={"models": [{"type": "k_anonymity", "k": 3}]})
    base["attributes"] = {
        "wage": {**quasi, "scale": "continuous"},
        "city": {**quasi, "scale": "nominal"},
        "label": {"role": "target", "public": True},
    }
    return {**base, "one_row_per_person": True, "partition": {"steps": [{"type": "single"}]}}


def sweep(shell: Shell, folder: Path, *argv: str, **changes: Any) -> Said:
    base = {
        "cases": {"people": {"config": {**config(folder)}}},
        "learn": {"model": "logistic_regression"},
        "grid": {"privacy.models.0.k": [3, 50]},
        "out": str(folder / "sweep"),
    }
    (folder / "sweep.yaml").write_text(yaml.safe_dump({**base, **changes}))
    return shell("sweep", str(folder / "sweep.yaml"), "--json", *argv)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    people().to_parquet(tmp_path / "people.parquet", index=False)
    return tmp_path


def test_a_sweep_goes_on_where_it_stopped(shell: Shell, spark: SparkSession, folder: Path) -> None:
    first = sweep(shell, folder)
    assert first.code == 0, first.err
    found = json.loads(first.out)
    assert (found["n_points"], found["n_new"], found["n_failed"]) == (2, 2, 1)
    good, bad = found["rows"]
    assert good["error"] is None
    assert 0.5 < good["accuracy"] <= 1
    assert good["least_persons"] >= 3
    assert bad["error"].startswith("InfeasibleError")
    assert "accuracy" not in bad
    assert "of 2" in first.err  # the progress

    again = json.loads(sweep(shell, folder, "--set", "seeds=2").out)
    assert (again["n_points"], again["n_new"]) == (4, 2)
    assert again["rows"][:2] == found["rows"]
    assert json.loads(sweep(shell, folder, "--set", "seeds=2").out)["n_new"] == 0

    retried = json.loads(sweep(shell, folder, "--set", "seeds=2", "--retry").out)
    assert retried["n_new"] == 2
    table = spark.read.format("delta").load(str(folder / "sweep" / "results"))
    assert table.count() == 6
    assert (folder / "sweep" / "summary.md").read_text().startswith("## people")
    assert (folder / "sweep").stat().st_mode & 0o077 == 0
    assert holding(MARKER, folder / "sweep") == []

    changed = people()
    changed.loc[0, "wage"] = 9.5
    changed.to_parquet(folder / "people.parquet", index=False)
    assert json.loads(sweep(shell, folder).out)["n_new"] == 2


def test_a_finished_sweep_writes_the_same_files_again(shell: Shell, folder: Path) -> None:
    def files() -> dict[str, bytes]:
        places = [folder / "sweep" / name for name in ("results.csv", "summary.md", "report.html")]
        return {place.name: place.read_bytes() for place in places}

    grid = {"privacy.models.0.k": [3, 6]}
    learn = {"model": "logistic_regression", "folds": 2}
    assert sweep(shell, folder, grid=grid, learn=learn).code == 0
    before = files()
    assert json.loads(sweep(shell, folder, grid=grid, learn=learn).out)["n_new"] == 0
    assert files() == before
    head = before["results.csv"].decode().splitlines()[0].split(",")
    figures = head[head.index("seed") + 1 : head.index("rows")]
    # Metrics, scores, then others by name.
    assert figures.index("ncp") < figures.index("sse") < figures.index("accuracy")
    others = [name for name in figures if "_accuracy" in name]
    assert others == ["baseline_accuracy", "cv_accuracy", "raw_accuracy"]
    assert figures.index("accuracy") < figures.index("baseline_accuracy")


def test_no_point_is_below_the_operators_minimum(shell: Shell, folder: Path) -> None:
    shell.patch.setenv(VARIABLE, "10")
    said = sweep(shell, folder)
    assert said.code == 2
    assert "k is 3; the operator of this installation allows no k below 10" in said.error
    assert not (folder / "sweep" / "results").exists()


def test_what_was_done_before_an_interruption_stays(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    done = sweeping._try_batch

    def interrupted(spark: Any, items: Any, shared: Any) -> Any:
        batches.append(len(items))
        if len(batches) > 1:
            raise KeyboardInterrupt
        return done(spark, items, shared)

    grid = {"privacy.models.0.k": [3, 4, 5, 6, 7, 8, 9]}
    with monkeypatch.context() as patched:
        patched.setattr(sweeping, "_try_batch", interrupted)
        patched.setattr(sweeping, "SECONDS_PER_BATCH", 0.0)
        said = sweep(shell, folder, grid=grid, learn=None)
    assert said.code not in (0, 2)
    again = json.loads(sweep(shell, folder, grid=grid, learn=None).out)
    assert (again["n_points"], again["n_new"]) == (7, 7 - batches[0])
    assert 0 < batches[0] < 7
    assert [row["privacy.models.0.k"] for row in again["rows"]] == grid["privacy.models.0.k"]


def test_losses_are_those_of_a_release(shell: Shell, folder: Path) -> None:
    cases = {"people": {"config": config(folder), "derive": {"wage": "wage * 1"}}}
    grid = {"kernel.type": ["mondrian"]}
    one_cell = {"set": {"privacy.models.0.k": 50, "recode.continuous": "interval"}}
    learn = {"model": "logistic_regression", "split": "after", "version": one_cell}
    [tried] = json.loads(sweep(shell, folder, learn=learn, grid=grid, cases=cases).out)["rows"]
    assert tried["accuracy"] == tried["baseline_accuracy"] < tried["raw_accuracy"]
    said = shell.release({**config(folder), "kernel": "mondrian", "seed": 0})
    assert said.code == 0, said.err
    [record] = (folder / "out" / "table.private").glob("*.json")
    losses = json.loads(record.read_text())["losses"]
    assert {name: tried[name] for name in losses} == pytest.approx(losses, nan_ok=True)


def test_what_does_not_fit(shell: Shell, folder: Path) -> None:
    cases = {"people": {"config": config(folder)}, "other": {"config": config(folder)}}
    del cases["other"]["config"]["attributes"]["city"]
    said = sweep(shell, folder, "--set", "max_rows=10", cases=cases)
    assert said.code == 2
    assert "cases.people: source: the table has more than max_rows = 10 rows" in said.error
    assert "cases.other: column city: has no role" in said.error
    cases = {"people": {"config": config(folder), "derive": {"wage": "wages + 1"}}}
    said = sweep(shell, folder, cases=cases)
    assert said.code == 2
    assert "cases.people.derive.wage: no column wages; did you mean wage?" in said.error
    of_people = config(folder)
    of_people["attributes"] |= {"pay": {"role": "insensitive"}, "rate": {"role": "insensitive"}}
    derived = {"wage": "wage + 1", "pay": "cast(city as int)", "rate": "1 / (wage - wage)"}
    cases = {"people": {"config": of_people, "derive": derived}}
    said = sweep(shell, folder, cases=cases)
    assert said.code == 2
    assert "cases.people.derive.pay: fails on a value, with CAST_INVALID_INPUT; use " in said.error
    assert "cases.people.derive.rate: fails on a value, with DIVIDE_BY_ZERO; use " in said.error
    assert "derive.wage" not in said.error


def test_the_page_has_risks_and_configs_that_release(
    shell: Shell, spark: SparkSession, folder: Path
) -> None:
    grid = {"privacy.models.0.k": [3, 6]}
    assert sweep(shell, folder, grid=grid, learn=None).code == 0
    table = spark.read.format("delta").load(str(folder / "sweep" / "results"))
    sizes = {row["parameters"]: row["sizes"] for row in table.collect()}
    data = explored(folder)
    assert [goal[0] for goal in data["goals"]][:2] == [
        "largest chance to be found",
        "mean chance to be found",
    ]
    for setting, k in zip(data["settings"], (3, 6), strict=True):
        counts = sizes[json.dumps({"privacy.models.0.k": k})]
        assert sum(size * n for size, n in counts.items()) == 60
        chances = [1 / min(counts), sum(counts.values()) / 60]
        assert [pair[0] for pair in setting["figures"][:2]] == pytest.approx(chances, rel=1e-4)
    lines = data["lines"]
    text = "\n".join(line for a, b in data["settings"][1]["yaml"] for line in lines[a:b])
    assert (said := shell.release(yaml.safe_load(text))).code == 0, said.err
    # A table of results of an earlier version has no sizes.
    old = table.drop("sizes").toPandas()
    spark.createDataFrame(old, table.drop("sizes").schema).write.format("delta").mode(
        "overwrite"
    ).option("overwriteSchema", "true").save(str(folder / "sweep" / "results"))
    again = json.loads(sweep(shell, folder, grid=grid, learn=None).out)
    assert (again["n_points"], again["n_new"]) == (2, 0)
    assert [goal[0] for goal in explored(folder)["goals"] if goal[2]] == [
        "largest chance to be found"
    ]
    assert json.loads(sweep(shell, folder, "--set", "seeds=2", grid=grid, learn=None).out)


def explored(folder: Path) -> Any:
    """What the script of the page reads."""
    text = (folder / "sweep" / "report.html").read_text("utf-8")
    return json.loads(text.split('id="explore-data">', 1)[1].split("</script>", 1)[0])
