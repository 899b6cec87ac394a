"""Delta's jars: those of the Spark that is installed, and those of S3 once they were asked for."""

import hashlib
import os
import sys
from pathlib import Path

import pytest

from anonlib.errors import InputError
from anonlib.spark import jars
from anonlib.spark.jars import Jar, ensure_jars, list_jars


def test_jars_of_each_spark() -> None:
    found = {minor: list_jars(f"{minor}.1") for minor in ("4.0", "4.1", "4.2")}
    for minor, of_delta in found.items():
        assert [jar.artifact for jar in of_delta] == [f"delta-spark_{minor}_2.13", "delta-storage"]
    assert len({of_delta[0].sha256 for of_delta in found.values()}) == 3


def test_unknown_spark() -> None:
    with pytest.raises(InputError, match=r"this is Spark 5\.0\.0; .* for 4\.0, 4\.1, 4\.2"):
        list_jars("5.0.0")


def test_what_is_ensured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each jar that a session gets comes with its entry: the bill of a package has them all."""
    delta, s3 = (Jar("org", name, "1", hashlib.sha256(name.encode()).hexdigest()) for name in "ab")
    for jar in (delta, s3):
        path = tmp_path / "repository" / jar.path_in_repository
        path.parent.mkdir(parents=True)
        path.write_text(jar.artifact)
    monkeypatch.setenv("ANONLIB_MAVEN_URL", (tmp_path / "repository").as_uri())
    monkeypatch.setenv("ANONLIB_JARS", str(tmp_path / "jars"))
    monkeypatch.setattr(jars, "list_jars", lambda spark: (delta,))
    monkeypatch.setattr(jars, "list_s3_jars", lambda: [s3])
    monkeypatch.setattr(jars, "_hadoop", lambda: jars.HADOOP)
    of_delta = {tmp_path / "jars" / "a-1.jar": delta}
    both = {**of_delta, tmp_path / "jars" / "s3" / "b-1.jar": s3}
    for asked, wanted in ((None, of_delta), (True, both), (None, both), (False, of_delta)):
        found = ensure_jars(s3=asked)
        assert found == wanted
        assert all(path.read_text() == jar.artifact for path, jar in found.items())
    monkeypatch.setattr(jars, "_hadoop", lambda: "3.4.1")
    assert ensure_jars() == of_delta


@pytest.mark.parametrize("named", [None, "~/jars", "/opt/jars"])
def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, named: str | None) -> None:
    """As in containers that run as any uid."""
    for name in ("HOME", "XDG_CACHE_HOME", "ANONLIB_JARS"):
        monkeypatch.delenv(name, raising=False)
    if named:
        monkeypatch.setenv("ANONLIB_JARS", named)
    monkeypatch.setattr(sys, "prefix", "/nowhere")
    monkeypatch.setattr(os, "getuid", lambda: 987_654)
    if named == "/opt/jars":
        assert jars.find_jar_folder() == Path(named)
        return
    with pytest.raises(
        InputError, match=r"HOME is not set, .*; set ANONLIB_JARS to the whole path"
    ):
        jars.find_jar_folder()


def test_jars_of_s3_are_for_one_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "_hadoop", lambda: jars.HADOOP)
    assert {jar.version for jar in jars.list_s3_jars() if jar.artifact == "hadoop-aws"} == {
        jars.HADOOP
    }
    monkeypatch.setattr(jars, "_hadoop", lambda: "3.4.1")
    with pytest.raises(InputError, match=r"needs a Spark with Hadoop 3\.5\.0, .* has 3\.4\.1"):
        jars.list_s3_jars()
