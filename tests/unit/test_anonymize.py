"""`anonlib.anonymize` for tables in memory."""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

import anonlib
from anonlib.auditing import AuditReport
from anonlib.cli import main
from anonlib.errors import ConfigError, InfeasibleError, InputError
from anonlib.in_hand.released_table import Release
from anonlib.table.columns import key_values
from tests.support import data_dir
from tests.texts import ROOT, fenced


def people(n: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "name": [f"Person {i:04d}" for i in range(n)],
            "age": random.integers(18, 90, n),
            "wage": random.normal(3000, 500, n).round(2),
            "city": random.choice(["Aberdeen", "Bonn", "Cork"], n),
            "born": pd.Timestamp("1970-01-01") + pd.to_timedelta(random.integers(0, 9999, n), "D"),
            "illness": random.choice(["flu", "cold", "none"], n),
            "row": np.arange(n),
        }
    )


GIVEN: dict[str, Any] = {
    "quasi_identifiers": ["age", "wage", "city"],
    "sensitive": ["illness"],
    "identifiers": ["name"],
    "one_row_per_person": "row",
    "k": 5,
    "l": 2,
    "seed": 3,
}


def released(data: Any, **changes: Any) -> Release:
    return anonlib.anonymize(data, **{**GIVEN, **changes})


def test_a_dict_needs_neither_source_nor_release() -> None:
    """For a table in memory, by all verbs that take one."""
    quasi = {name: {"role": "quasi_identifier", "scale": "continuous"} for name in ("age", "wage")}
    config = {
        "attributes": quasi,
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
    }
    data = people()[["age", "wage"]]
    found = anonlib.anonymize(data, config)
    assert anonlib.audit(found.table, config).passed
    assert anonlib.evaluate(config, released=found.table, source=data).audit.passed
    with pytest.raises(ConfigError, match=r"^release\.path: "):
        anonlib.anonymize(data, {**config, "release": {"mode": "error"}})


@pytest.mark.parametrize(
    ("recode", "loss"),
    [
        ({"continuous": "interval", "nominal": "set"}, "ncp"),
        ({"continuous": "interval", "nominal": "mode"}, "sse"),
        ({}, "sse"),
    ],
)
def test_refine_lowers_what_is_released(recode: dict[str, str], loss: str) -> None:
    """By itself where all released values stand for several; else the squares."""

    def run(loss: str) -> Any:
        kernel = {"type": "refine", "start": "mondrian", "loss": loss}
        return released(people(120), kernel=kernel, recode=recode)

    found = {name: run(name).losses for name in ("auto", "sse", "ncp")}
    assert found["auto"] == found[loss]
    assert found["ncp"] != found["sse"]


def test_a_kernels_note(tmp_path: Path) -> None:
    """In the release and its record: how the levels were searched for."""
    (tmp_path / "city.csv").write_text("Aberdeen;*\nBonn;*\nCork;*\n")
    attributes: dict[str, Any] = {
        name: {"role": "drop"} for name in ("name", "age", "wage", "born", "illness", "row")
    }
    city = str(tmp_path / "city.csv")
    attributes["city"] = {"role": "quasi_identifier", "scale": "nominal", "hierarchy": city}
    config: dict[str, Any] = {
        "source": {"format": "csv", "path": "people.csv"},
        "release": {"path": "out"},
        "attributes": attributes,
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
        "partition": {"steps": [{"type": "tuples"}]},
        "kernel": {"type": "full_domain"},
        "recode": {"nominal": "lca"},
    }
    for kernel, n_told in (("full_domain", 1), ("peel", 0)):
        found = anonlib.anonymize(people(), {**config, "kernel": {"type": kernel}})
        note = "full_domain: an exact search: these levels lose least of all 2 choices"
        assert found.notes.count(note) == n_told
        assert found.record["notes"] == [*found.notes]


