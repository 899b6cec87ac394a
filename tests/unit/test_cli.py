"""The command line without Spark: grammar, exit codes, what is said and what is not."""

import argparse
import json
import shlex
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from anonlib import cli
from anonlib.cli import main
from anonlib.cli.parser import make_parser
from anonlib.config import listing
from anonlib.config.reading import parse
from anonlib.errors import AuditError, BusyError, ConfigError, InputError, Problem, StorageError
from anonlib.sweeps.file import load_sweep
from anonlib.text import printable
from tests.unit.test_config import GOOD

CONFIG = """
source: {format: csv, path: people.csv}
attributes:
  age: {role: quasi_identifier, scale: continuous}
one_row_per_person: true
privacy: {models: [{type: k_anonymity, k: 5}]}
release: {path: out/people}
"""
VERBS = (
    "release",
    "audit",
    "check",
    "suggest",
    "sweep",
    "init",
    "schema",
    *listing.LISTED,
    "hierarchy",
    "generate",
    "show",
    "report",
    "runs",
)
HIERARCHY = [
    *[["hierarchy", action] for action in ("build", "show", "check")],
    *[
        ["hierarchy", "build", kind]
        for kind in ("intervals", "mask", "dates", "groups", "frequency", "target")
    ],
]


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "conf.yaml"
    path.write_text(CONFIG)
    return str(path)


