"""Checks the places of a config: no private place in a public one, no release over its source.

The comparisons of paths do not depend on their spelling.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from posixpath import normpath

from anonlib.config.model import Config, ReleaseSection, SourceSection
from anonlib.config.paths import has_scheme
from anonlib.config.secrets import has_password
from anonlib.errors import Problem

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(?=/|$)")

#: The schemes of S3, which all mean one store.
STORES = frozenset({"s3", "s3n", "s3a"})

_GLOB = re.compile(r"[*?\[{]")


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is the folder, or lies in it."""
    inner, outer = _spellings(path), _spellings(folder)
    return any(i == o or i.startswith(f"{o.rstrip('/')}/") for i in inner for o in outer)


def overlap(source: str, folder: str) -> bool:
    """Whether the source may be the folder, something in it, or a folder above it.

    Args:
        source: The path of the source. It may be a glob, or only look like one.
        folder: The path of the folder.
    """
    if lies_in(source, folder) or lies_in(folder, source):
        return True
    parts = (source.rstrip("/") or "/").split("/")
    n_fixed = next((i for i, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    fixed = "/".join(parts[:n_fixed]) or ("/" if n_fixed else ".")
    return lies_in(fixed, folder) or any(
        _reach(parts[n_fixed:], o.removeprefix(f).strip("/").split("/"))
        for f in _spellings(fixed)
        for o in _spellings(folder)
        if o.startswith(f"{f.rstrip('/')}/")
    )


def _reach(globs: list[str], names: list[str]) -> bool:
    """Whether globs below a folder match the path that consists of names, or something in it."""
    if len(globs) > len(names) and not _GLOB.search(globs[-1]):
        return False  # users can't choose the names of a release's files
    return all(map(_matches, names, globs))


def _matches(name: str, glob: str) -> bool:
    """Whether a glob of Hadoop matches a name; True if that is hard to tell."""
    if (glob.count("{"), glob.count("}")) not in ((0, 0), (1, 1)):
        return True
    before, _, rest = glob.replace("[^", "[!").partition("{")
    inner, _, after = rest.partition("}")
    return any(fnmatchcase(name, f"{before}{part}{after}") for part in inner.split(","))


def _spellings(path: str) -> frozenset[str]:
    """The canonical spellings of a path: two on this machine's disk, else one.

    Hadoop resolves `..` before it follows links, the operating system after.
    """
    match = _SCHEME.match(path)
    scheme = "file" if match is None else match[1].lower()
    rest = path if match is None else f"/{path[match.end() :].lstrip('/')}"
    if scheme == "file":
        rest = re.sub("^/+", "/", rest)
        return frozenset({_real(rest), _real(normpath(rest))})
    scheme = "s3a" if scheme in STORES else scheme
    host = match[2] if match is not None and match[2] else ""
    return frozenset({f"{scheme}://{host}{normpath(rest)}"})


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # not a valid name of a file
        return path


def check_places(config: Config) -> Iterator[Problem]:
    """Checks the paths of a config, and the name in the catalog."""
    yield from check_table_name(config.release)
    source, release, private = config.source, config.release, list_private_places(config)
    yield from check_overlaps(source, release, private)
    yield from check_paths(
        {"source.path": source.path or "", "release.path": release.path, **private}
    )
    if has_scheme(config.events or ""):
        yield Problem("events", "must be a file or folder of this machine, as a plain path")


def check_overlaps(
    source: SourceSection,
    release: ReleaseSection,
    private: Mapping[str, str],
    spell: Callable[[str], str] = str,
) -> Iterator[Problem]:
    """Problems: private places in the release, or a release that overlaps with its source.

    Args:
        source: The source.
        release: The release.
        private: By path in the config: a private place, as `list_private_places` finds them.
        spell: Gives the canonical spelling of a path, for stores that know more than the path
            shows.
    """
    folder = spell(release.path)
    option = {name.lower(): path for name, path in source.options.items()}.get("path")
    for rows in map(spell, filter(None, (source.path, option))):
        if lies_in(rows, folder) and lies_in(folder, rows):
            yield Problem(
                "release.path",
                "is the source itself, whose raw rows would stay in the history of the release; "
                "name another folder",
            )
        elif overlap(rows, folder):
            yield Problem(
                "release.path",
                "the source is in it, or it is in the source: a run may read what it releases; "
                "name a folder beside the source",
            )
    for where, path in private.items():
        # Events are files of this machine, even if plain paths are in another store.
        if lies_in(path if where == "events" else spell(path), folder):
            yield Problem(
                where,
                "lies in the release, which is public; name a private folder elsewhere",
            )


def list_private_places(config: Config) -> dict[str, str]:
    """By path in the config: the private place there. Has only the places that it names."""
    places = {
        "release.record": config.record_folder,
        "release.ledger": config.release.ledger and config.release.ledger.path,
        "release.backlog": config.release.backlog and config.release.backlog.path,
        "evaluate.metrics": config.evaluate and config.evaluate.metrics,
        "accountability.runs": config.accountability.runs,
        "events": config.events,
    }
    # All other private places are below the folder of the records.
    return {where: path for where, path in places.items() if path}


def check_paths(paths: Mapping[str, str]) -> Iterator[Problem]:
    """Paths of stores have no credentials, and name a folder in the bucket.

    Args:
        paths: By path in the config: a path.
    """
    for where, path in paths.items():
        scheme, _, rest = path.partition("://")
        bucket, _, folder = rest.partition("/")
        if has_password(path) or (scheme.lower() in STORES and "@" in bucket):
            yield Problem(where, "credentials don't belong in a path; remove the part before the @")
        elif scheme.lower() in STORES and where != "source.path" and not folder.strip("/"):
            yield Problem(where, "name a folder in the bucket")


#: A name that every catalog accepts, Hive's included.
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}(\.[A-Za-z0-9_]{1,128}){1,2}")


def check_table_name(release: ReleaseSection) -> Iterator[Problem]:
    """Checks the name of the release in the catalog."""
    name = release.catalog_table
    if name is not None and not _NAME.fullmatch(name):
        yield Problem(
            "release.register", "must be [catalog.]schema.table, each of letters, digits and _"
        )
