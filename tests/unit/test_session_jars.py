"""The jars of sessions that anonlib starts."""

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
