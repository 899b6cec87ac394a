"""Places that are, or lie in, one another, however they are written."""

from pathlib import Path
from typing import Any

import pytest

from anonlib.config.places import check_overlaps, lies_in, overlap
from anonlib.config.reading import parse
from anonlib.errors import ConfigError, InputError
from anonlib.run.account import Account
from anonlib.run.events import Events
from tests.unit.test_config_limits import good


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `out/people`, a link to it, and one into it from elsewhere."""
    folder = tmp_path.resolve()
    monkeypatch.chdir(folder)
    (folder / "out/people/part").mkdir(parents=True)
    (folder / "link").symlink_to("out/people")
    (folder / "away").symlink_to("out/people/part")
    return folder


def problems(**changes: Any) -> dict[str, str]:
    try:
        parse(good(**changes))
    except ConfigError as error:
        return {problem.where: problem.text for problem in error.problems}
    return {}


PRIVATE = [
    *("out/people", "out/people/", "out/people/x", "./out//people/x", "x/../out/people/private"),
    *("file:HERE/out/people/private", "file://HERE/out/people", "FILE:HERE/out/people/x"),
    *("/HERE/out/people/x", "link/x", "link", "away/x", "away/../x"),
]


@pytest.mark.parametrize("path", PRIVATE)
def test_private_places_in_the_release(here: Path, path: str) -> None:
    path = path.replace("HERE", str(here))
    said = "lies in the release, which is public; name a private folder elsewhere"
    for release in ("out/people", f"file:{here}/out/people", "link"):
        assert problems(release={"path": release, "record": path}) == {"release.record": said}
        runs = problems(release={"path": release}, accountability={"runs": path})
        assert runs == {"accountability.runs": said}


@pytest.mark.parametrize(
    "path", ["out", "out/people2", "out/people.private", "out/people/../x", "file:/out/people/x"]
)
def test_private_places_beside_it(path: str) -> None:
    assert problems(release={"path": "out/people", "record": path}) == {}


def test_buckets() -> None:
    for record in ("s3a://b/x/../people/r", "s3://b//people/r", "S3A://b/people"):
        found = problems(release={"path": "s3a://b/people", "record": record})
        assert [*found] == ["release.record"]
    for record in ("s3a://b/people2", "s3a://c/people", "hdfs:/people/r"):
        assert problems(release={"path": "s3a://b/people", "record": record}) == {}
    assert lies_in("hdfs:/a/b", "hdfs:///a")


class TestEvents:
    @pytest.mark.parametrize("path", ["out/x/../people/events.jsonl", "link/e.jsonl", "out/people"])
    def test_in_the_release(self, here: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
        assert "lies in the release" in problems(events=path)["events"]
        monkeypatch.setenv("ANONLIB_EVENTS", path)
        with pytest.raises(InputError, match="ANONLIB_EVENTS: lies in the release"):
            Events(Account("release", "r", parse(good()), f"{here}/out/people"))

    @pytest.mark.parametrize("path", ["file:/tmp/x", "file:///tmp/x", "s3a://b/x"])
    def test_elsewhere(self, here: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
        assert "as a plain path" in problems(events=path)["events"]
        monkeypatch.setenv("ANONLIB_EVENTS", path)
        with pytest.raises(InputError, match="as a plain path"):
            Events(Account("release", "r", parse(good()), f"{here}/out/people"))


@pytest.mark.parametrize(
    ("source", "release"),
    [
        ("out/people", "file:HERE/out/people"),
        ("file:HERE/out/people", "out/x/../people/"),
        ("link", "out/people"),
        ("s3a://b/p", "s3://b/p/"),
    ],
)
def test_the_source_itself(here: Path, source: str, release: str) -> None:
    source, release = (path.replace("HERE", str(here)) for path in (source, release))
    said = (
        "is the source itself, whose raw rows would stay in the history of the release; "
        "name another folder"
    )
    given = {"format": "parquet", "path": source}
    assert problems(source=given, release={"path": release}) == {"release.path": said}
    given = {"format": "parquet", "options": {"Path": source}}
    assert problems(source=given, release={"path": release}) == {"release.path": said}


@pytest.mark.parametrize(
    ("source", "release"),
    [
        *(("out/people/part/x.csv", "out/people"), ("away", "out/people"), ("out", "out/people")),
        *((".", "out/people"), ("/", "out/people"), ("file:HERE", "out/people")),
        *(("out/*", "out/people"), ("*/people", "out/people"), ("*/people/*.csv", "out/people")),
        ("out/*/", "out/people"),
        *(
            ("out/{people,x}", "out/people"),
            ("o[^x]t/p*", "out/people"),
            ("o{u{t}}/*", "out/people"),
        ),
        *(
            ("out/people/*.csv", "out/people"),
            ("/*", "out/people"),
            ("{out/people,x}", "out/people"),
        ),
        *(("s3a://b/p/*", "s3a://b/p/out"), ("s3a://b", "s3a://b/p")),
        *(("out [1]", "out [1]/people"), ("out [1]/people/x.csv", "out [1]/people")),
    ],
)
def test_sources_in_and_around_the_release(here: Path, source: str, release: str) -> None:
    given = {"format": "csv", "path": source.replace("HERE", str(here))}
    found = problems(source=given, release={"path": release})
    assert [*found] == ["release.path"]
    assert "name a folder beside the source" in found["release.path"]


@pytest.mark.parametrize(
    "source",
    [
        *("people.csv", "out/people.csv", "out/*.csv", "out/people?", "out/{a,b}", "out/x/*"),
        *("*/*.csv", "*.csv", "file:/out/people", "s3a://b/out/people", "out/people2"),
    ],
)
def test_sources_beside_the_release(source: str) -> None:
    given = {"format": "csv", "path": source}
    assert problems(source=given, release={"path": "out/people"}) == {}


@pytest.mark.parametrize("path", ["\0", "a\ud800b", "x" * 5_000])
def test_names_that_no_system_has(path: str) -> None:
    assert not lies_in(path, "out/people")
    assert not overlap(path, "out/people")


def test_places_that_only_their_store_knows_to_be_one() -> None:
    source = {"format": "csv", "path": "hdfs://a/in"}
    given = parse(good(source=source, release={"path": "hdfs://b:8020/in/out"}))
    assert [*check_overlaps(given.source, given.release, {})] == []
    (problem,) = check_overlaps(
        given.source, given.release, {}, lambda path: path.replace("//a/", "//b:8020/")
    )
    assert problem.where == "release.path"
    assert "it is in the source" in problem.text
