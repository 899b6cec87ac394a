"""Lines of a certificate that follow from the classes of a table, or that the manifest has."""

import json
import re
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anonlib
from anonlib.auditing import audit_in_memory
from anonlib.auditing.report import name_controllers, split_label
from anonlib.pages.certificate import describe_audit
from anonlib.pages.seal import Certificate, Facts, open_seal, seal_record
from anonlib.pages.words import number
from anonlib.run import confirmation
from anonlib.run.confirmation import LineVerdict, _is_same, confirm_lines
from anonlib.table.table_digest import digest_in_memory
from anonlib.table.type_words import spell_column
from tests.unit.test_anonymize import people, released
from tests.unit.test_controllers_in_memory import config as of_controllers
from tests.unit.test_controllers_in_memory import people as hospitals

LARGEST, MEAN = (f"{which} chance to be found by class size" for which in ("largest", "mean"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, dict[str, Any]]:
    """A table, and its private record."""
    release = released(people())
    path = tmp_path_factory.mktemp("made") / "record.json"
    release.save_record(path)
    table = pa.Table.from_pandas(release.table, preserve_index=False)
    record = json.loads(path.read_text())
    record["settings"]["persons"] = "one row per person, declared"
    record["specs"]["persons"] = {"kind": "declared", "columns": []}
    return table, record


def confirm(table: pa.Table, facts: Facts, manifest: dict[str, Any]) -> tuple[LineVerdict, ...]:
    testimony = confirmation.Testimony(
        columns=tuple(table.column_names),
        types=tuple(map(spell_column, table.columns)),
        lists=frozenset(),
        take_digest=lambda places: digest_in_memory(table.select([*places])),
        manifest=manifest,
        count=partial(audit_in_memory, table),
    )
    return confirm_lines(Certificate(facts.page(), facts, None), testimony)


def tell_states(table: pa.Table, facts: Facts, manifest: dict[str, Any]) -> dict[str, str]:
    """By first text of a line: the state of the first line with it."""
    return {line.name: line.state for line in reversed(confirm(table, facts, manifest))}


def contradicted(table: pa.Table, facts: Facts, manifest: dict[str, Any]) -> set[str]:
    """The first texts of lines that are contradicted."""
    lines = confirm(table, facts, manifest)
    return {line.name for line in lines if line.state == "contradicted"}


def test_verdicts_on_parts_of_a_table_are_on_the_certificate(tmp_path: Path) -> None:
    """Those of files, controllers, and controllers with models of their own."""
    models = {"south": [{"type": "k_anonymity", "k": 30}]}
    release = anonlib.anonymize(hospitals(), of_controllers(released=True, models=models))
    release.save_record(tmp_path / "record.json")
    table = pa.Table.from_pandas(release.table, preserve_index=False)
    facts = seal_record((tmp_path / "record.json").read_text())
    manifest = make_manifest(release.record)
    labels = [verdict["model"] for verdict in manifest["verdicts"]]
    assert {split_label(label)[0] for label in labels} == {
        "",
        "each controller",
        "1 controller with its own models",
    }
    assert contradicted(table, facts, manifest) & {*labels} == set()
    for label in labels:
        less = {**manifest, "verdicts": [v for v in manifest["verdicts"] if v["model"] != label]}
        assert contradicted(table, facts, less) & {*labels} == {label}


def change_line(facts: Facts, name: str, change: Callable[[str], str], cell: int = 1) -> Facts:
    """The facts with another text in a line, sealed again."""
    content = json.loads(facts.text)
    for section in (*content["sections"], *content["annexes"]):
        for line in section["lines"]:
            if line["cells"][0] == name:
                line["cells"][cell] = change(line["cells"][cell])
    return open_seal(Facts(content).page())


def make_manifest(record: dict[str, Any]) -> dict[str, Any]:
    """That of the record's run, as far as lines are compared with it."""
    columns = record["settings"]["columns"]
    return {
        "run_id": record["run_id"],
        "promise_sha256": next(
            cells[1]
            for cells in seal_record(json.dumps(record)).lines().values()
            if cells[0] == "promise"
        ),
        "software": record["software"],
        "persons": "one row per person: declared, not checked",
        "rows_suppressed": "0",
        "losses": {n: v and float(f"{v:.3g}") for n, v in record["losses"].items()},
        "verdicts": [{"model": v["model"]} for v in record["audit"]["verdicts"]],
        "columns": [
            {"name": n, "role": columns[n]["role"], "form": "interval"}
            for n in describe_audit(record)["columns"]
        ],
    }


def test_chances_follow_from_the_classes(made: tuple[pa.Table, dict[str, Any]]) -> None:
    table, record = made
    facts = seal_record(json.dumps(record))
    states = tell_states(table, facts, {})
    assert states[LARGEST] == states[MEAN] == states["5 actual risk"] == "confirmed"
    for name in (LARGEST, MEAN, "5 actual risk"):
        forged = change_line(facts, name, lambda text: f"{text[:-1]}0")
        assert tell_states(table, forged, {})[name] == "contradicted"
    forged = change_line(facts, LARGEST, lambda text: "within 0.05", 4)
    assert tell_states(table, forged, {})[LARGEST] == "contradicted"


def test_classes_of_more_rows_than_are_counted_apart(tmp_path: Path) -> None:
    """The smallest class and its chance are exact, whatever sizes are rounded to."""
    table = pa.table({"g": ["a"] * 1500 + ["b"] * 1900, "s": ["u", "v"] * 1700})
    roles: Any = {"quasi_identifiers": ["g"], "sensitive": ["s"], "one_row_per_person": True}
    release = anonlib.anonymize(table, **roles, k=1200, l=2)
    release.save_record(tmp_path / "record.json")
    facts = seal_record((tmp_path / "record.json").read_text())
    lines = {cells[0]: cells[1:] for cells in facts.lines().values()}
    assert lines["rows of the smallest class"] == ("1,500",)
    assert lines[LARGEST][0] == number(1 / 1500) == number(release.risk["prosecutor_max"])
    states = tell_states(release.table, facts, {})
    assert states["rows of the smallest class"] == states[LARGEST] == "confirmed"
    assert "1,500–2,047" in release.report()
    forged = change_line(facts, LARGEST, lambda _: number(1 / 1024))
    assert tell_states(release.table, forged, {})[LARGEST] == "contradicted"


def test_chances_of_batches_are_bounds(made: tuple[pa.Table, dict[str, Any]]) -> None:
    table, record = made
    audit = record["audit"]
    sizes = [[audit["sizes"][0][0] - 1, 1], *audit["sizes"]]
    apart = {**audit, "by_batch": True, "n_classes": audit["n_classes"] + 1, "sizes": sizes}
    facts = seal_record(json.dumps({**record, "audit": apart}))
    states = tell_states(table, facts, {})
    assert states[LARGEST] == states[MEAN] == "confirmed"


def test_persons_of_a_unit_are_not_rows(made: tuple[pa.Table, dict[str, Any]]) -> None:
    table, record = made
    specs = {**record["specs"], "persons": {"kind": "unit", "columns": ["id"]}}
    facts = seal_record(json.dumps({**record, "specs": specs}))
    assert tell_states(table, facts, {})[LARGEST] == "unsaid"


def test_a_run_of_another_table_with_the_same_id(made: tuple[pa.Table, dict[str, Any]]) -> None:
    """Its manifest confirms nothing; and what is not counted are not 0 classes."""
    table, record = made
    facts, manifest = seal_record(json.dumps(record)), make_manifest(record)
    first, *rest = manifest["columns"]
    other = {**manifest, "columns": [{**first, "name": "other"}, *rest]}
    states = tell_states(table, facts, other)
    assert (states["run"], states["loss ncp"]) == ("contradicted", "unsaid")
    lacking = table.drop_columns([facts.content["audit"]["quasi_identifiers"][0]])
    testimony = confirmation.Testimony(
        *(
            tuple(lacking.column_names),
            (None,) * 9,
            frozenset(),
            lambda _: digest_in_memory(lacking),
            {},
        ),
        partial(audit_in_memory, lacking),
    )
    lines = confirm_lines(Certificate(facts.page(), facts, None), testimony)
    told = {line.name: line.reason for line in lines}
    assert told["classes"] == "the table has other columns than are to be counted"
    assert told["rows of the smallest class"] == told["classes"]


def test_a_table_that_has_grown_since(made: tuple[pa.Table, dict[str, Any]]) -> None:
    """What is contradicted is explained by the version; only what differs is said."""
    table, record = made
    published = {"outcome": "published", "table": "out/people", "table_version": 2}
    facts = seal_record(json.dumps({**record, **published}))
    grown = pa.concat_tables([table, table])

    def compare(there: pa.Table, version: int) -> dict[str, str]:
        testimony = confirmation.Testimony(
            *(
                tuple(there.column_names),
                (None,) * 9,
                frozenset(),
                lambda _: digest_in_memory(there),
                {},
            ),
            partial(audit_in_memory, there),
            version,
        )
        lines = confirm_lines(Certificate(facts.page(), facts, None), testimony)
        return {line.name: line.reason for line in lines}

    told = compare(grown, 7)
    assert told["the version that was compared"] == (
        "the certificate is of version 2, and version 7 of the table was compared: `--version 2` "
        "compares its own"
    )
    assert told["rows"] == f"the table has {2 * len(table)}"
    assert re.fullmatch(r"the table has 0\.\d+", told[LARGEST])
    assert "the version that was compared" not in compare(grown, 2)
    assert "the version that was compared" not in compare(table, 7)  # as after OPTIMIZE


def test_what_the_manifest_has_of_a_batch(made: tuple[pa.Table, dict[str, Any]]) -> None:
    """Losses are confirmed as those of the batch, and not as those of the table."""
    table, record = made
    settings = {**record["settings"], "release": {"mode": "append"}}
    published = {"outcome": "published", "table": "out/people", "table_version": 1}
    facts = seal_record(json.dumps({**record, **published, "settings": settings}))
    manifest = {**make_manifest(record), "rows_added": record["n_rows_out"]}
    names = [f"{name} of the batch" for name in ("rows", "rows suppressed", "loss ncp")]
    assert {tell_states(table, facts, manifest)[name] for name in names} == {"confirmed"}
    forged = change_line(facts, "loss ncp of the batch", lambda _: "loss ncp", 0)
    assert tell_states(table, forged, manifest)["loss ncp"] == "unsaid"
    other = {**manifest, "rows_added": 1}
    assert tell_states(table, facts, other)["rows of the batch"] == "contradicted"


def test_what_the_manifest_has(made: tuple[pa.Table, dict[str, Any]]) -> None:
    table, record = made
    facts, manifest = seal_record(json.dumps(record)), make_manifest(record)
    states = tell_states(table, facts, manifest)
    assert states["rows suppressed"] == states["persons"] == states["loss ncp"] == "confirmed"
    column = next(n for n, c in record["settings"]["columns"].items() if c["role"] == "sensitive")
    for name, text in (
        *(("rows suppressed", "5"), ("persons", "one row per person: id")),
        *(("loss ncp", "0.01"), ("loss ncp", "little"), (column, "insensitive")),
    ):
        forged = change_line(facts, name, lambda _, text=text: text)  # type: ignore[misc]
        assert tell_states(table, forged, manifest)[name] == "contradicted", name
    few = {**manifest, "rows_suppressed": "<5"}
    assert tell_states(table, facts, few)["rows suppressed"] == "contradicted"
    hidden = change_line(facts, "rows suppressed", lambda _: "fewer than 5")
    assert tell_states(table, hidden, few)["rows suppressed"] == "confirmed"
    for persons in ("counted by unit", "one row per person: checked"):
        other = {**manifest, "persons": persons}
        assert tell_states(table, facts, other)["persons"] == "contradicted"
    earlier = {**manifest, "run_id": "another", "rows_suppressed": "7"}
    states = tell_states(table, facts, earlier)
    assert (states["run"], states["rows suppressed"]) == ("contradicted", "unsaid")


@pytest.mark.parametrize(
    ("kind", "text", "in_manifest"),
    [
        ("declared", "one row per person, declared", "one row per person: declared, not checked"),
        ("checked", "one row per person: id", "one row per person: checked"),
        ("unit", "unit of 1 column: id", "counted by unit"),
    ],
)
def test_persons_who_may_be_in_several_batches(
    made: tuple[pa.Table, dict[str, Any]], kind: str, text: str, in_manifest: str
) -> None:
    """The certificate says so if the manifest does."""
    table, record = made
    record = {
        **record,
        "settings": {**record["settings"], "persons": text},
        "specs": {**record["specs"], "persons": {"kind": kind, "columns": ["id"]}},
    }
    manifest = {**make_manifest(record), "persons": in_manifest}
    for told, known in product((False, True), repeat=2):
        facts = seal_record(json.dumps({**record, "persons_return": told}))
        found = tell_states(table, facts, {**manifest, "persons_return": known})["persons"]
        # The manifest has no names of columns: it can't confirm them.
        agreed = "confirmed" if kind == "declared" else "unsaid"
        assert found == (agreed if told == known else "contradicted"), (told, known)


@pytest.mark.parametrize(
    ("text", "value", "same"),
    [
        *(("0.05651", 0.0565, True), ("0.05661", 0.0565, False), ("300,404", 300000, True)),
        *(("3.0e-07", 3.04e-07, True), ("3.2e-07", 3.04e-07, False), ("0", 0.0, True)),
        *(("0", 0.1, False), ("–", 0.1, False), ("0.05645", 0.0564, True)),
    ],
)
def test_numbers_in_other_digits(text: str, value: float, same: bool) -> None:
    assert _is_same(text, value) is same


def test_a_certificate_that_was_forged(
    made: tuple[pa.Table, dict[str, Any]], tmp_path: Path
) -> None:
    """By the public verb: the digest of its facts is made anew."""
    table, record = made
    forged = change_line(seal_record(json.dumps(record)), LARGEST, lambda _: "0.00833")
    (tmp_path / "c.html").write_text(forged.page())
    lines = anonlib.verify(tmp_path / "c.html", table)
    assert {line.name for line in lines if line.state == "contradicted"} == {LARGEST}


@pytest.mark.parametrize(
    "within", ["each file", "each controller", *map(name_controllers, (1, 2, 3000))]
)
def test_labels_say_which_parts_of_a_table_were_judged(within: str) -> None:
    model = "l_diversity l=2 attribute=each file: k_anonymity k=5"
    assert split_label(f"{within}: {model}") == (within, model)
    assert split_label(model) == ("", model)
