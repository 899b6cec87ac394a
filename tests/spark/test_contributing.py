"""A release made by all plug-ins of CONTRIBUTING.md, installed as the package that it shows: its
tasks, which are processes of their own, find them as well."""

import json
from pathlib import Path

import pytest

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
