"""`anonlib hierarchy` without Spark: what it would count in a source is given."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from anonlib.cli import main
from anonlib.config.model import Config
from anonlib.config.reading import load, load_columns
from anonlib.errors import ConfigError
from anonlib.hierarchy import read_hierarchy
from tests.support import data_dir

KINDS = ("intervals", "mask", "dates", "groups", "frequency", "target")
#: Nothing but the source is as a run needs it.
CONFIG = """
source: {format: csv, path: people.csv}
attributes:
  job: {role: quasi_identifier, scale: nominal, hierarchy: not-there-yet.csv}
  pay: {role: sensitive, type: int}
privacy: {missing_tokens: ["-"]}
kernel: {type: no such}
"""
JOBS = {"cook": 50, "clerk": 20, "spy": 1, "Cook": 2, "-": 3, None: 4}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conf.yaml").write_text(CONFIG)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked for; a table of jobs is given."""
    asked: list[Any] = []

    def count(config: Config, names: list[str], progress: Any) -> pa.Table:
        asked.append((config, names))
        columns: dict[str, Any] = {"v0": list(JOBS), "count": list(JOBS.values())}
        if len(names) > 1:
            columns["v1"] = ["rich", "rich", "poor", "rich", None, "rich"]
        return pa.table(columns)

    monkeypatch.setattr("anonlib.source.look.count_values", count)
    return asked


def run(*argv: str) -> int:
    return main(["hierarchy", *argv])


def built(*argv: str, out: str = "out.csv") -> list[str]:
    assert run("build", *argv, "--out", out) == 0
    return Path(out).read_text().splitlines()


