"""The public face: what `import anonlib` gives, and what its verbs take."""

import inspect
import json
import pydoc
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

import anonlib
from anonlib.config.dump import format_config
from anonlib.config.model import Config
from anonlib.config.reading import as_config
from anonlib.errors import AnonlibError, ConfigError, InputError, StorageError, without_cause
from anonlib.spark.loan import return_session
from anonlib.spark.translation import translate_errors
from anonlib.sweeps.file import as_sweep

VERBS = ["audit", "certify", "check", "evaluate", "release", "report", "sweep", "verify"]
CONFIG: dict[str, Any] = {
    "source": {"format": "csv", "path": "/data/people.csv"},
    "attributes": {"age": {"role": "quasi_identifier", "scale": "continuous"}},
    "one_row_per_person": True,
    "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
    "release": {"path": "/out/people"},
}


def test_names() -> None:
    names = [*VERBS, "__version__", "anonymize", "cells", "load", "parse", "suggest"]
    assert sorted(anonlib.__all__) == sorted(names) == sorted(dir(anonlib))
    assert anonlib.__version__
    with pytest.raises(AttributeError, match=r"no attribute 'relase'; did you mean release\?$"):
        anonlib.relase  # noqa: B018


def test_help_shows_each_with_its_arguments() -> None:
    shown = pydoc.plain(pydoc.render_doc(anonlib))
    for name in {*anonlib.__all__} - {"__version__"}:
        function = getattr(anonlib, name)
        assert f"\n    {name}(" in shown
        doc = inspect.getdoc(function) or ""
        for argument in inspect.signature(function).parameters:
            assert f"{argument}:" in doc or f"{argument} " in doc, f"{name}: {argument}"
        assert "Raises" in doc, name


def test_without_spark_the_verbs_are_shown_and_say_what_they_need() -> None:
    code = """
import sys
sys.modules["pyspark"] = None
import inspect, pydoc
import anonlib
from anonlib import *
assert {*anonlib.__all__} <= {name for name, _ in inspect.getmembers(anonlib)}
print(pydoc.plain(pydoc.render_doc(anonlib)))
for verb in (check, release, sweep):
    assert "Raises" in inspect.getdoc(verb), verb
    try:
        verb("conf.yaml")
    except Exception as error:
        print(type(error).__name__, error)
try:
    release()
except TypeError:
    print("arguments are checked")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "\n    release(config, progress=None, dataframe=None)" in done.stdout
    assert "\n    sweep(sweep, progress=None, *, retry=False)" in done.stdout
    for name in ("check", "release", "sweep"):
        assert f"InputError anonlib.{name}: Spark is not installed: pip install" in done.stdout
    assert done.stdout.endswith("arguments are checked\n")


def test_importing_loads_nothing_large() -> None:
    code = "import sys, anonlib; anonlib.__version__; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyspark", "numpy", "pydantic", "numba"} & {*done.stdout.split()}


def test_a_config_is_a_dict_a_path_or_a_config(tmp_path: Path) -> None:
    file = tmp_path / "conf.yaml"
    file.write_text(json.dumps(CONFIG), "utf-8")
    given = [CONFIG, str(file), file, anonlib.parse(CONFIG), anonlib.load(file)]
    configs = [as_config(each) for each in given]
    assert all(isinstance(config, Config) for config in configs)
    assert len({format_config(config) for config in configs}) == 1


@pytest.mark.parametrize("verb", ["check", "evaluate", "release"])
def test_what_is_wrong_is_said_before_spark_starts(verb: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="seed"):
        getattr(anonlib, verb)({**CONFIG, "seed": "x"})
    with pytest.raises(InputError, match=r"nope\.yaml"):
        getattr(anonlib, verb)(tmp_path / "nope.yaml")
    with pytest.raises(ConfigError, match="must be a mapping"):
        getattr(anonlib, verb)(7)


def test_audit_and_sweep_take_them_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="seed"):
        anonlib.audit("out/people", {**CONFIG, "seed": "x"})
    with pytest.raises(InputError, match=r"nope\.yaml"):
        anonlib.sweep(tmp_path / "nope.yaml")
    with pytest.raises(ConfigError):
        anonlib.sweep({"cases": {}})
    made = as_sweep({"cases": {"people": {"config": CONFIG}}, "out": str(tmp_path / "out")})
    assert as_sweep(made) is made


def test_report_by_run_id(tmp_path: Path) -> None:
    config = {**CONFIG, "release": {"path": str(tmp_path / "people")}}
    with pytest.raises(InputError, match=r"people\.private/r1\.json: no such file"):
        anonlib.report("r1", config)


@pytest.mark.parametrize("verb", [anonlib.report, anonlib.certify])
def test_a_release_in_hand_is_no_run(verb: Any) -> None:
    """Its repr is no path: it has figures of the release, and lines."""
    with pytest.raises(
        InputError, match=r"^run: must be the path .* or the id of a run; a Release"
    ):
        verb(object())


def test_a_config_file_is_named_by_a_path() -> None:
    with pytest.raises(
        InputError, match=r"^config: load takes the path of a YAML file, not .* type int;"
    ):
        anonlib.load(3)  # type: ignore[arg-type]


SECRET = "1234567890"


def failing(given: str) -> None:
    """Fails as Spark and pandas do, with a value in the text."""
    try:
        int(f"{SECRET} of {given}")
    except ValueError as error:
        if given == "known":
            raise InputError("the value can't be read") from error
        raise


@pytest.mark.parametrize(("given", "text"), [("known", "can't be read"), ("", "unexpected Value")])
def test_errors_bring_no_other_error_with_them(
    monkeypatch: pytest.MonkeyPatch, given: str, text: str
) -> None:
    monkeypatch.delenv("ANONLIB_DEBUG", raising=False)
    with pytest.raises(AnonlibError, match=text) as caught:
        without_cause(failing)(given)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    places = [frame.f_locals for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert not any(isinstance(local, ValueError) for local in places[-1].values())
    with pytest.raises(TypeError):
        without_cause(failing)()  # type: ignore[call-arg]
    monkeypatch.setenv("ANONLIB_DEBUG", "1")
    with pytest.raises((InputError, ValueError)) as caught:
        without_cause(failing)(given)
    assert SECRET in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, SECRET), Py4JNetworkError(SECRET)])
def test_a_jvm_that_died(error: Exception) -> None:
    """It is said in words, wherever the run was."""

    def fail() -> None:
        raise error

    with pytest.raises(AnonlibError, match=r"^Spark's JVM died during the run.*run it again$"):
        without_cause(fail)()
    with (
        pytest.raises(StorageError, match=r"^source: Spark's JVM died during the run"),
        translate_errors("source"),
    ):
        fail()


@pytest.mark.parametrize("name", [*VERBS, "cells", "load", "parse"])
def test_every_verb_hides_causes(name: str) -> None:
    verb = getattr(anonlib, name)
    inner = getattr(import_module(verb.__module__), name)
    # The session is returned before the causes are hidden.
    assert verb.__code__ == without_cause(inner).__code__
    assert verb.__wrapped__.__code__ == return_session(inner).__code__
    assert verb.__wrapped__.__wrapped__ == inner