def test_three_lines() -> None:
    found = released(people())
    table = found.table
    assert isinstance(table, pd.DataFrame)
    assert [*table.columns] == ["age", "wage", "city", "illness"]
    assert len(table) == 400
    classes = table.groupby(["age", "wage", "city"])
    assert classes.size().min() >= 5
    assert classes["illness"].nunique().min() >= 2
    assert isinstance(found.audit, AuditReport)
    assert found.audit.passed
    assert found.audit.n_classes == len(classes)
    chance = 1 / classes["age"].transform("size")
    assert found.risk == pytest.approx(
        {
            "prosecutor_max": chance.max(),
            "marketer": chance.mean(),
            "prosecutor_at_risk": (chance > 0.09).mean(),
        }
    )
    assert 0 < (found.losses["sse"] or 0) < 1


@pytest.mark.parametrize("text", ["README.md", "docs/guide/tables.md", "docs/guide/choosing.md"])
def test_the_snippets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "data").symlink_to(data_dir())
    monkeypatch.chdir(tmp_path)
    page = (ROOT / text).read_text("utf-8")
    names: dict[str, Any] = {}
    for block in fenced(page):
        if block.language == "python":
            exec(block.text, names)
    assert len(names["release"].table) == len(names["people"]) == 32_561
    assert "holds" in str(names["release"])


def test_the_order_of_rows_tells_nothing() -> None:
    """Neither the source's nor the kernel's: each call has a new one, with the same rows."""
    one, two = released(people()).table, released(people()).table
    assert not one.equals(two)
    names = [*one.columns]
    same = [t.sort_values(names).reset_index(drop=True) for t in (one, two)]
    assert same[0].equals(same[1])


def test_what_was_guessed_is_said() -> None:
    data = people()
    data["size"] = pd.Categorical(["S", "M", "L", "M"] * 100, ["S", "M", "L"], ordered=True)
    found = released(data, quasi_identifiers=["age", "city", "born", "size"])
    attributes = found.config.attributes
    scales = {n: str(a.scale) for n, a in attributes.items() if a.scale is not None}
    assert scales == {
        "age": "continuous",
        "city": "nominal",
        "born": "continuous",
        "size": "ordinal",
    }
    assert attributes["size"].order == ("S", "M", "L")
    notes = "\n".join(found.notes)
    assert "taken as continuous: age, born; `scales` can say otherwise" in notes
    assert "not in the release, since no argument names them: wage" in notes
    said = released(people(), scales={"age": "ordinal"})
    assert said.config.attributes["age"].scale == "ordinal"


def test_what_init_would_ask_is_noted() -> None:
    data = people().assign(
        year=[str(1950 + i % 40) for i in range(400)],
        day=[f"2024-01-{i % 28 + 1:02}" for i in range(400)],
        weight=[50 + i / 10 for i in range(400)],
        pay=[-999 if i % 50 == 0 else 5000 + i % 20 for i in range(400)],
        town=["NA" if i % 40 == 0 else f"t{i % 5}" for i in range(400)],
        way=[f"{i % 70} Main Street" for i in range(400)],
        compact=[20240101 + i % 28 for i in range(400)],
        text=[f"202401{1 + i % 28:02}" for i in range(400)],
        contract=[1_700_000_000 + i % 90 for i in range(400)],
        cost=[f"{i % 9},50 \u20ac" for i in range(400)],
    )
    names = ["age", "year", "day", "weight", "pay", "town", "way"]
    names += ["compact", "text", "contract", "cost"]
    found = released(data, quasi_identifiers=names)
    notes = "\n".join(found.notes)
    assert "column year: these texts look like numbers; convert them" in notes
    assert "column day: these texts look like dates; convert them" in notes
    assert "column weight: nearly unique per row, so it costs much" in notes
    assert "column compact: these numbers look like days written as yyyyMMdd; if they are" in notes
    assert "column text: these texts look like dates written as yyyyMMdd; convert them" in notes
    assert 'pd.to_datetime(..., format="%Y%m%d")' in notes
    assert "column contract: these numbers look like codes of 10 digits; if they are that" in notes
    assert "column cost: these texts look like numbers with a unit or a currency; if" in notes
    assert "column pay: if `-999` means missing, make it null" in notes
    assert "column town: if `NA` means missing, make it null" in notes
    assert "column way" not in notes  # so few streets may be those of offices
    assert "column age" not in notes
    assert found.config.attributes["year"].scale == "nominal"  # as it is, it is text


