"""numba for the cores: compiled code is cached on disk, in a directory that is safe to load from.

Loading a cache runs its contents, so the directory must be this user's alone. It is named by the
sources of all cores: numba's own check sees a function's file, not the files of what it calls.
Where NUMBA_CACHE_DIR is set, the cache lies in there. Cores in a zip (`--py-files`) are compiled by
every process: numba would cache them in a place of its own, where changed callees are not seen.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

from anonlib.arrays import Floats, Ints

P = ParamSpec("P")
R = TypeVar("R")

#: No fast math: results must be those of the oracles to the last bit. The error model of numpy
#: leaves out checks for division by zero.
OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
#: The packages that have compiled cores.
FOLDERS = ("kernels", "loss", "measure", "partition", "table")
#: The types of numbers and flags that a compiled caller writes down.
CONSTANTS = (numba.types.IntegerLiteral, numba.types.BooleanLiteral)


def njit(function: Callable[P, R]) -> Callable[P, R]:
    """The function compiled at its first call: cached, and without the GIL.

    Private ones (`_name`) are for other compiled functions only, which takes less to compile.
    """
    return _compile(function, {})


def njit_in_place(function: Callable[P, R]) -> Callable[P, R]:
    """The same for a function that neither makes nor returns arrays.

    Its arrays are then not counted as in use, two atomic steps for each one of a call. A small
    function of a tuple of 22 arrays takes longer to count than to run. Numba refuses to compile a
    function that makes arrays so.
    """
    return _compile(function, {"_nrt": False})


def _compile(function: Callable[P, R], more: dict[str, bool]) -> Callable[P, R]:
    config: Any = numba.config
    jit: Any = numba.njit
    private = function.__name__.startswith("_")
    options = {**OPTIONS, **more, "cache": Path(function.__code__.co_filename).is_file()}
    before = config.CACHE_DIR
    # numba fixes the place at decoration. Put back, so that other packages keep theirs.
    config.CACHE_DIR = str(find_cache_directory())
    try:
        compiled: Callable[P, R] = jit(**options, no_cpython_wrapper=private)(function)
    finally:
        config.CACHE_DIR = before
    _forget_constants(compiled)
    return compiled


def _forget_constants(core: Any) -> None:
    """Makes callers find a function by the types of its arguments alone.

    numba would compile it again for each number or flag that a caller writes down. It asks
    `get_call_template` of the function, which is an internal of numba's.
    """
    types: Any = numba.types
    find = getattr(core, "get_call_template", None)
    if find is None:  # NUMBA_DISABLE_JIT
        return

    def forget(type: Any) -> Any:
        return types.unliteral(type) if isinstance(type, CONSTANTS) else type

    def find_template(args: Any, kws: Any) -> Any:
        return find(tuple(map(forget, args)), {name: forget(kws[name]) for name in kws})

    core.get_call_template = find_template


@cache
def find_cache_directory() -> Path:
    """Where the cores' compiled code is kept."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(chosen) if chosen else make_private_directory()
    return base / f"anonlib-{_digest()}"


def make_private_directory() -> Path:
    """A directory of this user's with mode 0700: in the user's cache, else among the temporary
    files, else a new one for this process."""
    for path in _candidates():
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(path):
                return path
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="anonlib-numba-"))


def _candidates() -> list[Path]:
    temporary = Path(tempfile.gettempdir()) / f"anonlib-numba-{os.getuid()}"
    home = os.environ.get("HOME")
    caches = os.environ.get("XDG_CACHE_HOME") or (home and Path(home) / ".cache")
    return [Path(caches) / "anonlib" / "numba", temporary] if caches else [temporary]


def _is_private(path: Path) -> bool:
    """Whether only this user can write there (a link that someone else placed is refused)."""
    found = path.lstat()
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return ours and stat.S_IMODE(found.st_mode) == 0o700 and os.access(path, os.W_OK)


def _digest() -> str:
    here = Path(__file__).parent
    folders = [sorted((here / part).rglob("*.py")) for part in FOLDERS]
    own = [Path(__file__)] if Path(__file__).is_file() else []  # in a zip nothing is cached
    sources = [*own, *chain.from_iterable(folders)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


@njit_in_place
def select(key: Floats, item: Ints, start: int, stop: int, middle: int) -> None:
    """Reorders start..stop so that no key before `middle` is above one from there on."""
    while stop - start > 1:
        pivot = key[(start + stop) // 2]
        i, j = start, stop - 1
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                item[i], item[j] = item[j], item[i]
                i += 1
                j -= 1
        if middle <= j:
            stop = j + 1
        elif middle >= i:
            start = i
        else:
            return


@njit_in_place
def sort(key: Floats, item: Ints, n: int) -> None:
    """Sorts the first n by key. Cost O(n log n)."""
    run = 1
    while run < n:
        run *= 2
    while run > 1:
        for start in range(0, n, run):
            stop, middle = min(start + run, n), start + run // 2
            if middle < stop:
                select(key, item, start, stop, middle)
        run //= 2
