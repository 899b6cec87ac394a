"""Where compiled code is kept."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import TypingError

from anonlib import compiled


def test_private_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = compiled.make_private_directory()
    assert found == tmp_path / "anonlib" / "numba"
    assert found.stat().st_mode & 0o777 == 0o700


def test_directories_that_others_could_write_to_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, temporary = tmp_path / "cache" / "anonlib" / "numba", tmp_path / "temporary"
    ours.mkdir(parents=True)
    ours.chmod(0o777)
    temporary.mkdir()
    (temporary / f"anonlib-numba-{os.getuid()}").symlink_to(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    found = compiled.make_private_directory()
    assert found.parent == temporary
    assert not found.is_symlink()
    assert found.stat().st_mode & 0o777 == 0o700


def test_works_without_home_and_beside_its_sources_leaves_nothing(tmp_path: Path) -> None:
    package = Path(compiled.__file__).parent
    before = files_of(package)
    program = "from anonlib.kernels._search import make_nearest; make_nearest(2)"
    env = {"TMPDIR": str(tmp_path), "PYTHONPATH": str(package.parents[1])}
    env |= {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    (folder,) = tmp_path.iterdir()
    assert folder.name == f"anonlib-numba-{os.getuid()}"
    assert list(folder.rglob("_search.make_nearest*.nbc"))
    assert files_of(package) == before


def files_of(package: Path) -> set[Path]:
    """All files but bytecode, which another process may write at any time."""
    return {path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_a_directory_that_the_user_names_is_used(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compiled.find_cache_directory.__wrapped__().parent == tmp_path


def test_other_packages_keep_their_cache() -> None:
    from numba import config

    before = config.CACHE_DIR
    compiled.njit(compiled._digest)
    assert before == config.CACHE_DIR


def _step(n: int, up: bool) -> int:
    return n + 1 if up else n - 1


def test_a_constant_is_no_reason_to_compile_again(tmp_path: Path, monkeypatch: Any) -> None:
    """In a cache of its own: what is loaded from one is not compiled, nor is what it calls."""
    monkeypatch.setattr(compiled, "find_cache_directory", lambda: tmp_path)
    step: Any = compiled.njit(_step)

    @compiled.njit
    def walk(n: int) -> Any:
        return step(n, True) + step(2, n > 0) + step(3, False)

    assert walk(1) == 2 + 3 + 2
    assert len(getattr(step, "signatures", ["numba is off"])) == 1


def test_a_function_that_makes_arrays_must_count_them(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(compiled, "find_cache_directory", lambda: tmp_path)

    @compiled.njit_in_place
    def total(n: int) -> float:
        return float(np.zeros(n).sum())

    if hasattr(total, "signatures"):  # numba may be off
        with pytest.raises(TypingError):
            total(3)