@pytest.mark.parametrize("recoder", ["mode", "set"])
@pytest.mark.parametrize("whole", [False, True])
def test_direct_identifiers_are_no_quasi_identifiers(recoder: str, whole: bool) -> None:
    """Their values would be in the release, also by a policy that does not know the name."""
    data = people().assign(contact=[f"p{i}@example.com" for i in range(400)])
    roles = {"quasi_identifiers": ["age", "contact"], "sensitive": ["illness"], "k": 12}
    recode = {"columns": {"contact": recoder}}
    given: Any = {**roles, "recode": recode, "one_row_per_person": True}
    accept = {"acknowledge_unique": ["contact"]}
    if whole:
        found = anonlib.anonymize(data, **given, privacy=accept).config
        privacy = found.privacy.model_copy(update={"acknowledge_unique": False})
        config = found.model_copy(update={"privacy": privacy})
        with pytest.raises(InfeasibleError, match=r"^column contact: shows who a person is: it "):
            anonlib.anonymize(data, config)
        return
    with pytest.raises(
        InfeasibleError, match=r"seems to have e-mail addresses, and the rel.*leave it"
    ):
        anonlib.anonymize(data, **given)
    hidden = {"columns": {"contact": "suppress"}}
    assert anonlib.anonymize(data, **{**given, "recode": hidden}).table["contact"].eq("*").all()
    (verdict,) = [
        verdict
        for verdict in anonlib.anonymize(
            data, **given, l=2, privacy=accept, policy="ema-0070"
        ).record["policy"]
        if verdict["rule"] == "direct-identifiers"
    ]
    assert verdict["state"] == "to confirm"
    assert verdict["reason"].endswith("contact (e-mail addresses)")


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("sensitive", "e-mail addresses"),
        ("target", "social security numbers"),
        ("insensitive", "phone numbers"),
    ],
)
def test_direct_identifiers_are_refused_in_all_roles(role: str, text: str) -> None:
    """They are so few that they are no key. Who lists them gets them."""
    make = {
        "e-mail addresses": "desk{}@clinic.example",
        "social security numbers": "123-45-678{}",
        "phone numbers": "+49 89 12345{}",
    }[text]
    data = people().assign(contact=[make.format(i % 4) for i in range(400)])
    given = {role: "contact" if role == "target" else ["contact"]}
    with pytest.raises(InfeasibleError, match=f"^column contact: .* seems to have {text}") as error:
        released(data, **given)
    assert "clinic" not in str(error.value)
    accept = {"acknowledge_unique": ["contact"]}
    found = released(data, **given, privacy=accept)
    assert set(found.table["contact"]) == set(data["contact"])
    assert not [note for note in found.notes if "column contact" in note]


def test_what_looks_like_an_identifier_is_noted_in_all_roles() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    doctors = [f"{a}nna {b}mann" for a in letters for b in letters]
    data = people(2000).assign(
        doctor=[doctors[i % 676] for i in range(2000)],
        address=["north", "south"] * 1000,
        plain=["a", "a", "b", "b"] * 500,
        nurse=[", ".join(doctors[i % 30].split()[::-1]) for i in range(2000)],
        few=[", ".join(doctors[i % 19].split()[::-1]) for i in range(2000)],
        wares=[doctors[i % 30] for i in range(2000)],
    )
    given = {"sensitive": ["doctor", "plain", "nurse", "few", "wares"], "target": "address"}
    notes = "\n".join(released(data, **given).notes)
    assert "column nurse: may have names of persons, the surname first; it is published" in notes
    assert "column few" not in notes
    assert "column wares" not in notes
    assert "column doctor: looks like names of persons; it is published as it is: if it" in notes
    named = "named like an identifier, but 2 values in 2,000 rows"
    assert f"column address: {named}; it is published as it is: if it" in notes
    assert "column plain" not in notes


@pytest.mark.parametrize("role", ["sensitive", "target"])
def test_texts_for_missing_values_are_no_values(role: str) -> None:
    """As in a draft of `anonlib init`. Nobody is hidden among people of whom nothing is known."""
    data = people().assign(finding=["flu", "NA", "-", "flu"] * 100)
    given = {"sensitive": None, role: "finding" if role == "target" else ["finding"]}
    with pytest.raises(InfeasibleError, match=r"^l: .* has 1, without those that privacy\.miss"):
        released(data, **given)
    data.loc[::5, "finding"] = "cold"
    found = released(data, **given)
    assert found.config.privacy.missing_tokens == ("?", "", "-", "NA")
    notes = "\n".join(found.notes)
    assert "column finding: -, NA count as missing, so that no model takes it for" in notes
    own = released(data, **given, privacy={"missing_tokens": ["?"]})
    assert own.config.privacy.missing_tokens == ("?",)
    assert "column finding" not in "\n".join(own.notes)


