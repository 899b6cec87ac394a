"""`anonlib.evaluate` of tables in hand: a release that was made earlier."""

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anonlib
from anonlib import registry
from anonlib.config.model import EvaluateSection
from anonlib.errors import ConfigError, InputError
from anonlib.in_hand.released_table import Release
from anonlib.measure.risk.reidentification import Reidentification
from anonlib.run.result import ReleaseResult
from tests.unit.test_evaluate_in_memory import GIVEN, people, released

#: Measures that need no link from a row to its origin, and what stands in their place.
MEASURES = ("marginals", "reidentification", "disclosure", "uniqueness", "moments")


def again(release: Release, table: Any = None, source: Any = None, **changes: Any) -> ReleaseResult:
    config = release.config.model_copy(update=changes)
    table = release.table if table is None else table
    return anonlib.evaluate(config, released=table, source=people() if source is None else source)


def values(evaluation: Any) -> dict[tuple[str, str, str], float | None]:
    return {(m, f.name, f.of): f.value for m, f in evaluation.figures()}


@pytest.mark.parametrize("library", ["pyarrow", "pandas", "polars"])
def test_figures_are_those_of_the_release(library: str) -> None:
    """Whatever the library, and the order of the rows."""
    turn = {"pyarrow": lambda t: t, "pandas": lambda t: t.to_pandas(), "polars": pl.from_arrow}
    release = released(*MEASURES, recode={"columns": {"age": "interval", "city": "set"}})
    table = release.table.take(pa.array(range(release.table.num_rows)[::-1]))
    found = again(release, turn[library](table), turn[library](people()))
    assert values(found.evaluation) == values(release.evaluation)
    assert found.audit is not None
    assert found.audit.passed
    assert found.audit.sizes == release.audit.sizes
    assert (found.n_rows_in, found.n_rows_out, found.outcome) == (600, 600, "evaluated")


def test_an_index_is_audited() -> None:
    release = released(*MEASURES)
    names = pd.Index([f"RAW{i}" for i in range(600)], name="name")
    found = again(release, release.table.to_pandas().set_index(names))
    assert found.audit is not None
    assert [problem.where for problem in found.audit.problems] == ["name"]
    (note,) = found.audit.notes
    assert note.startswith("the index counts as columns")
    assert anonlib.audit(release.table.to_pandas().set_index(names), release.config).notes == (
        note,
    )


def test_gates_are_judged_and_stop_nothing() -> None:
    release = released("disclosure", gates=[{"figure": "disclosure.gain", "at_most": 0.9}])
    (gate,) = release.config.gates
    found = again(release, gates=(gate, gate.model_copy(update={"at_most": 0.001})))
    assert found.evaluation is not None
    assert [judged.passed for judged in found.evaluation.gates] == [True, False]


PERSONS = {"one_row_per_person": None, "unit": ["person"], "identifiers": ["person"]}


def test_rows_that_stand_for_persons_pass_no_gate() -> None:
    """A published table of a unit does not tell whose its rows are. A class of k persons may have
    many more rows, so the chances that rows give are too small."""
    gates = [
        {"figure": "reidentification.prosecutor_max", "at_most": 0.5},
        {"figure": "uniqueness.release_unique", "at_most": 0.5},
        {"figure": "disclosure.gain", "at_most": 1},
    ]
    release = released("reidentification", "uniqueness", "disclosure", gates=gates, **PERSONS)
    assert release.evaluation is not None
    assert [judged.passed for judged in release.evaluation.gates] == [True, True, True]
    assert not any(figure.by_rows for _, figure in release.evaluation.figures())
    found = again(release).evaluation
    assert found is not None
    assert [judged.passed for judged in found.gates] == [False, False, True]
    assert "unknown for persons, rows are counted" in found.gates[0].text
    counted = [f.name for _, f in found.figures() if "rows are counted" in f.note]
    assert counted == [*Reidentification.names, "release_unique"]
    assert counted == [f.name for _, f in found.figures() if f.by_rows]


