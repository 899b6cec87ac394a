"""The checker sees what is broken, and imports nothing of anonlib."""

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from deltalake import write_deltalake

from tests.faults import checker
from tests.faults.checker import Broken
from tests.faults.scene import Scene, people


def released() -> pd.DataFrame:
    """Three classes of three persons."""
    rows = people(0, 9)
    return pd.DataFrame(
        {"wage": [i // 3 for i in range(9)], "city": "c", "illness": rows["illness"]}
    )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """After a run that overwrote a table and ended well."""
    found = Scene(tmp_path, "csv", "overwrite")
    found.out.mkdir()
    found.write_target()
    found.note_target()
    found.write_source(people(0, 9))
    found.plant()
    write_deltalake(str(found.target), released(), mode="overwrite")
    for name in found.before.files:
        (found.target / name).unlink()
    (found.target / "_anonlib").mkdir()
    manifest = {"run_id": "run", "rows_released": 9}
    (found.target / "_anonlib" / "manifest.json").write_text(json.dumps(manifest))
    record = found.out / "table.private" / "run.json"
    record.write_text(json.dumps({"outcome": "published"}))
    return found


def check(scene: Scene) -> None:
    """All that is looked at after a run that ended well."""
    table, private = checker.read_table(scene.target), scene.out / "table.private"
    assert checker.require_old_or_new(table, scene.before, scene.states, appended=False)
    checker.require_foreign(scene.out, scene.foreign)
    checker.require_private(scene.out)
    checker.require_no_raw([scene.out], scene.raw())
    checker.require_recorded(scene.target, private, "run", table)
    checker.require_tidy(scene.out, scene.target, private, scene.foreign, table, there_before=False)


def data_file(scene: Scene) -> Path:
    (name,) = checker.read_table(scene.target).files
    return scene.target / name


def rewrite(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Scene], None]:
    def hurt(scene: Scene) -> None:
        path = str(scene.target)
        write_deltalake(path, change(released()), mode="overwrite", schema_mode="overwrite")

    return hurt


def wage() -> int:
    return int(people(0)["wage"][1])


BREAKS: dict[str, Callable[[Scene], object]] = {
    "fewer than k": rewrite(lambda rows: rows.assign(wage=[0, 1, 1, 1, 1, 2, 2, 2, 2])),
    "fewer than l": rewrite(
        lambda rows: rows.assign(illness=sorted(rows["illness"]), wage=[0] * 2 + [1] * 7)[
            2:
        ].assign(illness="one")
    ),
    "has the columns": rewrite(lambda rows: rows.assign(name="x")),
    "any state of the source": rewrite(lambda rows: rows.assign(illness=rows["illness"] + "?")),
    "in the log and not there": lambda s: data_file(s).unlink(),
    "another length": lambda s: data_file(s).write_bytes(b"PAR1"),
    "thesis.txt, a file of others, is gone": lambda s: (s.target / "thesis.txt").unlink(),
    "notes.txt, a file of others, is not": lambda s: (s.out / "notes.txt").write_text(""),
    "mode 755": lambda s: (s.out / "_table.anonlib").mkdir(mode=0o755),
    "left beside": lambda s: (s.out / "_table.anonlib").mkdir(mode=0o700),
    "not in its log": lambda s: (s.target / "part-7.parquet").write_text(""),
    "another run": lambda s: (s.target / "_anonlib" / "manifest.json").write_text('{"run_id": 1}'),
    "the record says": lambda s: (s.out / "table.private/run.json").write_text('{"outcome": ""}'),
}
RAW: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("error: CANARYNAME-3 is wrong"),
    "wide text": lambda path: path.write_bytes("CANARYNAME-3".encode("utf-16-le")),
    "digits": lambda path: path.write_text(f"mean {wage()}"),
    "eight bytes": lambda path: path.write_bytes(b"x" + wage().to_bytes(8, "little")),
    "column": lambda path: pd.DataFrame({"a": ["CANARYNAME-3"] * 99}).to_parquet(
        path.with_suffix(".parquet"), compression="zstd"
    ),
}


def test_what_holds(scene: Scene) -> None:
    check(scene)


@pytest.mark.parametrize("text", BREAKS)
def test_what_is_broken(scene: Scene, text: str) -> None:
    BREAKS[text](scene)
    with pytest.raises(Broken, match=text):
        check(scene)


@pytest.mark.parametrize("how", RAW)
def test_raw_values(scene: Scene, how: str) -> None:
    RAW[how](scene.out / "table.private" / "left")
    with pytest.raises(Broken, match="a raw value is in"):
        check(scene)


def test_the_old_table(tmp_path: Path) -> None:
    """Neither a new table nor a changed one passes as the old one; batches before stay."""
    path = str(tmp_path / "table")
    write_deltalake(path, released())
    before = checker.read_table(Path(path))
    states = [people(0, 9)]
    ask = lambda: checker.require_old_or_new(
        checker.read_table(Path(path)), before, states, appended=True
    )
    assert not ask()
    write_deltalake(path, released(), mode="append")
    assert ask()
    write_deltalake(path, released(), mode="append")
    with pytest.raises(Broken, match="18 rows are new"):
        ask()
    write_deltalake(path, pd.concat([released()] * 2, ignore_index=True), mode="overwrite")
    with pytest.raises(Broken, match="files of earlier batches"):
        ask()


@pytest.mark.parametrize(
    ("text", "code", "right"),
    [
        ("", 0, True),
        ("error: no\n", 1, True),
        ("interrupted: stopped\n", 1, True),
        ("", None, True),
        ("", 1, False),
        ("error: no\n", 0, False),
        ("error: no\nerror: no\n", 1, False),
        ("Traceback (most recent call last):\nerror: no\n", 1, False),
    ],
)
def test_what_a_run_says(text: str, code: int | None, *, right: bool) -> None:
    if right:
        checker.require_said(text, code)
    else:
        with pytest.raises(Broken):
            checker.require_said(text, code)


def test_a_mind_of_its_own() -> None:
    tree = ast.parse(Path(checker.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [
        name
        for node in imports
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    ]
    assert "deltalake" in names
    assert not [name for name in names if name and name.split(".")[0] in ("anonlib", "tests")]


def test_data_files_in_a_table_that_was_there_are_left_to_vacuum(scene: Scene) -> None:
    table, private = checker.read_table(scene.target), scene.out / "table.private"

    def look() -> None:
        checker.require_tidy(
            scene.out, scene.target, private, scene.foreign, table, there_before=True
        )

    (scene.target / "part-7.parquet").write_text("")
    look()
    (scene.target / "values.csv").write_text("")
    with pytest.raises(Broken, match="not in its log"):
        look()