def test_words_of_other_languages_are_no_values() -> None:
    """One diagnosis beside `not known` in several languages and spellings is no second one."""
    words = ["HIV", "k.A.", "keine Angabe", "unbekannt", "inconnu", "brak danych", "n. b.", "nd"]
    data = people().assign(finding=words * 50)
    with pytest.raises(InfeasibleError, match=r"^l: .* has 1, without those that privacy\.miss"):
        released(data, sensitive=["finding"])


def test_lca_without_a_hierarchy_is_noted() -> None:
    """Once for all columns."""
    said = (
        "column city, town: no hierarchy, so recoder lca releases a value that all rows of a class"
    )
    data = people().assign(town=people()["city"])
    given = {"quasi_identifiers": [*GIVEN["quasi_identifiers"], "town"]}
    assert not any("no hierarchy" in note for note in released(data, **given).notes)
    noted = released(data, **given, recode={"nominal": "lca"}).notes
    assert [note[: len(said)] for note in noted if "no hierarchy" in note] == [said]


def test_an_index_is_told() -> None:
    said = "the index is left out: `reset_index()` makes it a column"
    assert said not in released(people()).notes
    indexed = people().set_index("born")
    assert said in released(indexed).notes
    with pytest.raises(
        InputError, match=r"column born: is in the index, .* call `reset_index\(\)`"
    ):
        released(indexed, quasi_identifiers=["age", "born"])


def test_an_audit_in_one_line() -> None:
    audit = released(people()).audit
    assert repr(audit).startswith(f"AuditReport(passed; 400 rows in {audit.n_classes} classes; k_")
    assert "\n" not in repr(audit)


def test_a_person_with_many_rows() -> None:
    data = people()
    data["patient"] = np.arange(400) // 4
    found = released(data, unit=["patient"], one_row_per_person=None)
    classes = found.table.groupby(["age", "wage", "city"])
    assert classes.size().min() >= 5
    assert found.audit.verdicts[0].value is not None
    assert found.audit.verdicts[0].value >= 5
    assert found.risk["prosecutor_max"] == 1 / found.audit.verdicts[0].value
    assert "patient" not in found.table.columns


