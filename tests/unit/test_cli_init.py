"""`anonlib init`: what it drafts from, without a secret."""

from pathlib import Path
from typing import Any

import pytest

from anonlib.cli import main
from anonlib.config.reading import load
from anonlib.guesses.draft import TableProfile
from anonlib.guesses.guess import ColumnProfile
from anonlib.source import profile as profiling

HUSH = "hunter2"


@pytest.fixture
def drafted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at the table."""

    def profile(source: str, given: str, options: Any, progress: Any, secrets: Any) -> TableProfile:
        columns = (ColumnProfile("age", "int", 100, 50),)
        return TableProfile(given, source, None, 100, 100, columns, options, secrets)

    monkeypatch.setattr(profiling, "profile", profile)


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["--option", f"password={HUSH}"], "--option password: a secret does not belong"),
        (["--option", f"sfPassword={HUSH}"], "--option sfPassword: a secret does not belong"),
        (["--option", f"url=jdbc:x://h/d?user=u&password={HUSH}"], "--option url: has a user or"),
        (["--option", f"url=jdbc:mysql://u:{HUSH}/w@h/d"], "--option url: has a user or"),
        (["--option", f"proxy=http://u:{HUSH}@h"], "--option proxy: has a user or"),
        (["--option", f"fs.s3a.secret.key={HUSH}"], "remove fs.s3a.secret.key"),
        (["--secret", f"password={HUSH} "], "--secret password: must be the name of an env"),
        (["--secret", f"password={HUSH}"], "--secret password: the environment variable that it"),
        (["--option", "a=1", "--secret", f"A={HUSH}"], "--secret A: is under"),
    ],
)
def test_secrets(
    arguments: list[str], where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "draft.yaml"
    assert main(["init", "people.csv", *arguments, "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert where in said.err
    assert HUSH not in said.err + said.out
    if "has a user" in where or "is secret" in where:
        assert "by --secret OPTION=VARIABLE" in said.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (["url=jdbc:x://h/d", "DbTable=shop"], "--option DbTable: SOURCE names the table, or"),
        (["url=jdbc:x://h/d", "query=SELECT 1"], "--option query: SOURCE names the table, or"),
        (["user=me"], "--option url: required with `format: jdbc`"),
    ],
)
def test_databases(arguments: list[str], where: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = [text for pair in arguments for text in ("--option", pair)]
    assert main(["init", "shop.people", "--format", "jdbc", *options]) == 2
    assert where in capsys.readouterr().err


def test_passwords_in_paths(capsys: pytest.CaptureFixture[str]) -> None:
    for path in (f"s3a://ID:{HUSH}@b/x", f"hdfs://u:{HUSH}@h/x"):
        assert main(["init", path]) == 2
        said = capsys.readouterr().err
        assert "SOURCE: credentials don't belong in a path" in said
        assert HUSH not in said


@pytest.mark.parametrize("flag", ["--option", "--secret"])
def test_pairs(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("password", "=x"):
        assert main(["init", "people.csv", flag, text]) == 2
        assert f"{flag}: write KEY=VALUE" in capsys.readouterr().err


@pytest.mark.usefixtures("drafted")
def test_secrets_by_their_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPORT_PASSWORD", HUSH)
    out = tmp_path / "draft.yaml"
    flags = ["--option", "delimiter=;", "--secret", "password=EXPORT_PASSWORD"]
    assert main(["init", "people.csv", "--format", "csv", *flags, "--out", str(out)]) == 0
    source = load(out).source
    assert source.options == {"delimiter": ";"}
    assert source.secrets == {"password": "EXPORT_PASSWORD"}
    assert HUSH not in out.read_text()
