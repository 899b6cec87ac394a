"""The mutants of scripts/mutate: which there are, that each is one change, and those left out."""

import ast
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CODE = '''"""Text."""
LIMIT = 3

def f(x: int = 4, *, deep: bool = True) -> int:
    """Text."""
    if x and not deep:
        raise ValueError(f"{x + 1}")
    with lock:
        go(x)
    return x < LIMIT
'''


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of scripts/mutate."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "lib"))
    import mutate

    return mutate


def test_all_changes_of_a_module(mutate: Any, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(CODE)
    made = mutate.mutants(tmp_path, "m.py")
    assert [mutant.name.removeprefix("m.py ") for mutant in made] == [
        "-: 3 -> 4",
        "-: 3 -> 2",
        "f: True -> False",
        "f: 4 -> 5",
        "f: 4 -> 3",
        "f: x and (not deep) -> x or not deep",
        "f: not deep -> deep",
        "f: raise ValueError(f'{x + 1}') -> pass",
        "f: with lock: -> if True:",
        "f: go(x) -> pass",
        "f: return x < LIMIT -> return None",
        "f: x < LIMIT -> x <= LIMIT",
        "f: x < LIMIT -> x >= LIMIT",
    ]
    assert [mutant.body for mutant in made] == [False] * 5 + [True] * 8
    assert (made[5].first, made[5].last, made[8].first, made[8].last) == (6, 6, 8, 8)
    plain = ast.unparse(ast.parse(CODE)).splitlines()
    for mutant in made:
        changed = ast.unparse(mutate.changed_tree(tmp_path, mutant)).splitlines()
        assert sum(a != b for a, b in zip(plain, changed, strict=True)) == 1


def test_mutants_that_are_left_out_are_there(mutate: Any) -> None:
    """And each has a reason. A name that is no more would hide a mutant one day."""
    names = [m.name for path in mutate.files([]) for m in mutate.mutants(ROOT, path)]
    assert len(names) == len({*names}) > 1500
    reasons = mutate.equivalents()
    assert reasons.keys() <= {*names}
    assert all(reasons.values())


def test_the_tables_files_are_there(mutate: Any) -> None:
    for group in mutate.TESTS:
        assert any(mutate.by_table(path) == group for path in mutate.files([]))
        for stage in ("unit", "spark"):
            assert all((ROOT / path).is_file() for path in mutate.tests_of(stage, group))


def test_a_share_of_a_sample(mutate: Any) -> None:
    """Wilson 1927, as in the literature: 81 of 263 is between 0.2553 and 0.3662."""
    assert mutate.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