def test_pseudonyms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those of one call link the rows of a person, and no two calls."""
    table = people()[["name", "age", "wage"]].copy()
    table["name"] = table["name"].str[:-1]
    quasi = {"role": "quasi_identifier", "scale": "continuous"}
    given = {
        "attributes": {
            "age": quasi,
            "wage": quasi,
            "name": {"role": "identifier", "pseudonym": True},
        },
        "unit": ["name"],
        "pseudonyms": {"key_env": "OWN_KEY"},
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}], "acknowledge_linked": True},
        "partition": {"steps": [{"type": "single"}]},
        "kernel": "mdav",
    }
    monkeypatch.delenv("OWN_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"pseudonyms\.key_env: "):
        anonlib.anonymize(table, given)
    monkeypatch.setenv("OWN_KEY", "a key of 16 bytes or more")
    one, other = anonlib.anonymize(table, given), anonlib.anonymize(table, given)
    assert one.table["name"].nunique() == table["name"].nunique() == 40
    assert not {*one.table["name"]} & {*other.table["name"]}
    assert not {*one.table["name"]} & {*table["name"]}
    assert "pseudonym" in one.report()
    one.certificate(tmp_path / "one.html")
    stable = {"key_env": "OWN_KEY", "scope": "stable"}
    anonlib.anonymize(table, given | {"pseudonyms": stable}).certificate(tmp_path / "stable.html")
    said = [(tmp_path / name).read_text() for name in ("one.html", "stable.html")]
    assert ["in all releases under this key" in text for text in said] == [False, True]
    assert anonlib.audit(one.table, one.config).passed


def test_a_missing_number_changes_no_pseudonym() -> None:
    """It makes floats of the column in pandas."""
    numbers = pa.array([7, 10**10, 2**53 - 1, -(10**12)])
    floats = numbers.cast(pa.float64())
    key = b"0123456789abcdef"
    found, expected = (key_values([pa.chunked_array([x])], key) for x in (floats, numbers))
    assert found == expected
    others = pa.chunked_array([pa.array([0.5, -0.0, 1e300, np.nan, None])])
    assert len({*key_values([others], key).to_pylist()}) == 5
    assert key_values([others], key).null_count == 1


def test_a_suggestion_counts_each_suppressed_row_once() -> None:
    """A row loses all, whichever way it was suppressed."""
    given = {**GIVEN, "quasi_identifiers": ["age", "wage"], "recode": {"continuous": "interval"}}
    rarer = {"suppression_limit": 0.3, "suppress": "costliest"}
    rows = people()
    found = anonlib.suggest(rows, **given, privacy=rarer, kernels=["mondrian"])
    tried = next(each for each in found.attempts if each.k == GIVEN["k"])
    table = anonlib.anonymize(rows, tried.config).table
    spans = [
        (table[c].str["upper"] - table[c].str["lower"]) / (rows[c].max() - rows[c].min())
        for c in ("age", "wage")
    ]
    lost = len(rows) - len(table)
    assert 0 < lost == tried.n_suppressed
    loss = (float(sum(spans).sum()) / 2 + lost) / len(rows)
    assert tried.loss == pytest.approx(loss, abs=1e-4)  # costs are rounded


def test_the_costliest_cells_are_suppressed() -> None:
    """Up to the limit, whole cells, and nothing else changes."""
    every = released(people(), kernel="mondrian")
    rarer = {"suppression_limit": 0.1, "suppress": "costliest"}
    found = released(people(), kernel="mondrian", privacy=rarer)
    lost = len(every.table) - len(found.table)
    assert 0 < lost == found.record["n_suppressed"] <= 40
    before, after = (Counter(each.table.itertuples(index=False)) for each in (every, found))
    assert after < before
    assert {*(before - after)}.isdisjoint(after)
    assert found.audit.passed


def test_the_config_makes_the_same_release(tmp_path: Path) -> None:
    one = released(people(), recode={"columns": {"age": "interval"}}, partition={"max_rows": 150})
    raw = yaml.safe_load(one.config_yaml)
    assert anonlib.parse(raw) == one.config
    (tmp_path / "c.yaml").write_text(one.config_yaml)
    for config in (one.config, raw, tmp_path / "c.yaml"):
        two = anonlib.anonymize(people(), config)
        assert sorted(map(repr, two.table.to_dict("records"))) == sorted(
            map(repr, one.table.to_dict("records"))
        )


def test_what_it_writes(tmp_path: Path) -> None:
    found = released(people())
    found.to_parquet(tmp_path / "t.parquet")
    assert pd.read_parquet(tmp_path / "t.parquet").equals(found.table)
    found.to_delta(tmp_path / "delta")
    assert found.report(tmp_path / "page.html") == str(tmp_path / "page.html")
    page = found.report()
    assert "Release in memory" in page
    assert "holds" in page
    assert (tmp_path / "page.html").read_text() == page
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InputError, match=r"there is no folder .*nowhere; make it"):
        found.to_parquet(tmp_path / "nowhere" / "t.parquet")
    found.save_config(tmp_path / "c.yaml")
    assert anonlib.load(tmp_path / "c.yaml") == found.config
    with pytest.raises(InputError, match=r"t\.parquet: the name must end in \.html"):
        found.report(tmp_path / "t.parquet")
    for write in (found.to_parquet, found.to_delta):
        there = tmp_path / ("delta" if write == found.to_delta else "t.parquet")
        with pytest.raises(InputError, match="is there already"):
            write(there)


def test_a_page_replaces_only_a_page(tmp_path: Path) -> None:
    """A notebook's cell runs again and again."""
    found, place = released(people()), tmp_path / "page.html"
    found.report(place)
    place.write_text(found.report().replace("Release in memory", "An older one"))
    found.report(place)
    assert "An older one" not in found.report() == place.read_text()
    assert place.stat().st_mode & 0o777 == 0o600
    for other in ("<html>mine</html>", ""):
        place.write_text(other)
        with pytest.raises(InputError, match=r"page\.html: is there already, and is not a report"):
            found.report(place)
        assert place.read_text() == other
    with pytest.raises(InputError, match=r"nowhere/page\.html: there is no folder"):
        found.report(tmp_path / "nowhere" / "page.html")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]


