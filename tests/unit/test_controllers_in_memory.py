"""Data controllers of tables in memory: what is released, audited and refused. That the rows are
those of a release in Spark is tested in `tests/spark/test_in_memory_as_spark.py`."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anonlib
from anonlib.errors import AuditError, ConfigError, InfeasibleError
from anonlib.in_hand.released_table import Release
from anonlib.kernels.mdav import Mdav

QUASI = {"role": "quasi_identifier"}


def people(n: int = 600) -> pd.DataFrame:
    """Patients of three hospitals, three of a small one, and six of none."""
    random = np.random.default_rng(2)
    hospital = random.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2]).astype(object)
    hospital[:3], hospital[3:9] = "tiny", None
    return pd.DataFrame(
        {
            "person": np.arange(n),
            "hospital": hospital,
            "age": random.integers(18, 90, n),
            "city": random.choice(["Aberdeen", "Bonn", "Cork"], n),
            "illness": random.choice(["flu", "cold", "cough"], n),
        }
    )


def config(limit: float = 0.01, *, released: bool = False, **step: Any) -> dict[str, Any]:
    column = {**QUASI, "scale": "nominal"} if released else {"role": "drop"}
    return {
        "attributes": {
            "person": {"role": "identifier"},
            "hospital": column,
            "age": {**QUASI, "scale": "continuous"},
            "city": {**QUASI, "scale": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": "person",
        "privacy": {
            "models": [{"type": "k_anonymity", "k": 5}, {"type": "l_diversity", "l": 2}],
            "suppression_limit": limit,
        },
        "partition": {"steps": [{"type": "controller", "column": "hospital", **step}]},
        "seed": 4,
    }


def labels(release: Release) -> list[str]:
    return [verdict.model for verdict in release.audit.verdicts]


@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_all_kinds_of_tables(make: Any) -> None:
    """Those that can't hold the models are left out, and nothing tells whose a row is."""
    release = anonlib.anonymize(make(people()), config())
    names = getattr(release.table, "column_names", None) or [*release.table.columns]
    assert names == ["age", "city", "illness"]
    assert len(release.table) == 597
    assert release.record["n_suppressed"] == 3
    assert release.record["plan"]["controllers"] == {"n": 5, "n_suppressed": 1, "n_merged": 0}
    assert "5, 0 merged, 1 suppressed" in release.report()
    assert labels(release)[2:] == [f"each controller: {label}" for label in labels(release)[:2]]
    plain = config(merge=True)
    assert len(anonlib.anonymize(make(people()), plain).table) == 600


def test_classes_are_of_one_controller_with_its_own_models() -> None:
    models = {"south": [{"type": "k_anonymity", "k": 30}]}
    chosen = config(released=True, models=models)
    release = anonlib.anonymize(people(), chosen)
    sizes = release.table.groupby(["hospital", "age", "city"], dropna=False).size()
    smallest = sizes.groupby("hospital", dropna=False).min()
    assert smallest["south"] >= 30
    assert smallest.min() >= 5
    assert smallest["north"] < 30
    assert labels(release)[-3:] == [
        "1 controller with its own models: k_anonymity k=5",
        "1 controller with its own models: l_diversity l=2 attribute=illness",
        "1 controller with its own models: k_anonymity k=30",
    ]
    again = anonlib.audit(release.table, chosen)
    assert again.passed
    assert "each data controller" in again.notes[0]
    found = anonlib.evaluate(chosen, released=release.table, source=people()).audit
    assert "each data controller" in found.notes[0]


def test_rows_that_are_left_out_have_lost_all() -> None:
    data = people(60)[
        lambda frame: frame["hospital"].notna()
    ]  # 54 rows, 3 of them of the small one
    found = anonlib.anonymize(data, config(0.06)).losses["ncp"]
    without = anonlib.anonymize(data[3:], config()).losses["ncp"]
    assert found is not None
    assert without is not None
    assert found == pytest.approx((51 * without + 3) / 54, rel=0.01)
    assert found > 1.03 * without


def test_the_costliest_cells_are_left_out_besides() -> None:
    chosen = config(0.05)
    chosen["privacy"]["suppress"] = "costliest"
    lost = anonlib.anonymize(people(), chosen).record["n_suppressed"]
    assert 3 < lost <= 30


def test_names_are_compared_as_the_persons_of_the_unit_are() -> None:
    """A column of the unit has identities: without blanks around them, and in one case."""
    data = people()
    data["hospital"] = data["hospital"].replace({"south": " South", "north": "North"})
    chosen = config(0.05, models={}) | {"unit": ["hospital", "person"]}
    del chosen["one_row_per_person"]
    for folded in (True, False):
        chosen["person"] = {"fold_case": folded}
        for name in ("South", " South "):
            models = {name: [{"type": "k_anonymity", "k": 21}], "North": []}
            chosen["partition"]["steps"][0]["models"] = models
            found = anonlib.anonymize(data, chosen)
            assert "1 controller with its own models: k_anonymity k=21" in labels(found)
        chosen["partition"]["steps"][0]["models"] = {
            "south": [{"type": "k_anonymity", "k": 21}],
            "SOUTH": [{"type": "l_diversity", "l": 3}],
        }
        if folded:  # both of them hold for it
            found = anonlib.anonymize(data, chosen)
            own = [each for each in labels(found) if each.startswith("1 controller with its own")]
            assert [each.partition(": ")[2].split()[0] for each in own][-2:] == [
                "k_anonymity",
                "l_diversity",
            ]
        else:
            with pytest.raises(ConfigError, match="2 of the 2 controllers named are not in"):
                anonlib.anonymize(data, chosen)