def python(code: str, **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


class TestGrammar:
    def test_help(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--help"]) == 0
        out = capsys.readouterr().out
        assert all(verb in out for verb in VERBS)
        assert "examples:" in out
        assert "exit codes:" in out

    def test_help_without_arguments(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It is no result, so that nothing is on stdout."""
        assert main([]) == 2
        said = capsys.readouterr()
        assert main(["--help"]) == 0
        assert (said.out, said.err) == ("", capsys.readouterr().out)

    def test_exit_codes_of_verify(self, capsys: pytest.CaptureFixture[str]) -> None:
        """It has no 5: persons that can't be counted make lines that it does not judge."""
        assert main(["verify", "--help"]) == 0
        said = capsys.readouterr().out
        assert "exit codes: 0 no line is contradicted, 2 certificate or input,\n" in said
        assert "3 a line is contradicted, 1 else" in said

    @pytest.mark.parametrize("verb", VERBS)
    def test_help_of_verbs(self, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([verb, "--help"]) == 0
        assert "--log-format" in capsys.readouterr().out

    @pytest.mark.parametrize("argv", [[], *[[verb] for verb in VERBS], *HIERARCHY], ids=" ".join)
    def test_help_fits_and_tells_defaults(
        self, argv: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On 80 columns, but for groups of flags in usages, which argparse does not break."""
        monkeypatch.setenv("COLUMNS", "80")
        assert main([*argv, "--help"]) == 0
        usage, _, rest = capsys.readouterr().out.partition("\n\n")
        assert [line for line in rest.splitlines() if len(line) > 80] == []
        assert max(map(len, usage.splitlines())) < 90
        parser: Any = make_parser("1")
        for name in argv:
            (verbs,) = [each for each in parser._actions if isinstance(each.choices, dict)]
            parser = verbs.choices[name]
        for action in parser._actions:
            assert action.help or isinstance(action.choices, dict), action.dest
            if action.default not in (None, False, "", [], argparse.SUPPRESS, "==SUPPRESS=="):
                assert "default" in action.help or action.dest == "log_format", action.dest

    def test_results_as_json(self) -> None:
        """By both flags, except of `suggest`: there --format is that of the table."""
        verbs: list[tuple[list[str], Any]] = [([], make_parser("1"))]
        found = {}
        for name, parser in verbs:
            for each in parser._actions:
                if isinstance(each.choices, dict):
                    verbs += [([*name, verb], one) for verb, one in each.choices.items()]
                elif "--json" in each.option_strings:
                    found[" ".join(name)] = parser
        assert {"release", "runs", "check", "audit", "kernels", "hierarchy check"} <= {*found}
        del found["suggest"]
        for name, parser in found.items():
            places = [each for each in parser._actions if not each.option_strings]
            needed = ["--conf", "c"] if name == "audit" else []
            given = [*(["x"] * len(places)), *needed]
            for flags in (["--json"], ["--format", "json"]):
                assert parser.parse_args([*given, *flags]).format == "json", name
            assert parser.parse_args(given).format == "text", name

    @pytest.mark.parametrize(
        ("argv", "text"),
        [
            (["release", "a.yaml", "--sett", "seed=3"], "did you mean --set?"),
            (["check", "a.yaml", "--jsn"], "did you mean --json?"),
            (["hierarchy", "check", "a.yaml", "--confg=b"], "did you mean --conf?"),
            (["init", "people.csv", "--format", "cvs"], "--format: unknown format; did you mean"),
        ],
    )
    def test_what_may_be_meant(
        self, argv: list[str], text: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(argv) == 2
        assert text in capsys.readouterr().err

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--version"]) == 0
        assert capsys.readouterr().out.startswith("anonlib ")

    @pytest.mark.parametrize(
        "argv",
        [
            ["--quiet"],
            ["publish"],
            ["release"],
            ["release", "a.yaml", "--fast"],
            ["audit", "out/people"],
            ["audit", "out/people", "--conf", "a.yaml", "--version", "-1"],
            ["generate"],
            ["generate", "--out", "x", "--rows", "many"],
            ["generate", "--out", "x", "--rows", "1" + "0" * 30],
            ["show", "x", "--rows", "0"],
            ["--log-format", "xml", "schema"],
            ["release", "a.yaml", "--qui"],
        ],
    )
    def test_mistakes(self, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(argv) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("usage: anonlib")
        assert "\nerror: " in captured.err
        assert captured.out == ""

    @pytest.mark.parametrize("before", [True, False])
    def test_flags_on_both_sides_of_the_verb(self, before: bool) -> None:
        flags = ["--quiet", "--log-format", "json", "--debug"]
        argv = [*flags, "check", "a.yaml"] if before else ["check", "a.yaml", *flags]
        args = cli.parse_args(argv, "1")
        assert (args.quiet, args.log_format, args.debug) == (True, "json", True)
        assert cli.parse_args(["check", "a.yaml"], "1").log_format == "text"

    def test_mistake_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        for flags in (["--log-format", "json"], ["--log-format=json"]):
            assert main(["release", *flags]) == 2
            event = json.loads(capsys.readouterr().err)
            assert (event["event"], event["exit_code"]) == ("error", 2)


@pytest.mark.parametrize("argv", [[], *[[verb] for verb in VERBS]], ids=" ".join)
def test_each_override_of_a_help_text_is_one(
    argv: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANONLIB_DATA", "data")
    assert main([*argv, "--help"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " --set " in line]
    for words in [shlex.split(line) for line in lines if line.strip().startswith("anonlib ")]:
        overrides = [text for flag, text in pairwise(words) if flag == "--set"]
        if "sweep" in words:
            load_sweep("conf/papers/price.yaml", overrides)
        else:
            assert parse(GOOD, overrides) != parse(GOOD)


class TestConfigErrors:
    def test_all_problems_in_a_list(self, conf: str, capsys: pytest.CaptureFixture[str]) -> None:
        for verb in ("release", "check"):
            argv = [verb, conf, "--set", "seed=x", "--set", "kernel=modav"]
            assert main(argv) == 2
            captured = capsys.readouterr()
            head, *bullets = captured.err.splitlines()
            assert head == f"error: 2 problems in {conf}:"
            assert [line[:16] for line in bullets] == ["  - kernel.type:", "  - seed: must b"]
            assert captured.out == ""

    def test_one_problem(self, conf: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["audit", "out/x", "--conf", conf, "--set", "seed=x"]) == 2
        assert capsys.readouterr().err.startswith(f"error: 1 problem in {conf}:\n  - seed: ")

    def test_as_json(self, conf: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["release", conf, "--set", "seed=x", "--log-format", "json"]) == 2
        event = json.loads(capsys.readouterr().err)
        assert event["config"] == conf
        assert event["error"] == "ConfigError"
        assert [problem["where"] for problem in event["problems"]] == ["seed"]

    def test_no_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["release", "nope.yaml"]) == 2
        assert capsys.readouterr().err.startswith("error: config nope.yaml: can't be read")

    def test_run_id(self, conf: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["release", conf, "--run-id", "a: b"]) == 2
        assert "release.run_id: not valid" in capsys.readouterr().err

    def test_init_does_not_overwrite(self, conf: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["init", "people.csv", "--out", conf]) == 2
        assert "is there already" in capsys.readouterr().err
        assert Path(conf).read_text() == CONFIG

    def test_init_options(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["init", "people.csv", "--option", "delimiter"]) == 2
        assert "KEY=VALUE" in capsys.readouterr().err


class TestFailures:
    """What happens when the work fails; the work is replaced by the failure."""

    SECRET = "s3cret \x1b[31m value"

    @pytest.fixture(autouse=True)
    def _no_work(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def run(self, error: BaseException, *flags: str, verb: str = "schema") -> int:
        def fail(args: object) -> int:
            raise error

        self.monkeypatch.setitem(cli.VERBS, verb, fail)
        return main([verb, *flags])

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (InputError("no such file"), 2),
            (ConfigError([Problem("a", "b")]), 2),
            (AuditError("too few"), 3),
            (BusyError("taken"), 1),
            (StorageError("full"), 1),
        ],
    )
    def test_our_errors(
        self, error: Exception, code: int, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(error) == code
        captured = capsys.readouterr()
        assert captured.err.startswith("error: ")
        assert "Traceback" not in captured.err
        assert captured.out == ""

    @pytest.mark.parametrize("flags", [[], ["--log-format", "json"]])
    @pytest.mark.parametrize("kind", [ValueError, MemoryError, RecursionError, OSError])
    def test_other_errors_show_their_type_only(
        self, kind: type[Exception], flags: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(kind(self.SECRET), *flags) == 1
        err = capsys.readouterr().err
        assert kind.__name__ in err
        assert "--debug" in err
        assert "s3cret" not in err
        assert "Traceback" not in err
        assert len(err.splitlines()) == 1

    def test_debug(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(ValueError("s3cret"), "--debug") == 1
        err = capsys.readouterr().err
        assert err.index("may contain data") < err.index("Traceback") < err.index("s3cret")

    def test_control_characters_are_not_obeyed(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(ConfigError([Problem("a\x1b[31m\n", "b\r")])) == 2
        err = capsys.readouterr().err
        assert "\x1b" not in err
        assert err.splitlines()[1] == r"  - a\x1b[31m\n: b\r"

    def test_a_misspelt_verb(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["relaese", "conf.yaml"]) == 2
        assert "; did you mean release?" in capsys.readouterr().err
        assert main(["xyzzy"]) == 2
        assert "did you mean" not in capsys.readouterr().err

    @pytest.mark.parametrize("flags", [[], ["--log-format", "json"]])
    def test_interrupted(self, flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(KeyboardInterrupt(), *flags) == 1
        err = capsys.readouterr().err
        assert "interrupted: stopped before it was done" in err
        assert "next run" not in err  # of a verb that leaves nothing behind

    @pytest.mark.parametrize(
        ("verb", "told"),
        [
            ("release", "; what is left behind is removed by the next run"),
            ("sweep", "; results that are there are kept, and the next run goes on with the other"),
        ],
    )
    def test_what_becomes_of_interrupted_work(
        self, verb: str, told: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(KeyboardInterrupt(), "conf.yaml", verb=verb) == 1
        assert told in capsys.readouterr().err

    def test_warnings_and_logs_are_silent(self, capsys: pytest.CaptureFixture[str]) -> None:
        import logging
        import warnings

        def noisy(args: object) -> int:
            warnings.warn("s3cret", stacklevel=1)
            logging.getLogger("py4j").critical("s3cret")
            return 0

        self.monkeypatch.setitem(cli.VERBS, "schema", noisy)
        assert main(["schema"]) == 0
        assert capsys.readouterr().err == ""
        assert logging.getLogger("py4j").isEnabledFor(logging.CRITICAL)


def test_plain() -> None:
    assert printable("ok Größe 東\x07\x9b\u202e") == "ok Größe 東\\x07\\x9b\\u202e"


class TestProcess:
    """What only a process of its own shows."""

    @pytest.mark.parametrize(
        ("argv", "code"),
        [
            (["--help"], 0),
            (["release", "--help"], 0),
            (["schema"], 0),
            (["kernels"], 0),
            (["models"], 0),
            (["partitioners"], 0),
            (["hierarchy", "build", "--help"], 0),
            (["hierarchy", "build", "mask", "--range", "1", "12", "--out", "/dev/null"], 2),
            (["release", "CONF", "--set", "seed=x"], 2),
            (["check", "nope.yaml"], 2),
            (["audit", "t", "--conf", "CONF", "--set", "kernel=x"], 2),
        ],
    )
    def test_spark_is_not_imported(self, conf: str, argv: list[str], code: int) -> None:
        argv = [conf if arg == "CONF" else arg for arg in argv]
        done = python(f"""
            import sys
            from anonlib.cli import main
            code = main({argv!r})
            assert not {{"pyspark", "py4j", "numba", "pandas", "sklearn"}} & set(sys.modules)
            sys.exit(code)
        """)
        assert done.returncode == code, done.stderr

    def test_help_imports_nothing_large(self) -> None:
        code = "import sys; from anonlib.cli import main; main(['--help']); print(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        large = {"pyspark", "numpy", "pandas", "pyarrow", "numba", "sklearn", "matplotlib", "rich"}
        assert not large & {*done.stdout.split()}

    def test_spark_need_not_wait_for_pages_and_learners(self) -> None:
        done = python("""
            import sys
            import anonlib.pipeline
            assert not {"matplotlib", "pyspark.ml", "numba", "sklearn"} & set(sys.modules)
        """)
        assert done.returncode == 0, done.stderr

    def test_as_a_module(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "anonlib", "nope"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert "error: " in done.stderr

    def test_jobs_take_the_verbs_arguments(self) -> None:
        for job in ("release", "audit"):
            path = Path(__file__).parents[2] / "jobs" / f"{job}.py"
            done = subprocess.run(
                [sys.executable, path, "--help"], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0
            assert done.stdout.startswith(f"usage: anonlib {job}")

    def test_reader_that_goes_away(self) -> None:
        done = subprocess.run(
            f"{sys.executable} -m anonlib schema | head -c 10",
            shell=True,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""

    def test_terminal_that_can_not_write_it(self, conf: str, tmp_path: Path) -> None:
        odd = tmp_path / "größe.yaml"
        odd.write_text(Path(conf).read_text())
        done = subprocess.run(
            [sys.executable, "-m", "anonlib", "check", str(odd), "--set", "größe=x"],
            capture_output=True,
            check=False,
            env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"},
        )
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr


class TestSignals:
    CODE = """
        import os, signal, sys, threading, time
        from anonlib.cli import interrupt
        def work():
            try:
                for _ in range(1000): time.sleep(0.02)
            finally:
                time.sleep(0.3)
                print("cleaned", flush=True)
            return 0
        def send():
            time.sleep(0.3)
            for _ in range({times}):
                os.kill(os.getpid(), signal.{signal})
                time.sleep(0.05)
        threading.Thread(target=send).start()
        try:
            interrupt.run_interruptible(work)
        except KeyboardInterrupt as error:
            print(type(error).__name__)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    """

    @pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM", "SIGHUP"])
    def test_work_cleans_up(self, signal: str) -> None:
        done = python(self.CODE.format(times=1, signal=signal))
        assert done.stdout.split() == ["cleaned", "Interrupted"], done.stderr

    def test_second_one_does_not_wait(self) -> None:
        done = python(self.CODE.format(times=2, signal="SIGINT"))
        assert done.stdout.split() == ["Interrupted"], done.stderr

    def test_work_that_ends_by_itself(self) -> None:
        from anonlib.cli import interrupt

        assert interrupt.run_interruptible(lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            interrupt.run_interruptible(lambda: 1 // 0)
