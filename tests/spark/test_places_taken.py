"""What is in the way of a run: a damaged log, the manifest's place taken. The error names it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import ConfigError, InfeasibleError, InputError
from tests.spark.support import Shell, people, settings, start_from, write_people

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("usual")]


def _cut(log: Path) -> None:
    text = (log / f"{1:020}.json").read_text()
    (log / f"{1:020}.json").write_text(text[: len(text) // 2])


def _garbage(log: Path) -> None:
    (log / f"{1:020}.json").write_bytes(b"7\n")


def _gone(log: Path) -> None:
    (log / f"{1:020}.json").unlink()


@pytest.mark.parametrize("damage", [_cut, _garbage, _gone])
def test_a_damaged_log(spark: SparkSession, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Of the target, of the source, of a table that is audited: the file is named."""
    write_people(tmp_path)
    place = tmp_path / "table"
    for _ in range(3):
        rows = spark.createDataFrame(people())
        rows.coalesce(1).write.format("delta").mode("append").save(str(place))
    log = place / "_delta_log"
    damage(log)
    for crc in log.glob("*.crc"):
        crc.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    append = {"path": str(place), "mode": "append", "acknowledge_returning": True}
    delta = {"format": "delta", "path": str(place)}
    given = settings(tmp_path)
    calls: dict[str, Callable[[], object]] = {
        "release.path: ": lambda: anonlib.release(settings(tmp_path, release=append)),
        "source: ": lambda: anonlib.check(settings(tmp_path, source=delta)),
        f"table {place}: ": lambda: anonlib.audit(str(place), given),
    }
    for begins, call in calls.items():
        with pytest.raises(InputError) as error:
            call()
        assert str(error.value).startswith(begins)
        assert f"{log}/{1:020}.json" in str(error.value)
        assert "damaged" in str(error.value)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("places")


@pytest.mark.parametrize("file", [False, True], ids=["a folder", "its folder is a file"])
def test_the_manifests_place(shell: Shell, place: Path, *, file: bool) -> None:
    write_people(place)
    start_from(shell, place, settings(place))
    folder = place / "out" / "table" / "_anonlib"
    (folder / "manifest.json").unlink()
    if file:
        (folder / "dictionary.md").unlink()
        folder.rmdir()
        folder.write_text("")
    else:
        (folder / "manifest.json").mkdir()
    over = {"mode": "overwrite", "acknowledge_overwrite": True}
    with pytest.raises(InputError) as error:
        anonlib.release(settings(place, release=over))
    wanted = f"{folder} must be a folder" if file else f"{folder}/manifest.json must be a file"
    assert wanted in str(error.value)
    log = (place / "out" / "table" / "_delta_log").glob("*.json")
    assert len([*log]) == 1


def test_a_check_tells_what_release_would_refuse(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The config fits its source; the table that is there, and a key that is not, are in the
    way."""
    monkeypatch.delenv("ANONLIB_NO_KEY", raising=False)
    write_people(tmp_path)
    start_from(shell, tmp_path, settings(tmp_path))
    (there,) = anonlib.check(settings(tmp_path)).obstacles
    assert there.startswith("release.path: a table is already at ")
    place = str(tmp_path / "out" / "table")
    (replaced,) = anonlib.check(
        settings(tmp_path, release={"path": place, "mode": "overwrite"})
    ).obstacles
    assert replaced.startswith("release.acknowledge_overwrite: ")
    free = {"path": str(tmp_path / "free"), "mode": "error"}
    assert anonlib.check(settings(tmp_path, release=free)).obstacles == ()
    ledger = free | {"ledger": {"key_env": "ANONLIB_NO_KEY"}}
    (key,) = anonlib.check(settings(tmp_path, release=ledger)).obstacles
    assert "environment variable ANONLIB_NO_KEY is not set" in key
    own = {
        "type": "controller",
        "column": "city",
        "models": {"nowhere": [{"type": "k_anonymity", "k": 4}]},
    }
    steps = {"steps": [own, {"type": "mondrian"}], "max_rows": 200}
    with pytest.raises(ConfigError, match="1 of the 1 controllers named are not in column city"):
        anonlib.check(settings(tmp_path, release=free, partition=steps))


@pytest.mark.usefixtures("noted")
def test_a_refused_release_leaves_a_private_folder(shell: Shell, tmp_path: Path) -> None:
    """The note of the run is all that is in it."""
    write_people(tmp_path)
    impossible = {"models": [{"type": "k_anonymity", "k": 61}]}
    with pytest.raises(InfeasibleError):
        anonlib.release(settings(tmp_path, privacy=impossible))
    private = tmp_path / "out" / "table.private"
    assert {each.name for each in private.iterdir()} == {"runs"}
    assert private.stat().st_mode & 0o777 == 0o700


def test_what_is_published_is_measured_without_keys(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a run that publishes, or would, writes tokens and pseudonyms."""
    monkeypatch.setenv("ANONLIB_LEDGER_KEY", "0123456789abcdef0123456789abcdef")
    write_people(tmp_path)
    ledger = {"ledger": {"key_env": "ANONLIB_LEDGER_KEY"}}
    given = settings(tmp_path, release=ledger, evaluate={"measures": ["moments"]})
    anonlib.release(given)
    monkeypatch.delenv("ANONLIB_LEDGER_KEY")
    assert anonlib.evaluate(given).outcome == "evaluated"
    with pytest.raises(ConfigError, match="ANONLIB_LEDGER_KEY is not set"):
        anonlib.evaluate(given, trial=True)
