"""Whether places lie in one another, however their paths are written."""

import os
import re
from fnmatch import fnmatchcase
from posixpath import normpath

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