class TestRefusals:
    def test_more_rows_than_may_be_left_out(self) -> None:
        with pytest.raises(InfeasibleError, match="1 of 5 controllers, with 3 of 600 rows"):
            anonlib.anonymize(people(), config(0.0))

    def test_models_that_none_can_hold(self) -> None:
        models = {"tiny": [{"type": "k_anonymity", "k": 5000}]}
        with pytest.raises(InfeasibleError, match="all controllers together don't"):
            anonlib.anonymize(people(), config(merge=True, models=models))

    def test_controllers_that_are_not_there(self) -> None:
        with pytest.raises(
            ConfigError, match="1 of the 1 controllers named are not in column hospital"
        ):
            anonlib.anonymize(people(), config(models={"west": [{"type": "k_anonymity", "k": 5}]}))

    def test_too_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for place in ("anonlib.local.memory_controllers", "anonlib.decisions.refusals"):
            monkeypatch.setattr(f"{place}.MAX_CONTROLLERS", 4)
        with pytest.raises(ConfigError, match="column hospital: has more than 4 values"):
            anonlib.anonymize(people(), config())

    def test_names_whose_text_is_not_certain(self) -> None:
        """Spark may write a decimal in another way; without `models` no text is needed."""
        data = people().drop(columns="hospital")
        data["hospital"] = [Decimal(i % 3) for i in range(600)]
        own = {"1": [{"type": "k_anonymity", "k": 5}]}
        with pytest.raises(ConfigError, match=r"is of type decimal.* release in Spark"):
            anonlib.anonymize(data, config(models=own))
        assert len(anonlib.anonymize(data, config()).table) == 600

    @pytest.mark.parametrize("step", [{}, {"models": {"south": [{"type": "k_anonymity", "k": 9}]}}])
    def test_a_cell_of_too_few_of_a_controller(
        self, monkeypatch: pytest.MonkeyPatch, step: dict[str, Any]
    ) -> None:
        """Each class is large enough, but not its rows of one controller."""
        data = people()
        data.loc[9:, "hospital"] = np.where(data.index[9:] < 12, "north", "south")
        data[["age", "city"]] = [40, "Bonn"]
        monkeypatch.setattr("anonlib.partition.settlement.Controllers.demands", _demand_nothing)
        monkeypatch.setattr(Mdav, "cells", lambda self, block: np.zeros(block.n, np.int64))
        with pytest.raises(AuditError, match="each controller: k_anonymity k=5: 2 classes fail"):
            anonlib.anonymize(data, config(**step))


def _demand_nothing(controllers: Any, controller: Any) -> Any:
    from anonlib.partition.repair import Demands

    return Demands(((),), np.ones((len(controller), 1), np.bool_))


PATIENTS = {
    "person": {"role": "identifier"},
    "hospital": {"role": "drop"},
    "age": {**QUASI, "scale": "continuous"},
    "illness": {"role": "sensitive"},
}


@pytest.mark.parametrize("persons", [{"unit": ["person"]}, {"one_row_per_person": "person"}])
def test_merged_controllers_that_can_not_hold_their_models(persons: dict[str, Any]) -> None:
    """Four persons are too few for a k of 6, also where persons might be at both hospitals."""
    table = pd.DataFrame(
        {
            "age": [21.0, 22, 23, 24],
            "person": [*"abcd"],
            "hospital": [*"NNSN"],
            "illness": ["flu", "cold"] * 2,
        }
    )
    six = [{"type": "k_anonymity", "k": 6}]
    step = {"type": "controller", "column": "hospital", "merge": True, "models": {"S": six}}
    chosen = {
        "attributes": PATIENTS,
        **persons,
        "privacy": {"models": [{"type": "k_anonymity", "k": 2}]},
        "partition": {"steps": [step, {"type": "single"}]},
    }
    with pytest.raises(InfeasibleError, match="all controllers together don't hold"):
        anonlib.anonymize(table, chosen)


def test_the_risk_is_of_classes_of_the_table() -> None:
    """Whoever reads the release sees no hospital: a class of both has eight persons."""
    n = 8
    table = pd.DataFrame(
        {
            "age": [30.0] * n,
            "person": [f"p{i}" for i in range(n)],
            "hospital": ["N"] * 3 + ["S"] * 5,
            "illness": ["flu", "cold"] * 4,
        }
    )
    chosen = {
        "attributes": PATIENTS,
        "unit": ["person"],
        "privacy": {"models": [{"type": "k_anonymity", "k": 3}]},
        "partition": {"steps": [{"type": "controller", "column": "hospital"}, {"type": "single"}]},
    }
    found = anonlib.anonymize(table, chosen)
    assert (found.audit.n_classes, found.audit.smallest_class) == (1, 3)
    assert found.audit.of_whole.smallest_class == 8
    assert {**found.risk} == {
        "prosecutor_max": 1 / 8,
        "marketer": 1 / 8,
        "prosecutor_at_risk": 1.0,
    }