def test_how_it_shows_itself() -> None:
    found = released(people())
    for text in (repr(found), found._repr_html_()):
        assert "k_anonymity k=5" in text
        assert "400 in" in text
        assert "Aberdeen" not in text
        assert "Person" not in text
    order = {"illness": {"role": "sensitive", "order": ["flu", "cold", "none"]}}
    data = people()[["age", "illness"]]
    given = {
        "attributes": {"age": {"role": "quasi_identifier", "scale": "continuous"}, **order},
        "one_row_per_person": True,
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 4},
                {"type": "t_closeness", "t": 0.5, "distance": "ordered"},
            ]
        },
        "evaluate": {"measures": ["uniqueness"]},
    }
    made = anonlib.anonymize(data, given)
    assert repr(made.config) == str(made.config) == "<Config: 2 columns, mdav, k=4>"
    assert re.fullmatch(r"<Evaluation: \d+ figures of uniqueness>", repr(made.evaluation))
    measured = anonlib.evaluate(made.config, released=made.table, source=data)
    shown = r"<ReleaseResult: evaluated, 400 rows in, 400 out; run in-memory-\w+>"
    assert re.fullmatch(shown, repr(measured))
    first, *lines = str(measured).splitlines()
    assert first == repr(measured)
    assert lines == str(measured.evaluation).splitlines()
    assert re.fullmatch(r"  uniqueness\.release_unique: \S+", lines[2])
    note = "no larger population was given, so this is the source's own share"
    assert note in {figure.note for _, figure in measured.evaluation.figures()}


def test_releases_are_compared_by_identity() -> None:
    """Tables have no plain answer to `==`."""
    one, two = released(people()), released(people())
    assert one != two
    assert len({one, two}) == 2


