"""The jars and the garbage collector of sessions that anonlib starts."""

from pathlib import Path

import pytest

from anonlib.spark import session


@pytest.mark.parametrize(
    ("given", "jars"),
    [
        ({}, "/jars/delta.jar"),
        ({"spark.jars": ""}, "/jars/delta.jar"),
        ({"spark.jars": "/own/a.jar,/own/b.jar"}, "/jars/delta.jar,/own/a.jar,/own/b.jar"),
    ],
)
def test_drivers_of_databases_stand_beside_ours(
    given: dict[str, str], jars: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "ensure_jars", lambda: (Path("/jars/delta.jar"),))
    assert session._jars(given) == jars


@pytest.mark.parametrize(
    ("master", "options", "environ", "added"),
    [
        ("local[*]", "-Da=b", {"JAVA_HOME": "/opt/UseG1GC"}, session.COLLECTOR),
        ("local", "-XX:+UseG1GC", {}, ""),
        ("local[2]", "-Da=b -XX:+UseSerialGC -Dc=d", {}, ""),
        ("local[2]", "", {"JAVA_TOOL_OPTIONS": "-XX:+UseZGC"}, ""),
        ("local[2]", "", {"SPARK_SUBMIT_OPTS": "-XX:-UseG1GC"}, session.COLLECTOR),
        ("yarn", "", {}, ""),
        ("k8s://https://host", "", {}, ""),
    ],
)
def test_a_jvm_has_one_collector(
    master: str, options: str, environ: dict[str, str], added: str
) -> None:
    assert session.choose_collector(master, options, environ) == added
