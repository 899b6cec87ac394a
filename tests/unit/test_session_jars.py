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
    ("master", "options", "added"),
    [
        ("local[*]", [], session.COLLECTOR),
        ("local", ["", "-Da=UseG1GC -XX:-UseG1GC"], session.COLLECTOR),
        ("local", ["", "-Da=b -XX:+UseSerialGC -Dc=d"], ""),
        ("yarn", [], ""),
        ("k8s://https://host", [], ""),
    ],
)
def test_a_jvm_has_one_collector(master: str, options: list[str], added: str) -> None:
    assert session.choose_collector(master, options) == added


@pytest.mark.parametrize("by", ["extra", "default", "variable", "file", "nothing"])
def test_wherever_a_collector_is_chosen(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, conf = "-XX:+UseZGC", {}
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in session.JAVA_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if by in ("extra", "default"):
        conf[f"spark.driver.{by}JavaOptions"] = other
    elif by == "variable":
        monkeypatch.setenv("JDK_JAVA_OPTIONS", other)
    elif by == "file":
        line = f"spark.driver.defaultJavaOptions {other}\n"
        (tmp_path / "spark-defaults.conf").write_text(line)
    found = session.choose_collector("local", session._find_java_options(conf))
    assert found == (session.COLLECTOR if by == "nothing" else "")