def test_without_spark() -> None:
    """Nothing of Spark is imported, and nothing heavy on import."""
    code = (
        "import sys; sys.modules['pyspark'] = None; import anonlib, tests.unit.test_anonymize as t;"
        "t.released(t.people(60)); assert 'delta' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
    code = (
        "import sys, anonlib; heavy = {'pandas', 'numba', 'sklearn', 'pyspark', 'pyarrow'};"
        "assert not heavy & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_values_are_no_variables() -> None:
    """Names and categories may look like variables of a config."""
    size = pd.Categorical(["${HOME}", "b"] * 200, ["b", "${HOME}"], ordered=True)
    data = people().rename(columns={"row": "${ROW}"}).assign(size=size)
    found = released(data, quasi_identifiers=["age", "size"], one_row_per_person="${ROW}")
    assert found.config.attributes["size"].order == ("b", "${HOME}")


def test_a_seed_is_drawn() -> None:
    seeds = {released(people(), seed=None).config.seed for _ in range(3)}
    assert len(seeds) == 3
    raw = yaml.safe_load(released(people()).config_yaml)
    del raw["seed"]
    assert any(n.startswith("seed is 0, as all") for n in anonlib.anonymize(people(), raw).notes)


def test_a_target() -> None:
    found = released(people(), sensitive=None, target="illness")
    assert found.table.groupby(["age", "wage", "city"])["illness"].nunique().min() >= 2
    public = released(people(), sensitive=None, target="illness", l=None, target_is_public=True)
    assert [verdict.model for verdict in public.audit.verdicts] == ["k_anonymity k=5"]


def test_a_public_target_needs_no_l() -> None:
    """It has two values, and the sensitive column three."""
    data = people().assign(cured=[True, False] * 200, ward=["a", "b", "c", "c", "b"] * 80)
    changes = {"sensitive": ["ward"], "target": "cured", "l": 3}
    public = released(data, **changes, target_is_public=True)
    models = [verdict.model for verdict in public.audit.verdicts]
    assert models == ["k_anonymity k=5", "l_diversity l=3 attribute=ward"]
    assert "cured" in public.table.columns
    with pytest.raises(InfeasibleError, match=r"^l: .*column cured has 2"):
        released(data, **changes)


def test_what_no_model_protects() -> None:
    found = released(people(), l=None)
    assert any("no model protects illness" in note for note in found.notes)


def test_models_of_all_kinds() -> None:
    models = [{"type": "k_anonymity", "k": 4}, {"type": "t_closeness", "t": 0.5}]
    found = released(people(), k=None, l=None, privacy={"models": models})
    assert [verdict.holds for verdict in found.audit.verdicts] == [True, True]


def test_rows_without_a_person() -> None:
    data = people()
    data["patient"] = pd.array([None if i < 9 else i // 3 for i in range(400)], "Int64")
    found = released(data, unit=["patient"], one_row_per_person=None)
    assert "9 rows have no person: no model counts them" in found.notes


def test_audit_of_a_table_in_hand() -> None:
    found = released(people())
    for data in (found.table, pl.from_pandas(found.table), pa.Table.from_pandas(found.table)):
        report = anonlib.audit(data, found.config)
        assert report.passed
        assert report.sizes == found.audit.sizes
    assert not anonlib.audit(found.table.head(20), found.config).passed
    assert anonlib.audit(found.table.iloc[::-1].reset_index(drop=True), found.config).notes == ()
    with pytest.raises(InputError, match="version: only a Delta table"):
        anonlib.audit(found.table, found.config, version=1)


def test_audit_of_a_parquet_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without Spark, as `verify` takes one: from Python and from the command line."""
    found, file, conf = released(people()), tmp_path / "t.parquet", tmp_path / "c.yaml"
    found.to_parquet(file)
    found.save_config(conf)
    assert anonlib.audit(file, conf).sizes == found.audit.sizes
    assert main(["audit", str(file), "--conf", str(conf)]) == 0
    assert "holds" in capsys.readouterr().out
    with pytest.raises(InputError, match="version: only a Delta table"):
        anonlib.audit(str(file), conf, version=1)
    with pytest.raises(InputError, match=r"c\.yaml: can't be read as Parquet"):
        anonlib.audit(conf, conf)


@pytest.mark.parametrize(
    ("index", "names"),
    [
        (pd.Index([f"RAW{i}" for i in range(400)], name="name"), ["name"]),
        (pd.Index([*range(400, 0, -1)]), ["index"]),
        (pd.RangeIndex(400, name="age"), ["age (index)"]),
        (pd.MultiIndex.from_arrays([[*range(400)]] * 2, names=["a", None]), ["a", "index"]),
    ],
)
def test_an_index_is_audited(index: pd.Index, names: list[str]) -> None:
    """Every writer of pandas writes it, so names of persons in it would be published."""
    found = released(people())
    table = found.table.set_index(index)
    report = anonlib.audit(table, found.config)
    assert not report.passed
    text = "the release should not have this column"
    assert [str(problem) for problem in report.problems] == [f"{name}: {text}" for name in names]
    assert "`reset_index(drop=True)`" in report.notes[0]
    assert "RAW" not in str(report.to_dict())
    # A column of the release in the index is written as that column.
    assert anonlib.audit(found.table.set_index("age"), found.config).passed
    with pytest.raises(InputError, match="column index: its values are not of one type"):
        anonlib.audit(found.table.set_index(pd.Index([1, "RAW"] * 200)), found.config)


def test_one_class_in_words() -> None:
    rows = pd.DataFrame({"age": [40.0] * 6, "illness": ["flu", "cold"] * 3})
    release = anonlib.anonymize(
        rows,
        quasi_identifiers=["age"],
        scales={"age": "continuous"},
        sensitive=["illness"],
        k=3,
        one_row_per_person=True,
    )
    assert "6 in 1 class, 0 suppressed" in repr(release)


def test_a_release_of_many_columns_is_short() -> None:
    made = released(people())
    many = replace(
        made, audit=replace(made.audit, verdicts=made.audit.verdicts * 150), notes=("a",) * 300
    )
    text = repr(many)
    assert len(text.splitlines()) < 40
    n = len(many.audit.verdicts) - 12
    assert f"models: {n:,} more: .audit.verdicts" in text
    assert "note: 288 more: .notes" in text
