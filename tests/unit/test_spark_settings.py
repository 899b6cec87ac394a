"""conf/spark: what spark-submit reads there is what a session needs, each setting with a reason."""

from pathlib import Path
from threading import Thread

import pytest

from anonlib.errors import InputError
from anonlib.spark import session as sessions
from anonlib.spark.loan import change_setting, return_session

FOLDER = Path(__file__).parents[2] / "conf" / "spark"
FILES = sorted(FOLDER.glob("*.conf"))


def read(path: Path) -> dict[str, str]:
    """The settings of a file, as spark-submit reads them; a setting is there once."""
    found: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            key, value = line.split(maxsplit=1)
            assert key not in found, f"{path.name}: {key} comes twice"
            found[key] = value.strip()
    return found


def unexplained(path: Path) -> list[str]:
    """Settings that no comment of their own stands above, in their paragraph."""
    missing, explained = [], False
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("#"):
            explained = True
            continue
        if line.strip() and not explained:
            missing.append(line)
        explained = False
    return missing


def test_all_kinds_of_clusters() -> None:
    kinds = ["databricks", "kubernetes", "local", "standalone", "yarn"]
    assert [path.stem for path in FILES] == kinds


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_settings_are_those_of_sessions_with_reasons(path: Path) -> None:
    found = read(path)
    needed = {**sessions.STARTED, **{key: sessions.REQUIRED[key] for key in sessions.FIXED}}
    for key in sessions.FIXED:
        if "redaction" not in key:
            del needed[key]  # set when a run begins, which is early enough
    assert needed.items() <= found.items()
    for key, value in {**sessions.REQUIRED, **sessions.LOCAL}.items():
        if key in found and (path.stem == "local" or key in sessions.REQUIRED):
            assert found[key] == value
    assert unexplained(path) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_paths_in_an_image_have_no_wildcards(path: Path) -> None:
    """Spark takes local: paths as they are, and passes over a jar that is not there."""
    values = read(path).values()
    assert [value for value in values if "local:" in value and set(value) & set("*?[{")] == []


def test_jars_of_the_image_are_on_the_class_path() -> None:
    found = read(FOLDER / "kubernetes.conf")
    for of in ("driver", "executor"):
        assert found[f"spark.{of}.extraClassPath"] == "/opt/anonlib/jars/*"


@pytest.mark.parametrize("kind", ["standalone", "yarn", "kubernetes", "databricks"])
def test_two_nodes_are_enough_for_all_attempts_of_a_task(kind: str) -> None:
    found = read(FOLDER / f"{kind}.conf")
    assert "spark.task.maxFailures" not in found  # it is 4
    for of in ("Node", "Executor"):
        assert 2 * int(found[f"spark.excludeOnFailure.task.maxTaskAttemptsPer{of}"]) == 4


@pytest.mark.parametrize("kind", ["standalone", "yarn", "kubernetes", "databricks"])
def test_executors_have_a_place_for_compiled_kernels(kind: str) -> None:
    assert read(FOLDER / f"{kind}.conf")["spark.executorEnv.NUMBA_CACHE_DIR"]


def test_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # A session of other tests of this process would be taken instead of started.
    monkeypatch.setattr(sessions.SparkSession, "getActiveSession", lambda: None)
    with pytest.raises(InputError, match="Spark Connect sessions can't be used"):
        sessions.session({"spark.remote": "sc://localhost"})
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(InputError, match="use spark-submit"):
        sessions.session()
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(InputError, match="Spark Connect"):
        sessions.session({}, remote)


class Conf(dict[str, str]):
    """A session's settings, of which none can change."""

    def isModifiable(self, key: str) -> bool:
        return False


class There:
    """A session that is there."""

    def __init__(self, **changes: str):
        encryption = {sessions.ENCRYPTION: "true"}
        self.conf = Conf(**{**sessions.REQUIRED, **encryption, **changes})
        self.sparkContext = self
        self._conf = self.conf


@pytest.mark.parametrize("key", sessions.FIXED)
def test_settings_that_have_no_effect(key: str) -> None:
    with pytest.raises(InputError, match=key.replace(".", r"\.")):
        sessions.session({}, There(**{key: "other"}))


class Lent(There):
    """A session that is there, and whose settings can change."""

    def __init__(self, **changes: str):
        super().__init__(**changes)
        self.conf = Changeable(self.conf)


def test_a_lent_session_hands_text_to_tasks_in_the_type_that_they_know() -> None:
    key = "spark.sql.execution.arrow.useLargeVarTypes"
    lent = Lent(**{key: "true"})
    seen: list[str] = []

    def verb() -> None:
        with pytest.raises(InputError, match="Delta is not on Spark's class path"):
            sessions.session({}, lent)
        seen.append(lent.conf[key])

    return_session(verb)()
    assert seen == ["false"]
    assert lent.conf[key] == "true"


class Changeable(dict[str, str]):
    """Settings that can change. After `end()` the session is over."""

    over = False

    def isModifiable(self, key: str) -> bool:
        return True

    def set(self, key: str, value: str) -> None:
        if self.over:
            raise ConnectionError
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


def test_changed_settings_are_put_back() -> None:
    conf = Changeable(a="1", b="2")

    def change(*, fail: bool = False, end: bool = False) -> dict[str, str]:
        for key, value in (("a", "3"), ("b", "2"), ("c", "4"), ("a", "5")):
            change_setting(conf, key, value)
        conf.over = end
        if fail:
            raise InputError("no")
        return dict(conf)

    changed = {"a": "5", "b": "2", "c": "4"}
    assert return_session(change)() == changed
    assert conf == {"a": "1", "b": "2"}
    # Nothing while another verb runs, within it or in another thread.
    kept: list[dict[str, str]] = []

    def outer() -> None:
        thread = Thread(target=return_session(change))
        thread.start()
        thread.join()
        kept.append(dict(conf))
        return_session(change)()
        kept.append(dict(conf))

    return_session(outer)()
    assert kept == [changed, changed]
    assert conf == {"a": "1", "b": "2"}
    for end in (False, True):
        with pytest.raises(InputError, match="no"):
            return_session(change)(fail=True, end=end)
        assert end or conf == {"a": "1", "b": "2"}
    conf.over = False
    assert change() == changed
    assert conf == changed  # by no verb: for good


def test_unencrypted_spills() -> None:
    plain = There(**{sessions.ENCRYPTION: "false"})
    with pytest.raises(InputError, match="to disks in clear"):
        sessions.session({}, plain)
    del plain.conf[sessions.ENCRYPTION]
    said = r"with spark\.anonlib\.disksEncrypted=true; a config can set neither"
    of_config: list[dict[str, str]] = [{sessions.ENCRYPTION: text} for text in ("true", "false")]
    for mine in ({}, *of_config, {sessions.ENCRYPTED_DISKS: "true"}):
        with pytest.raises(InputError, match=said):
            sessions.session(mine, plain)
    plain.conf[sessions.ENCRYPTED_DISKS] = "false"
    with pytest.raises(InputError, match=said):
        sessions.session({}, plain)
    # Said by who submitted it: what is missing next is Delta.
    plain.conf[sessions.ENCRYPTED_DISKS] = "TRUE"
    with pytest.raises(InputError, match="Delta is not on Spark's class path"):
        sessions.session({}, plain)