def test_persons_with_a_pseudonym_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the published pseudonym, so the figures are those of the release."""
    gates = [{"figure": "reidentification.prosecutor_max", "at_most": 0.5}]
    attributes = {
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "city": {"role": "quasi_identifier", "scale": "nominal"},
        "illness": {"role": "sensitive"},
        "person": {"role": "identifier", "pseudonym": True},
    }
    given = {
        "attributes": attributes,
        "unit": ["person"],
        "privacy": {"models": [{"type": "k_anonymity", "k": 5}], "acknowledge_linked": True},
        "pseudonyms": {"key_env": "OWN_KEY"},
        "evaluate": {"measures": ["reidentification"]},
        "gates": gates,
    }
    monkeypatch.setenv("OWN_KEY", "0123456789abcdef" * 4)
    release = anonlib.anonymize(people(), given)
    found = again(release)
    assert values(found.evaluation) == values(release.evaluation)
    assert found.evaluation is not None
    assert [judged.passed for judged in found.evaluation.gates] == [True]


def test_the_usual_measures_without_any() -> None:
    found = again(anonlib.anonymize(people(), **GIVEN))
    assert found.evaluation is not None
    assert len(found.evaluation.findings) > 3
    assert found.evaluation.findings["reidentification"].figures[0].value == pytest.approx(0.2)


def test_every_measure_has_its_figures(tmp_path: Path) -> None:
    """Or says why it has none. A measure that follows rows to their origin has none."""
    release = anonlib.anonymize(people(), **GIVEN)
    other = {"format": "parquet", "path": str(tmp_path / "other.parquet")}
    pq.write_table(release.table, other["path"])
    types = sorted(set(registry.plugins("measure")) - {"population", "overview"})
    parameters = {"fairness": {"columns": ["city"]}, "differencing": {"source": other}}
    measures = tuple(
        registry.build("measure", {"type": type, **parameters.get(type, {})}) for type in types
    )
    section = EvaluateSection.model_construct(measures=measures, metrics=None)
    found = again(release, evaluate=section)
    assert found.evaluation is not None
    assert [*found.evaluation.findings] == types
    for _, figure in found.evaluation.figures():
        assert figure.value is not None or figure.note
    known = {m for m, f in found.evaluation.figures() if f.value is not None}
    assert known >= {"disclosure", "membership", "reidentification", "singling_out"}


def test_what_fails_its_audit_is_measured_and_said() -> None:
    release = released("uniqueness")
    table = release.table.slice(0, 7)  # of seven rows some are alone
    found = again(release, table)
    assert found.audit is not None
    assert not found.audit.passed
    assert found.n_suppressed == 593


def test_measures_of_links_have_no_figures() -> None:
    release = released("linkage")
    assert release.evaluation is not None
    assert all(figure.value is not None for _, figure in release.evaluation.figures())
    found = again(release)
    assert found.evaluation is not None
    assert {figure.value for _, figure in found.evaluation.figures()} == {None}


@pytest.mark.parametrize(
    ("table", "source", "text"),
    [
        (people().drop_columns(["city"]), people(), "released: has no column city"),
        (
            people(),
            people(100),
            "released: has 600 rows, more than the 100 of its source; give the",
        ),
        (people(), None, "source: give `released` and `source`"),
        (None, people(), "released: give `released` and `source`"),
        (
            people().set_column(0, "age", pa.array(["secret"] * 600)),
            people(),
            "released: column age has the type string, and a release of this config int64",
        ),
    ],
)
def test_what_is_no_release_of_the_config(table: Any, source: Any, text: str) -> None:
    config = anonlib.anonymize(people(), **GIVEN).config
    with pytest.raises(InputError, match=text) as caught:
        anonlib.evaluate(config, released=table, source=source)
    assert "secret" not in str(caught.value)


def test_what_can_not_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    config = anonlib.anonymize(people(), **GIVEN).config
    both = {"released": people(), "source": people()}
    with pytest.raises(InputError, match="trial: makes a release"):
        anonlib.evaluate(config, trial=True, **both)
    with pytest.raises(ConfigError, match="city: the source has no such column"):
        anonlib.evaluate(config, released=people(), source=pd.DataFrame({"age": [1]}))
    monkeypatch.setenv("ANONLIB_RUNS", "runs")
    with pytest.raises(ConfigError, match="ANONLIB_RUNS"):
        anonlib.evaluate(config, **both)