class TestGrammar:
    @pytest.mark.parametrize(
        "action", ["", "build", "show", "check", *[f"build {k}" for k in KINDS]]
    )
    def test_help(self, action: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(*action.split(), "--help") == 0
        out = capsys.readouterr().out
        assert "--log-format" in out
        assert out.startswith(f"usage: anonlib hierarchy {action}".strip())

    @pytest.mark.parametrize(
        "argv",
        [
            [],
            ["build"],
            ["build", "trees", "--out", "x.csv"],
            ["build", "intervals", "--widths", "5", "--range", "1", "2"],
            ["build", "intervals", "--range", "1", "2", "--out", "x.csv"],
            [
                "build",
                "intervals",
                "--widths",
                "5",
                "--parts",
                "4",
                "--values",
                "a",
                "--out",
                "x.csv",
            ],
            ["build", "intervals", "--widths", "5", "--out", "x.csv"],
            ["build", "mask", "--values", "a", "--range", "1", "2", "--out", "x.csv"],
            ["build", "mask", "--masked", "0", "--values", "a", "--out", "x.csv"],
            ["build", "dates", "--levels", "week", "--values", "a", "--out", "x.csv"],
            ["build", "frequency", "--range", "1", "2", "--out", "x.csv"],
            ["build", "frequency", "--fan-out", "1", "--values", "a", "--out", "x.csv"],
            ["build", "target", "--conf", "c", "--column", "a", "--out", "x.csv"],
            ["build", "groups", "--order", "a", "b", "--out", "x.csv"],
            ["show"],
            ["show", "x", "--nodes", "0"],
        ],
    )
    def test_mistakes(self, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert run(*argv) == 2
        assert capsys.readouterr().err.startswith("usage: anonlib hierarchy")

    @pytest.mark.parametrize(
        "argv", [["--conf", "conf.yaml"], ["--values", "x", "--column", "job"]]
    )
    def test_config_and_column_go_together(
        self, argv: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("build", "frequency", *argv, "--out", "x.csv") == 2
        assert capsys.readouterr().err.startswith("error: --conf and --column: both are needed")


class TestBuild:
    @pytest.mark.parametrize(
        ("argv", "text"),
        [
            (["--parts", "2", "--origin", "1", "--range", "1", "9"], "--origin: goes with"),
            (["--widths", "2", "--step", "1", "--values", "x"], "--step: goes with"),
        ],
    )
    def test_flags_of_others(
        self, argv: list[str], text: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run("build", "intervals", *argv, "--out", "x.csv") == 2
        assert text in capsys.readouterr().err

    def test_of_a_range(self) -> None:
        lines = built("intervals", "--widths", "5", "10", "--range", "18", "31")
        assert lines[0] == "18;15-19;10-19;*"
        assert len(lines) == 14
        assert built(
            "intervals", "--widths", "1", "--range", "-1", "0", "--step", ".5", out="o.csv"
        )[:2] == ['-1;"[-1, 0[";*', '-0.5;"[-1, 0[";*']

    def test_of_a_range_of_days(self) -> None:
        argv = ["dates", "--levels", "month", "year", "--range", "2019-12-31", "2020-01-02"]
        assert built(*argv)[:2] == ["2019-12-31;2019-12;2019;*", "2020-01-01;2020-01;2020;*"]

    def test_of_a_list(self) -> None:
        Path("zip.txt").write_text("\ufeff12345\r\n12399\n\n12345\n20000\n")
        assert (
            built("mask", "--values", "zip.txt", "--masked", "2", "3")[0] == "12345;123**;12***;*"
        )

    def test_repeated_values_count(self) -> None:
        Path("jobs.txt").write_text("b\na\na\na\nc\n" * 2)
        assert built("frequency", "--values", "jobs.txt") == ["a;*", 'b;"{b, c}";*', 'c;"{b, c}";*']
        Path("pay.txt").write_text("1\n1\n1\n2\n3\n4\n")
        argv = ["intervals", "--parts", "2", "--values", "pay.txt"]
        assert built(*argv, out="pay.csv") == ["1;*", "2;2-4;*", "3;2-4;*", "4;2-4;*"]

    def test_of_an_order(self) -> None:
        given = ["groups", "--fan-out", "2", "--order", "low", "mid", "high", "--root", "all"]
        expected = "all:\n  - low to mid:\n      - low\n      - mid\n  - high\n"
        assert "\n".join([*built(*given, out="o.yaml"), ""]) == expected
        Path("order.txt").write_text("low\nmid\nhigh\n")
        argv = ["groups", "--fan-out", "2", "--values", "order.txt", "--root", "all"]
        assert "\n".join([*built(*argv, out="p.yml"), ""]) == expected

    def test_of_a_source(self, counted: list[Any]) -> None:
        argv = ["--conf", "conf.yaml", "--column", "job", "--set", "source.path=x.csv"]
        lines = built("frequency", *argv, out="job.csv")
        assert [line.split(";")[0] for line in lines] == ["-", "Cook", "spy", "clerk", "cook"]
        ((config, names),) = counted
        assert names == ["job"]
        assert config.source.path == "x.csv"

    def test_by_a_target(self, counted: list[Any]) -> None:
        argv = ["target", "--target", "pay", "--conf", "conf.yaml", "--column", "job"]
        lines = built(*argv, "--fan-out", "3")
        assert "spy;*" in lines
        ((config, names),) = counted
        assert names == ["job", "pay"]
        assert config.attributes["pay"].type == "int"

    def test_files_are_replaced_by_force_only(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("out.csv").write_text("old")
        argv = ["build", "intervals", "--widths", "5", "--range", "1", "9", "--out", "out.csv"]
        assert run(*argv) == 2
        assert capsys.readouterr().err == "error: out.csv: is there already; --force replaces it\n"
        assert Path("out.csv").read_text() == "old"
        assert run(*argv, "--force", "--quiet") == 0
        assert capsys.readouterr().err == ""
        assert Path("out.csv").read_text().startswith("1;0-4;*\n")

    def test_names_of_files(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("build", "frequency", "--values", "absent", "--out", "x.txt") == 2
        assert "ends in .csv, .yaml, .yml" in capsys.readouterr().err
        assert run("build", "frequency", "--values", "absent", "--out", "x.csv") == 2
        assert (
            capsys.readouterr().err == "error: absent: can't be read (No such file or directory)\n"
        )
        Path("odd").write_bytes(b"\xff")
        assert run("build", "frequency", "--values", "odd", "--out", "x.csv") == 2
        assert "not UTF-8 text" in capsys.readouterr().err

    def test_values_stay_out_of_errors(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("values.txt").write_text("s3cret\n12\n")
        for kind in (["intervals", "--widths", "5"], ["dates"]):
            assert run("build", *kind, "--values", "values.txt", "--out", "x.csv") == 2
            assert "s3cret" not in capsys.readouterr().err
        assert not Path("x.csv").exists()


class TestShow:
    def test_small(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("h.yaml").write_text('"*": {a: [x, "y\\e[31m"], b: [z]}\n')
        assert run("show", "h.yaml") == 0
        out = capsys.readouterr().out
        assert "nodes by height  0: 3, 1: 2, 2: 1" in out
        assert [line.strip("│├└─ ") for line in out.splitlines()[5:]] == [
            *("*  3", "a  2", "x", r"y\x1b[31m", "b  1", "z")
        ]

    def test_large_ones_are_cut(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The upper nodes come first; what is left out is counted."""
        built("intervals", "--widths", "10", "50", "--range", "0", "199")
        assert run("show", "out.csv", "--nodes", "7") == 0
        tree = [line.strip("│├└─ ") for line in capsys.readouterr().out.splitlines()[5:]]
        assert tree == [
            *("*  200", "0-49  50", "0-9  10", "10-19  10", "… 3 more"),
            *("50-99  50", "100-149  50", "150-199  50"),
        ]

    def test_what_is_none(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("h.yaml").write_text("a: [s3cret, s3cret]")
        for verb in ("show", "check"):
            assert run(verb, "h.yaml") == 2
            err = capsys.readouterr().err
            assert err.startswith(
                "error: hierarchy h.yaml: line 1: has a name that is also elsewhere"
            )
            assert "s3cret" not in err


class TestCheck:
    @pytest.fixture(autouse=True)
    def _hierarchy(self) -> None:
        Path("job.csv").write_text("cook;*\nclerk;*\njudge;*\n")

    def test_alone(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run("check", "job.csv", "--json") == 0
        assert json.loads(capsys.readouterr().out) == {"values": 3, "nodes_by_height": [3, 1]}
        assert run("check", "job.csv") == 0
        out = capsys.readouterr().out
        assert "job.csv: a hierarchy" in out
        assert "cook" not in out

    def test_against_a_column(self, counted: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
        argv = ["check", "job.csv", "--conf", "conf.yaml", "--column", "job"]
        assert run(*argv, "--json") == 2
        captured = capsys.readouterr()
        assert json.loads(captured.out)["column"] == {
            "n_values": 5,
            "n_rows": 76,
            "n_lacking_values": 3,
            "n_lacking_rows": 6,
            "n_missing_rows": 4,
            "n_unused_leaves": 1,
        }
        assert captured.err == (
            "error: hierarchy job.csv: lacks 3 of the 5 distinct values of column job (6 rows); "
            "add them, or set the source's options so that they are read as null\n"
        )
        assert run(*argv) == 2
        captured = capsys.readouterr()
        assert "3 in 6 rows" in captured.out
        assert "spy" not in captured.out + captured.err
        Path("job.csv").write_text("".join(f"{job};*\n" for job in JOBS if job))
        assert run(*argv) == 0

    def test_protected_text_is_folded(
        self, counted: list[Any], capsys: pytest.CaptureFixture[str]
    ) -> None:
        argv = ["check", "job.csv", "--conf", "conf.yaml", "--column", "pay", "--json"]
        assert run(*argv) == 2
        found = json.loads(capsys.readouterr().out)["column"]
        assert (found["n_values"], found["n_lacking_values"], found["n_missing_rows"]) == (3, 1, 7)

    @pytest.mark.parametrize(
        ("terminal", "flags", "shown"),
        [
            (True, ["--debug"], True),
            (True, [], False),
            (True, ["--debug", "--json"], False),
            (False, ["--debug"], False),
        ],
    )
    def test_values_on_a_terminal_only(
        self,
        terminal: bool,
        flags: list[str],
        shown: bool,
        counted: list[Any],
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        class Screen(io.StringIO):
            def isatty(self) -> bool:
                return terminal

        screen = Screen()
        monkeypatch.setattr(sys, "stdout", screen)
        argv = ["check", "job.csv", "--conf", "conf.yaml", "--column", "job"]
        assert run(*argv, *flags) == 2
        assert ("spy" in screen.getvalue()) == shown
        assert ("may contain data" in screen.getvalue()) == shown
        assert "spy" not in capsys.readouterr().err


class TestLoadColumns:
    def test_only_what_reading_takes(self, tmp_path: Path) -> None:
        config, protected = load_columns("conf.yaml", ["job", "pay", "other"])
        assert protected == {"pay"}
        assert list(config.attributes) == ["job", "pay", "other"]
        assert {attribute.role for attribute in config.attributes.values()} == {"quasi_identifier"}
        assert config.privacy.missing_tokens == ("-",)
        assert config.attributes["job"].hierarchy is None

    @pytest.mark.parametrize(
        ("privacy", "tokens"),
        [("", ("?", "")), ("privacy: {}", ("?", "")), ("privacy: {missing_tokens: []}", ())],
    )
    def test_tokens(self, privacy: str, tokens: tuple[str, ...]) -> None:
        Path("conf.yaml").write_text(f"source: {{format: csv, path: a.csv}}\n{privacy}\n")
        config, _ = load_columns("conf.yaml", ["a"])
        assert config.privacy.missing_tokens == tokens

    def test_what_is_wrong_with_the_source(self) -> None:
        for text, where in (
            ("source: {format: csv}", "source.path"),
            ("attributes: {}", "source"),
            ("[]", "source"),
            ("source: {format: csv, path: '${NOT_SET_ANYWHERE}'}", "source.path"),
            ("source: {format: csv, path: a}\nattributes: {a: {type: odd}}", "attributes.a.type"),
        ):
            Path("conf.yaml").write_text(text)
            with pytest.raises(ConfigError) as caught:
                load_columns("conf.yaml", ["a"])
            assert where in [problem.where for problem in caught.value.problems]
        with pytest.raises(ConfigError, match="write key=value"):
            load_columns("conf.yaml", ["a"], ["x"])


class TestReadyMade:
    """The hierarchies of `conf/hierarchies`."""

    CONF = Path(__file__).parents[2] / "conf"

    def test_config_loads(self) -> None:
        config = load(self.CONF / "adult_hierarchies.yaml")
        found = {a.hierarchy for a in config.attributes.values() if a.hierarchy}
        assert {Path(path).name for path in found} == {
            path.name for path in (self.CONF / "hierarchies").iterdir()
        }

    def test_they_cover_adult(self) -> None:
        import pandas as pd

        table = pd.read_csv(data_dir() / "adult/adult_train.csv.gz", dtype=str, na_values="?")
        config = load(self.CONF / "adult_hierarchies.yaml")
        for name, attribute in config.attributes.items():
            if attribute.hierarchy is not None:
                values = pa.array(table[name].dropna().unique())
                hierarchy = read_hierarchy(attribute.hierarchy)
                assert (hierarchy.places(values) >= 0).all(), name
                assert hierarchy.tree.high[-1] <= len(values) + 1, name
