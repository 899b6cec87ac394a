"""Whether places lie in one another, however their paths are written.

Where a config's rows, releases and private tables lie.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath

from anonlib.config.model import Config, ReleaseSection
from anonlib.config.secrets import has_password
from anonlib.errors import Problem

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(?=/|$)")

#: The schemes of S3, which all name one store.
STORES = frozenset({"s3", "s3n", "s3a"})

_GLOB = re.compile(r"[*?\[{]")


def has_scheme(path: str) -> bool:
    """Whether a path says what it is of, as `file:/a` and `s3a://bucket/a` do."""
    return _SCHEME.match(path) is not None


def lies_in(path: str, folder: str) -> bool:
    """Whether the path is the folder, or lies in it."""
    inner, outer = _spellings(path), _spellings(folder)
    return any(i == o or i.startswith(f"{o.rstrip('/')}/") for i in inner for o in outer)


def overlap(source: str, folder: str) -> bool:
    """Whether who reads the source, whose path may be a glob, might read what is in the folder, or
    what that is in."""
    parts = source.split("/")
    n_fixed = next((i for i, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    fixed = "/".join(parts[:n_fixed]) or ("/" if n_fixed else ".")
    return lies_in(fixed, folder) or any(
        _reach(parts[n_fixed:], o.removeprefix(f).strip("/").split("/"))
        for f in _spellings(fixed)
        for o in _spellings(folder)
        if o.startswith(f"{f.rstrip('/')}/")
    )


def _reach(globs: list[str], names: list[str]) -> bool:
    """Whether globs below a folder match one that these names lead to, or what is in that."""
    if len(globs) > len(names) and not _GLOB.search(globs[-1]):
        return False  # no file of a release has a name that could be chosen
    return all(map(_matches, names, globs))


def _matches(name: str, glob: str) -> bool:
    """Whether a name is one of a glob's, as Hadoop has them; true where that is hard to tell."""
    if (glob.count("{"), glob.count("}")) not in ((0, 0), (1, 1)):
        return True
    before, _, rest = glob.replace("[^", "[!").partition("{")
    inner, _, after = rest.partition("}")
    return any(fnmatchcase(name, f"{before}{part}{after}") for part in inner.split(","))


def _spellings(path: str) -> frozenset[str]:
    """The path in one spelling; on this machine's disk in two, since Hadoop takes `..` away before
    it follows a link, and the system does after."""
    found = _SCHEME.match(path)
    scheme = "file" if found is None else found[1].lower()
    rest = path if found is None else f"/{path[found.end() :].lstrip('/')}"
    if scheme == "file":
        rest = re.sub("^/+", "/", rest)
        return frozenset({_real(rest), _real(normpath(rest))})
    scheme = "s3a" if scheme in STORES else scheme
    host = found[2] if found is not None and found[2] else ""
    return frozenset({f"{scheme}://{host}{normpath(rest)}"})


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # no system has such a name
        return path


def check_places(config: Config) -> Iterator[Problem]:
    """What is wrong with the paths and names of a config."""
    yield from check_table_name(config.release)
    yield from check_overlaps(config)
    release, private = config.release.path, _private(config)
    yield from check_paths(
        {"source.path": config.source.path or "", "release.path": release, **private}
    )
    if has_scheme(config.events or ""):
        yield Problem("events", "must be a file or folder of this machine, as a plain path")


def check_overlaps(config: Config, spelled: Callable[[str], str] = str) -> Iterator[Problem]:
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


def check_paths(paths: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with paths of stores, by their place in the config."""
    for where, path in paths.items():
        scheme, _, rest = path.partition("://")
        bucket, _, folder = rest.partition("/")
        if has_password(path) or (scheme.lower() in STORES and "@" in bucket):
            yield Problem(where, "credentials don't belong in a path; remove what is before the @")
        elif scheme.lower() in STORES and where != "source.path" and not folder.strip("/"):
            yield Problem(where, "name a folder in the bucket")


#: What every catalog takes as a name, Hive's included.
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}(\.[A-Za-z0-9_]{1,128}){1,2}")


def check_table_name(release: ReleaseSection) -> Iterator[Problem]:
    """What is wrong with the name in the catalog."""
    name = release.catalog_table
    if name is not None and not _NAME.fullmatch(name):
        text = "must be [catalog.]schema.table, each of letters, digits and _"
        yield Problem("release.register", text)
