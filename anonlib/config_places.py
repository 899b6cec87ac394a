"""Where a config's rows, releases and private tables lie."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from anonlib.config import Config
from anonlib.config_databases import name_problems
from anonlib.errors import Problem


def place_problems(config: Config) -> Iterator[Problem]:
    """What is wrong with the paths and names of a config."""
    yield from name_problems(config.release)
    release = _folder(config.release.path)
    if config.source.path and _folder(config.source.path) == release:
        text = "the source itself: its raw rows would stay in the history of the release"
        yield Problem("release.path", text)
    given = {
        "release.record": config.record_path,
        "release.ledger": config.release.ledger and config.release.ledger.path,
        "release.backlog": config.release.backlog and config.release.backlog.path,
        "evaluate.metrics": config.evaluate and config.evaluate.metrics,
        "accountability.runs": config.accountability.runs,
        "events": config.events,
    }
    private = {where: path for where, path in given.items() if path}  # else below the record's
    paths = {"source.path": config.source.path or "", "release.path": release, **private}
    yield from _buckets(paths)
    if "://" in (config.events or ""):
        yield Problem("events", "must be a file or folder of this machine")
    for where, path in private.items():
        if f"{_folder(path)}/".startswith(f"{release}/"):
            yield Problem(where, "lies in the release, which is public; it is private")


def _buckets(paths: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with paths of S3, by their place in the config."""
    for where, path in paths.items():
        scheme, _, rest = path.partition("://")
        bucket, _, folder = rest.partition("/")
        if scheme == "s3a" and "@" in bucket:
            yield Problem(where, "credentials don't belong in a path; remove what is before the @")
        elif scheme == "s3a" and where != "source.path" and not folder.strip("/"):
            yield Problem(where, "name a folder in the bucket")


def _folder(path: str) -> str:
    """The path in one spelling, as far as that can be told without looking."""
    path = path.removeprefix("file://")
    return path.rstrip("/") if "://" in path else str(Path(path).absolute())
