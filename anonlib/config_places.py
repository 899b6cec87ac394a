"""Where a config's rows, releases and private tables lie."""

from collections.abc import Callable, Iterator, Mapping

from anonlib.config import Config
from anonlib.config_databases import name_problems
from anonlib.errors import Problem
from anonlib.places import STORES, has_scheme, lies_in, overlap
from anonlib.secret_names import has_password


def place_problems(config: Config) -> Iterator[Problem]:
    """What is wrong with the paths and names of a config."""
    yield from name_problems(config.release)
    yield from overlap_problems(config)
    release, private = config.release.path, _private(config)
    yield from path_problems(
        {"source.path": config.source.path or "", "release.path": release, **private}
    )
    if has_scheme(config.events or ""):
        yield Problem("events", "must be a file or folder of this machine, as a plain path")


def overlap_problems(config: Config, spelled: Callable[[str], str] = str) -> Iterator[Problem]:
    """Where what is private lies in what is public, or the other way. spelled: the one spelling of
    each path, where more is known of stores than paths say."""
    release = spelled(config.release.path)
    option = {name.lower(): path for name, path in config.source.options.items()}.get("path")
    for source in map(spelled, filter(None, (config.source.path, option))):
        if lies_in(source, release) and lies_in(release, source):
            text = "the source itself: its raw rows would stay in the history of the release"
            yield Problem("release.path", text)
        elif overlap(source, release):
            text = "the source is in it, or it is in the source: a run may read what it releases"
            yield Problem("release.path", f"{text}; name a folder beside the source")
    for where, path in _private(config).items():
        # Events are files of this machine, whatever the store of plain paths is.
        if lies_in(path if where == "events" else spelled(path), release):
            yield Problem(where, "lies in the release, which is public; it is private")


def _private(config: Config) -> dict[str, str]:
    """The private places that a config names."""
    given = {
        "release.record": config.record_path,
        "release.ledger": config.release.ledger and config.release.ledger.path,
        "release.backlog": config.release.backlog and config.release.backlog.path,
        "evaluate.metrics": config.evaluate and config.evaluate.metrics,
        "accountability.runs": config.accountability.runs,
        "events": config.events,
    }
    return {where: path for where, path in given.items() if path}  # else below the record's


def path_problems(paths: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with paths of stores, by their place in the config."""
    for where, path in paths.items():
        scheme, _, rest = path.partition("://")
        bucket, _, folder = rest.partition("/")
        if has_password(path) or (scheme.lower() in STORES and "@" in bucket):
            yield Problem(where, "credentials don't belong in a path; remove what is before the @")
        elif scheme.lower() in STORES and where != "source.path" and not folder.strip("/"):
            yield Problem(where, "name a folder in the bucket")
