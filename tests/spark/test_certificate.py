"""The certificate of a release, against its table: every line that a table can tell."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

import anonlib
from anonlib.pages.seal import Facts, open_seal
from anonlib.run.confirmation import LineVerdict
from anonlib.run.run_table import list_past_runs
from anonlib.spark.delta_files import forget
from tests.spark.support import MARKER, Shell, settings, write_config, write_people

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("noted")]

POLICY = {
    "name": "ours",
    "title": "a policy of tests",
    "rules": [
        {
            "id": "classes",
            "type": "class_size",
            "at_least": 3,
            "says": "Classes have 3 persons.",
            "source": "tests",
        },
        {"id": "contract", "type": "confirm", "says": "It is signed.", "source": "tests"},
    ],
}


@dataclass(frozen=True)
class Certified:
    """A release, and its certificate."""

    config: str
    table: str
    record: str
    certificate: str

    @property
    def page(self) -> str:
        return Path(self.certificate).read_text("utf-8")

    def verify(self, record: str | None = None) -> tuple[LineVerdict, ...]:
        return anonlib.verify(self.certificate, self.table, record=record)


@pytest.fixture(scope="module")
def certified(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Certified:
    folder = tmp_path_factory.mktemp("certificate")
    write_people(folder)
    config = settings(
        folder,
        release={"run_id": "r1"},
        policy=POLICY,
        accountability={"approver": "data office", "purpose": "a study"},
        context={"access": "contract", "may_know": ["wage", "city"], "expires": "2999-11-30"},
        evaluate={"measures": ["marginals", "reidentification"]},
        gates=[{"figure": "reidentification.prosecutor_max", "at_most": 0.4}],
    )
    result = anonlib.release(config)
    assert [rule.state for rule in result.policy] == ["kept", "to confirm"]
    record = result.record
    page = anonlib.certify(record)
    return Certified(write_config(folder, config), result.table, record, page)


def states(lines: tuple[LineVerdict, ...]) -> dict[str, set[str]]:
    """By state: the first texts of lines."""
    found: dict[str, set[str]] = {}
    for line in lines:
        found.setdefault(line.state, set()).add(line.name)
    return found


def test_the_record_has_who_and_which_rules(certified: Certified) -> None:
    record = json.loads(Path(certified.record).read_text())
    assert record["context"] == {
        "access": "contract",
        "may_know": ["wage", "city"],
        "expires": "2999-11-30",
    }
    assert record["accountability"] == {"approver": "data office", "purpose": "a study"}
    assert [rule["state"] for rule in record["policy"]] == ["kept", "to confirm"]
    assert "the smallest class has" in record["policy"][0]["reason"]
    (run,) = (row for row in runs_of(certified) if row["outcome"] == "published")
    assert (run["access"], run["expires"], run["policy"]) == ("contract", "2999-11-30", "ours")


def runs_of(certified: Certified) -> list[dict[str, object]]:
    return list_past_runs(str(Path(certified.record).parent / "runs"))


def test_what_the_table_confirms(certified: Certified) -> None:
    found = states(certified.verify())
    assert found.keys() == {"confirmed", "unsaid"}
    assert found["confirmed"] >= {
        "rows",
        "classes",
        "rows of the smallest class",
        "rows and values of the table",
        "run",
        "promise",
        "software",
        "k_anonymity k=3",
        "l_diversity l=2 attribute=illness",
    }
    assert "purpose" in found["unsaid"]
    assert states(certified.verify(certified.record)).keys() == {"confirmed"}
    assert MARKER not in certified.page


def test_facts_that_were_sealed_again(certified: Certified, tmp_path: Path) -> None:
    """Who changes the facts and all that shows them is found out by the table, or by the record."""
    content = json.loads(open_seal(certified.page).text)

    def forge(name: str, text: str) -> Certified:
        (line,) = [
            line
            for section in content["sections"]
            for line in section["lines"]
            if line["cells"][0] == name
        ]
        kept, line["cells"][1] = line["cells"][1], text
        path = tmp_path / "forged.html"
        path.write_text(Facts(content).page())
        line["cells"][1] = kept
        return Certified(certified.config, certified.table, certified.record, str(path))

    assert states(forge("rows", "61").verify())["contradicted"] == {"rows"}
    assert states(forge("until", "2024-02-29").verify())["contradicted"] == {"until"}
    # What is counted is not for the forger to choose.
    for name, value in (
        ("classes", False),
        ("persons", "unknown"),
        ("quasi_identifiers", ["city"]),
        ("models", []),
    ):
        kept, content["audit"][name] = content["audit"][name], value
        wrong = states(forge("rows of the smallest class", "50").verify())["contradicted"]
        assert "rows of the smallest class" in wrong, name
        if name != "models":
            assert f"what is counted: {name}" in wrong
        content["audit"][name] = kept
    verdicts = next(s for s in content["sections"] if s["title"] == "Verdicts")["lines"]
    assert verdicts[0]["cells"][0] == "k_anonymity k=3"
    verdicts[0]["cells"][0] = "k_anonymity k=50"
    wrong = states(forge("rows", "60").verify())["contradicted"]
    assert wrong >= {"k_anonymity k=3", "k_anonymity k=50"}
    verdicts[0]["cells"][0] = "k_anonymity k=3"
    other = forge("purpose", "sale")
    assert "contradicted" not in states(other.verify())  # no table knows a purpose
    assert states(other.verify(certified.record))["contradicted"] >= {"purpose"}


def test_another_table(certified: Certified, spark: SparkSession, shell: Shell) -> None:
    table = f"delta.`{certified.table}`"
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1")
    try:
        said = shell("verify", certified.certificate, certified.table, "--json")
        assert said.code == 3, said
        lines = json.loads(said.out)
        wrong = {line["name"] for line in lines if line["state"] == "contradicted"}
        assert wrong >= {"rows", "rows and values of the table"}
        said = shell("verify", certified.certificate, certified.table, "--version", "0")
        assert (said.code, "0 contradicted" in said.out) == (0, True), said
    finally:
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF 0")
        forget(spark, certified.table)


def test_columns_whose_names_were_exchanged(spark: SparkSession, tmp_path: Path) -> None:
    """By commands that write no file: the digest goes by names."""
    write_people(tmp_path)
    result = anonlib.release(settings(tmp_path))
    table, record = result.table, result.record
    page = anonlib.certify(record)
    assert json.loads(Path(record).read_text())["table_columns"] == [
        *spark.read.format("delta").load(table).columns
    ]
    name = f"delta.`{table}`"
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN illness FIRST")
    assert "contradicted" not in states(anonlib.verify(page, table))
    for old, new in (("illness", "other"), ("city", "illness"), ("other", "city")):
        spark.sql(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}")
    for given in ({}, {"record": record}):
        wrong = states(anonlib.verify(page, table, **given))["contradicted"]
        assert "rows and values of the table" in wrong
    forget(spark, table)


def test_an_audit_that_asks_less_than_the_release_promised(
    certified: Certified, shell: Shell
) -> None:
    """The manifest tells: a note that can't be overlooked, and no failure."""
    report = anonlib.audit(certified.table, certified.config)
    assert (report.passed, report.shortfalls) == (True, ())
    assert report.premises[0] == "quasi-identifiers: wage, city"
    config = yaml.safe_load(Path(certified.config).read_text())
    weaker = {
        **config,
        "one_row_per_person": True,
        "attributes": {**config["attributes"], "city": {"role": "insensitive"}},
        "privacy": {"models": [{"type": "k_anonymity", "k": 2}], "acknowledge_unique": ["city"]},
    }
    del weaker["policy"], weaker["context"]
    path = Path(certified.config).parent / "weaker.yaml"
    path.write_text(yaml.safe_dump(weaker))
    report = anonlib.audit(certified.table, str(path))
    assert report.passed
    assert report.premises[-1] == "rare combinations acknowledged: city, not counted"
    begins = ["column city was", "persons were checked", "k_anonymity k=3 was", "l_diversity l=2"]
    found = zip(report.shortfalls, begins, strict=True)
    assert all(text.startswith(begin) for text, begin in found)
    said = shell("audit", certified.table, "--conf", str(path), "--format", "junit")
    assert (said.code, 'skipped="1"' in said.out) == (0, True), said
    assert anonlib.audit(certified.table, str(path), version=0).shortfalls == report.shortfalls
