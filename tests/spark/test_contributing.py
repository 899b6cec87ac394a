"""A release made by all plug-ins of CONTRIBUTING.md, installed as the package that it shows: its
tasks, which are processes of their own, find them as well."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.spark.support import Step, people, process, settings, write_config, write_people
from tests.texts import install_examples

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_a_release_by_the_examples(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    install_examples(site)
    write_people(tmp_path, people(240))
    config = settings(
        tmp_path,
        privacy={
            "models": [
                {"type": "k_anonymity", "k": 3},
                {"type": "present_values", "n": 4, "attribute": "illness"},
            ]
        },
        partition={"steps": [{"type": "halves"}], "max_rows": 100},
        kernel={"type": "neighbours"},
        recode={"columns": {"wage": "lowest"}},
        evaluate={"measures": [{"type": "kept"}]},
        gates=[{"figure": "kept.share", "at_least": 1.0}],
    )
    conf = write_config(tmp_path, config)
    table = config["release"]["path"]
    steps = [
        Step(["release", conf, "--run-id", "r1"]),
        Step(["audit", table, "--conf", conf, "--json"]),
    ]
    codes, out, err = process(tmp_path / "run", steps, PYTHONPATH=str(site))
    assert codes == [0, 0], err
    assert "passed  kept.share at least 1" in out
    verdicts = json.loads(out[out.index("\n{") :])["verdicts"]
    assert [(v["model"], v["holds"]) for v in verdicts] == [
        ("k_anonymity k=3", True),
        ("present_values n=4 attribute=illness", True),
    ]
    record = json.loads((tmp_path / "out" / "table.private" / "r1.json").read_text("utf-8"))
    assert record["n_blocks"] > 1


def test_a_form_and_a_risk_of_another_package(tmp_path: Path) -> None:
    """Each is one file: what reads a release knows neither by name."""
    about = tmp_path / "site" / "other-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[anonlib.recoder]\nwidened = other:Widened\n[anonlib.measure]\nsmallest = other:Smallest\n"
    )
    code = (Path(__file__).parents[1] / "contributed.py").read_text("utf-8")
    (tmp_path / "site" / "other.py").write_text(code, "utf-8")
    write_people(tmp_path, people(240))
    config = settings(
        tmp_path,
        recode={"columns": {"wage": {"type": "widened", "step": 100}}},
        evaluate={"measures": ["moments", "marginals", "queries", "linkage", "smallest"]},
        gates=[{"figure": "smallest.persons", "at_least": 3}],
    )
    conf = write_config(tmp_path, config)
    table = config["release"]["path"]
    steps = [
        Step(["release", conf, "--run-id", "r1"]),
        Step(["audit", table, "--conf", conf]),
        Step(["evaluate", conf]),
    ]
    codes, out, err = process(tmp_path / "run", steps, PYTHONPATH=str(tmp_path / "site"))
    assert codes == [0, 0, 0], err
    wages = [row["wage"] for row in DeltaTable(table).to_pyarrow_table().to_pylist()]
    assert all(w["lower"] % 100 == 0 == w["upper"] % 100 for w in wages)
    private = tmp_path / "out" / "table.private"
    measures = json.loads((private / "r1.json").read_text("utf-8"))["evaluation"]["measures"]
    for name in ("moments", "marginals", "linkage"):  # all of which read the intervals
        figures = measures[name]["figures"]
        assert [f for f in figures if f["of"] in ("wage", "")], name
        assert all(f["value"] is not None for f in figures if f["of"] == "wage"), name
    assert next(f["value"] for f in measures["linkage"]["figures"] if f["name"] == "cell") > 0
    page = (private / "r1.html").read_text("utf-8")
    assert page.index('id="risk"') < page.index(">smallest<")
    assert "passed  smallest.persons at least 3" in out
