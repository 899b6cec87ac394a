"""`anonlib suggest` before Spark: what its argument is, and the draft for a table."""

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import yaml

from anonlib.cli import main
from anonlib.config.model import Config
from anonlib.config.reading import load, parse
from anonlib.guesses.draft import TableProfile
from anonlib.guesses.guess import ColumnProfile
from anonlib.run import source_sample
from anonlib.source import profile as profiling
from tests.unit.test_anonymize import people
from tests.unit.test_explorer import config_of, data_of

FRAME = people(600)[["age", "city"]]
COLUMNS = (
    ColumnProfile("age", "int", 600, 60),
    ColumnProfile("city", "string", 600, 5),
    ColumnProfile("land", "string", 600, 1),  # says nothing: it is dropped, and not in the sample
)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Stands for Spark: the profile of the table, and its rows. Works in `tmp_path`."""
    monkeypatch.chdir(tmp_path)

    def stand_in(frame: pd.DataFrame = FRAME, n_rows: int = 600) -> None:
        def profile(table: str, given: str, options: Any, progress: Any, secrets: Any) -> Any:
            return TableProfile(given or "csv", table, None, n_rows, 600, COLUMNS, options, secrets)

        def read_sample(config: Config, *_: Any) -> source_sample.SourceSample:
            own = source_sample._in_memory(config, [*frame.columns])
            return source_sample.SourceSample(pa.Table.from_pandas(frame), own, is_whole=True)

        monkeypatch.setattr(profiling, "profile", profile)
        monkeypatch.setattr(source_sample, "read_sample", read_sample)

    return stand_in


QUICK = ("--k", "10", "--kernels", "mondrian")


def test_a_table_gets_a_draft_with_the_first_choice(
    table: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    table()
    assert main(["suggest", "in/people.csv.gz", *QUICK]) == 0
    said = capsys.readouterr()
    assert said.err.count("written: people.yaml") == 2
    config = load("people.yaml")
    assert config.kernel.type in ("mdav", "mondrian")
    assert {"attributes.age", "attributes.land", "privacy.models"} <= {*config.review}
    text = Path("people.yaml").read_text()
    assert "# The least loss by `anonlib suggest` (2 of 2 attempts, on 600 rows): Kernel" in text
    assert "partitioner" not in said.out  # one block has nothing to compare
    # The first choice is in the file; nobody has looked at it, so it can't be released.
    assert "anonlib check people.yaml\n" in said.out
    assert "--set" not in said.out.split("check people.yaml")[0]
    assert main(["release", "people.yaml"]) == 2
    assert "review" in capsys.readouterr().err


def test_several_numbers_have_blanks_between(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "people.csv", "--k", "12,20"]) == 2
    assert "if several are allowed, put blanks between them: 12 20" in capsys.readouterr().err


def test_a_draft_has_the_seed_that_was_tried(
    table: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    table()
    tried: list[int] = []
    read = source_sample.read_sample

    def noted(config: Config, *rest: Any) -> Any:
        tried.append(config.seed)
        return read(config, *rest)

    monkeypatch.setattr(source_sample, "read_sample", noted)
    assert main(["suggest", "people.csv", *QUICK]) == 0
    assert tried == [load("people.yaml").seed]


def test_a_table_of_several_blocks_compares_partitioners(
    table: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    table(n_rows=50_000)
    assert main(["suggest", "t.parquet", *QUICK, "--out", "my.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["draft"] == "my.yaml"
    (note,) = [note for note in found["notes"] if "by partitioner" in note]
    assert note.startswith("loss by partitioner, in blocks of at most 150 rows: kmeans 0.")
    losses = {
        name: float(loss)
        for name, loss in (part.split() for part in note.split(": ")[1].split("; "))
    }
    (step,) = yaml.safe_load(Path("my.yaml").read_text())["partition"]["steps"]
    assert losses[step["type"]] == min(losses.values())
    assert [*losses] == ["kmeans", "mondrian"]


def test_the_draft_stays_where_nothing_can_be_tried(
    table: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    table(FRAME.head(6))
    assert main(["suggest", "people.csv", *QUICK]) == 2
    assert "asks for 10 rows; there are 6" in capsys.readouterr().err
    assert load("people.yaml").kernel.type == "mdav"


def test_the_page_has_configs_of_the_source(table: Callable[..., None]) -> None:
    """Those that were given, with what attempts in memory do without; but nothing that may be
    data."""
    table()
    given = {
        "source": {"format": "csv", "path": "in.csv", "where": "city <> 'Zanzibar'"},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous", "type": "int"},
            "city": {
                "role": "quasi_identifier",
                "scale": "ordinal",
                "order": [*sorted(set(FRAME["city"])), "Zanzibar"],
            },
        },
        "one_row_per_person": True,
        "privacy": {
            "models": [{"type": "k_anonymity", "k": 5}],
            "missing_tokens": ["?", "Zanzibar"],
        },
        "evaluate": {"measures": ["reidentification"]},
        "gates": [{"figure": "reidentification.marketer", "at_most": 0.3}],
        "accountability": {"approver": "A. B.", "purpose": "research"},
        "release": {"path": "out/people", "partition_by": ["city"]},
        "spark": {"conf": {"spark.sql.shuffle.partitions": "7"}},
    }
    Path("c.yaml").write_text(yaml.safe_dump(given))
    assert main(["suggest", "c.yaml", *QUICK, "--page", "page.html"]) == 0
    page = Path("page.html").read_text()
    assert "Zanzibar" not in page
    own, data = load("c.yaml"), data_of(page)
    texts = re.findall(r"<summary>Config</summary><pre>(.*?)</pre>", page, re.DOTALL)
    assert len(texts) == 3
    told = [config_of(data, i) for i in range(len(data["settings"]))] + [*map(unescape, texts)]
    kinds = []
    for text in told:
        shown = parse(yaml.safe_load(text))
        assert {*shown.review} == {
            "source.where", "attributes.city", "privacy.missing_tokens", "spark"
        }  # fmt: skip
        assert shown.source == own.source.model_copy(update={"where": None})
        assert shown.attributes["age"] == own.attributes["age"]
        for name in ("gates", "evaluate", "accountability", "release"):
            assert getattr(shown, name) == getattr(own, name)
        kinds.append((shown.kernel.type, shown.k))
    assert {*kinds[:-3]} == {(kernel, k) for kernel in ("mdav", "mondrian") for k in (5, 10)}
    assert {*kinds[-3:]} < {*kinds[:-3]}


def test_the_gates_of_a_config_are_kept_to(
    table: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The sample is tried without them: no measure runs on it."""
    table()
    given = {
        "source": {"format": "csv", "path": "people.csv"},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "city": {"role": "quasi_identifier", "scale": "nominal"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
        "evaluate": {"measures": ["reidentification"]},
        "gates": [{"figure": "reidentification.prosecutor_max", "at_most": 0.1}],
        "release": {"path": "out/people"},
    }
    Path("c.yaml").write_text(yaml.safe_dump(given))
    assert main(["suggest", "c.yaml", *QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {choice["k"] for choice in found["choices"]} == {10}
    assert any("2 of 4 attempts are outside" in note for note in found["notes"])


def test_what_is_there_stays(
    table: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    table()
    Path("people.yaml").write_text("mine")
    assert main(["suggest", "people.csv"]) == 2
    assert "people.yaml: is there already; name another file with --out" in capsys.readouterr().err
    assert Path("people.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "content"), [("people.xlsx", b"PK\x03\x04\xff"), ("people", b"a;b\n1;2\n")]
)
def test_neither_a_config_nor_a_table(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    assert main(["suggest", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert f"{name}: is neither a config (a YAML file) nor a table (.csv" in said
    assert "--format" in said


def test_a_name_that_is_nearly_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "adult.csv").write_text("age\n1\n")
    assert main(["suggest", str(tmp_path / "adult.cvs")]) == 2
    assert capsys.readouterr().err.endswith("; did you mean adult.csv?\n")
    assert main(["suggest", str(tmp_path / "folder" / "adult.cvs")]) == 2
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["nope.yaml"], "nope.yaml: can't be read"),
        (["nope"], "nope: can't be read"),
        (["c.yaml", "--out", "d.yaml"], "--out: only for a table, and c.yaml is taken as a config"),
        (["t.csv", "--set", "seed=1"], "--set: changes a config, and t.csv is a table"),
        (["t.csv", "--option", "password=x"], "--option password: a secret does not belong"),
        (["t.csv", "--partitioners", "kmean"], "kmeans"),
    ],
)
def test_what_does_not_fit(argv: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", *argv]) == 2
    assert text in capsys.readouterr().err
