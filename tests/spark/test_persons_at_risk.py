"""Measures of persons on a release: what workers, samples and a population tell of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.support import MARKER, Shell, people, settings, write_config, write_people

pytestmark = pytest.mark.spark

MEASURES = [
    {"type": "dominance", "share": 0.9},
    {"type": "fairness", "columns": ["illness", "city"]},
    {"type": "special_uniques", "max_size": 2},
]


def figures(folder: Path, run: str) -> dict[tuple[str, str, str], float | None]:
    record = json.loads((folder / "out" / "table.private" / f"{run}.json").read_text())
    return {
        (measure, each["name"], each["of"]): each["value"]
        for measure, found in record["evaluation"]["measures"].items()
        for each in found["figures"]
    }


def rows_of(folder: Path, run: str, measure: str, of: str) -> list[list[Any]]:
    record = json.loads((folder / "out" / "table.private" / f"{run}.json").read_text())
    series = record["evaluation"]["measures"][measure]["series"]
    (found,) = [each["rows"] for each in series if each["of"] == of]
    return list(found)


def test_measures_of_persons(shell: Shell, spark: SparkSession, tmp_path: Path) -> None:
    write_people(tmp_path)
    other = people(400).assign(CITY=lambda rows: rows["city"], extra=1)
    other[["CITY", "extra"]].to_csv(tmp_path / "all.csv", index=False)
    source = {
        "format": "csv",
        "path": str(tmp_path / "all.csv"),
        "options": {"header": "true"},
        "where": "extra = '1'",
    }
    population = {"type": "population", "source": source, "columns": {"city": "CITY"}}
    given = settings(
        tmp_path,
        recode={"columns": {"city": "set"}},
        evaluate={"measures": [*MEASURES, population]},
    )
    said = shell.release(given, "--run-id", "r1")
    assert said.code == 0
    found = figures(tmp_path, "r1")
    released = spark.read.format("delta").load(str(tmp_path / "out" / "table")).toPandas()
    cell = released.groupby(["wage", released["city"].map(tuple)])["wage"].transform("size")

    # Wages are about equal: no mean tells one. Groups have their own mean chance.
    assert found["dominance", "p_cells", "wage"] == 0
    assert found["dominance", "nk_rows", "wage"] == 0
    chance = (1 / cell).groupby(released["illness"]).mean()
    shown = {row[0]: row for row in rows_of(tmp_path, "r1", "fairness", "illness")}
    assert {name: row[1] for name, row in shown.items()} == dict.fromkeys(chance.index, 12)
    for name, risk in chance.items():
        assert shown[str(name)][4] == pytest.approx(risk, abs=2e-6)
    assert found["fairness", "worst_risk", "illness"] == pytest.approx(chance.max(), abs=2e-6)
    assert found["fairness", "worst_suppression", "city"] == 0

    frame = people()
    alone = frame.groupby(["wage", "city"])["name"].transform("size") == 1
    assert found["special_uniques", "singled_out", ""] == pytest.approx(alone.mean())
    assert found["special_uniques", "singled_out_after", ""] == 0
    assert alone.any()

    size = other["CITY"].value_counts()
    within = released["city"].map(lambda each: size[list(each)].sum())
    assert found["population", "k_map", ""] == within.min()
    assert found["population", "journalist_mean", ""] == pytest.approx((1 / within).mean())

    # Every record has the columns before and after, without any config.
    record = json.loads((tmp_path / "out" / "table.private" / "r1.json").read_text())
    shares = {each["of"]: each["rows"] for each in record["overview"]["series"]}
    assert {*shares} == {"wage", "city", "illness"}
    assert shares["illness"] == [[f"{MARKER}-illness-{i}", 0.2, 0.2] for i in range(5)]
    assert MARKER not in said.err + said.out


@pytest.mark.parametrize(
    ("path", "where", "text"),
    [
        ("nobody.csv", None, "evaluate.measures.1.source.path: no such file: "),
        ("all.csv", "AGE > 1", "evaluate.measures.1.source.where: "),
    ],
)
def test_a_population_is_opened_before_the_work(
    shell: Shell, tmp_path: Path, path: str, where: str | None, text: str
) -> None:
    write_people(tmp_path)
    people(40)[["city"]].to_csv(tmp_path / "all.csv", index=False)
    source = {"format": "csv", "path": str(tmp_path / path), "options": {"header": "true"}}
    population = {"type": "population", "source": source, "columns": {"city": "city"}}
    if where is not None:
        source["where"] = where
    given = settings(tmp_path, evaluate={"measures": ["moments", population]})
    for verb in ("check", "release"):
        said = shell(verb, write_config(tmp_path, given))
        assert said.code == 2
        assert text in said.error
    assert "scan: started" not in said.err  # of the release
    assert not (tmp_path / "out" / "table").exists()


def test_suppressed_cells_and_tuples(shell: Shell, tmp_path: Path) -> None:
    """Groups lose rows with the costliest cells; and one search over all tuples counts, too."""
    frame = people().drop(columns="wage")
    frame["age"] = [i % 3 + 40 * (i == 7) for i in range(60)]
    write_people(tmp_path, frame)
    quasi = {"role": "quasi_identifier", "scale": "nominal"}
    given = settings(
        tmp_path,
        privacy={"models": [{"type": "k_anonymity", "k": 3}], "suppression_limit": 0.1},
        evaluate={"measures": [{"type": "fairness", "columns": ["city", "illness"]}]},
    )
    given["attributes"] = {**given["attributes"], "age": quasi}
    del given["attributes"]["wage"]
    costly = {**given["privacy"], "suppress": "costliest"}
    ordered = {**quasi, "scale": "continuous"}
    changed = {**given, "privacy": costly, "attributes": {**given["attributes"], "age": ordered}}
    assert shell.release(changed, "--run-id", "r1").code == 0
    lost = figures(tmp_path, "r1")["fairness", "worst_suppression", "illness"]
    rows = rows_of(tmp_path, "r1", "fairness", "illness")
    record = json.loads((tmp_path / "out" / "table.private" / "r1.json").read_text())
    assert sum(row[1] for row in rows) == record["n_rows_out"] == 60 - record["n_suppressed"] < 60
    assert lost is not None
    assert lost > 0
    given["release"] = {"path": str(tmp_path / "out" / "other")}
    given |= {"kernel": "full_domain", "partition": {"steps": [{"type": "tuples"}]}}
    assert shell.release(given, "--run-id", "r2").code == 0
    private = tmp_path / "out" / "other.private" / "r2.json"
    findings = json.loads(private.read_text())["evaluation"]["measures"]["fairness"]
    of = {each["of"]: each for each in findings["figures"] if each["name"] == "worst_loss"}
    assert of["city"]["value"] > 0
    assert of["illness"]["value"] is None
    assert "the partitioner `tuples`" in of["illness"]["note"]
