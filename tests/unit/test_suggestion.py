"""`anonlib.suggest`: what it tries, what it chooses, and its page."""

import io
import re
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

import anonlib
from anonlib.cli.show.suggestions import print_suggestion
from anonlib.errors import ConfigError, InfeasibleError, InputError
from anonlib.in_hand import suggestion
from anonlib.in_hand.suggestion import Attempt, Choice, Suggestion
from anonlib.local.rows import Rows, sample_rows
from anonlib.table.schema import Schema
from tests.unit.test_anonymize import GIVEN, people
from tests.unit.test_explorer import data_of


def suggested(data: Any = None, **changes: Any) -> Suggestion:
    frame = people(600) if data is None else data
    return anonlib.suggest(frame, **{**GIVEN, "ks": [3, 10, 20], "seconds": 600, **changes})


def tried_rows(found: Suggestion) -> int:
    return int(found.notes[0].split()[-2].replace(",", ""))


def test_what_is_tried() -> None:
    found = suggested(kernels=["mondrian"])
    tried = [(each.k, each.kernel) for each in found.attempts]
    # The call's own k and kernel are first.
    assert tried[:2] == [(5, "mdav"), (5, "mondrian")]
    assert set(tried) == {(k, kernel) for k in (3, 5, 10, 20) for kernel in ("mdav", "mondrian")}
    assert not any(each.error for each in found.attempts)
    assert found.notes[0] == "8 of 8 attempts, on 600 rows"
    assert any(note.startswith("taken as continuous") for note in found.notes)
    by_k = {each.k: each for each in found.attempts if each.kernel == "mdav"}
    losses = [by_k[k].loss or 0.0 for k in (3, 5, 10, 20)]
    assert losses == sorted(losses)
    assert [by_k[k].risk > by_k[2 * k].risk for k in (5, 10)] == [True, True]


def test_an_attempt_is_what_its_config_makes() -> None:
    found = suggested(kernels=["mondrian"], ks=[])
    for each in found.attempts:
        release = anonlib.anonymize(people(600), each.config)
        assert each.loss == release.losses["ncp"]
        assert each.chance == release.risk["marketer"]


def attempt_of(found: Suggestion, choice: Choice) -> Attempt:
    return next(each for each in found.attempts if each.config is choice.config)


def test_choices() -> None:
    found = suggested()
    own = [each for each in found.attempts if each.k == 5]
    assert [choice.name for choice in found.choices][:2] == ["least loss", "safer"]
    best, safer, third = (attempt_of(found, choice) for choice in found.choices)
    assert best.loss == min(each.loss or 1.0 for each in own)
    # The next larger k, and none that another attempt is better than.
    assert safer.k == 10
    assert any(safer is each for each in found.frontier)
    assert third.k == 5
    assert len({id(each) for each in (best, safer, third)}) == 3
    if found.choices[2].name == "quicker":
        assert third.seconds == min(each.seconds for each in own)
    for choice in found.choices[1:]:
        assert choice.reason.count("compared with the first: ") == 1
    table = anonlib.anonymize(people(600), found.choices[0].config).table
    assert table.groupby(["age", "wage", "city"]).size().min() >= 5
    assert anonlib.parse(yaml.safe_load(found.choices[0].config_yaml)) == found.choices[0].config


def choose(monkeypatch: pytest.MonkeyPatch, *made: tuple[str, int, float, float, float]) -> Any:
    """The suggestion where attempts have these figures: kernel, k, loss, chance, seconds."""
    figures = {(kernel, k): rest for kernel, k, *rest in made}

    def attempt(rows: Rows, each: Attempt) -> Attempt:
        if (each.kernel, each.k) not in figures:
            return replace(each, error="it failed")
        loss, chance, seconds = figures[each.kernel, each.k]
        return replace(each, loss=loss, chance=chance, seconds=seconds)

    monkeypatch.setattr(suggestion, "_attempt", attempt)
    return suggested(kernels=["mondrian", "refine"])


def test_three_choices_and_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(
        monkeypatch,
        ("refine", 5, 0.1, 0.2, 4.0),
        ("mdav", 5, 0.103, 0.25, 2.0),
        ("mondrian", 5, 0.4, 0.2, 0.5),
        ("refine", 10, 0.12, 0.1, 4.0),
        ("mondrian", 10, 0.13, 0.1, 0.4),
        ("refine", 20, 0.2, 0.05, 4.0),
    )
    assert [(c.name, c.reason.partition("; ")[2]) for c in found.choices] == [
        ("least loss", ""),
        (
            "safer",
            "compared with the first: as quick, loses 20 % more, risk 2 times smaller.",
        ),
        (
            "quicker",
            "compared with the first: 8 times quicker, loses 4 times as much, risk the same.",
        ),
    ]
    assert [(c.config.kernel.type, c.config.k) for c in found.choices] == [
        ("refine", 5),
        ("refine", 10),
        ("mondrian", 5),
    ]


def test_what_differs_is_not_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(
        monkeypatch,
        ("mdav", 5, 0.1, 0.0762, 1.0),
        ("refine", 5, 0.2, 0.0785, 1.01),
        ("mondrian", 5, 0.3, 0.0762, 1.0),
    )
    told = [choice.reason.partition("first: ")[2] for choice in found.choices[1:]]
    assert told == [
        "about as quick, loses 2 times as much, risk about the same.",
        "as quick, loses 3 times as much, risk the same.",
    ]


def test_times_too_short_to_tell_of(monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(monkeypatch, ("mdav", 5, 0.1, 0.2, 0.4), ("mondrian", 5, 0.2, 0.2, 0.1))
    assert [choice.name for choice in found.choices] == ["least loss", "another"]
    assert "first: as quick (below 0.5 s), loses 2 times as much" in found.choices[1].reason


def test_others_where_nothing_is_safer_or_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(
        monkeypatch,
        ("mdav", 5, 0.1, 0.2, 1.0),
        ("mondrian", 5, 0.11, 0.2, 1.05),
        ("mdav", 3, 0.05, 0.3, 1.0),
    )
    assert [choice.name for choice in found.choices] == ["least loss", "another", "one more"]
    assert [choice.config.k for choice in found.choices] == [5, 5, 3]
    assert "loses 50 % less, risk 1.5 times larger." in found.choices[2].reason


def test_fewer_than_three_attempts_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(monkeypatch, ("mdav", 10, 0.0, 0.1, 1.0), ("refine", 3, 0.02, 0.3, 1.0))
    assert [choice.config.k for choice in found.choices] == [10, 3]
    assert "loses 0.02 more" in found.choices[1].reason
    assert any("k = 5 has a loss: the choices have another k" in note for note in found.notes)
    assert any("only 2 attempts have a loss, of 12 that" in note for note in found.notes)
    whole = choose(monkeypatch, *[("mdav", k, 0.1, 1 / k, 1.0) for k in (5, 10, 20)])
    assert len(whole.choices) == 3
    assert not any("fewer than" in note for note in whole.notes)


GATED = {
    "evaluate": {"measures": ["reidentification", "disclosure"]},
    "gates": [{"figure": "reidentification.marketer", "at_most": 0.07}],
}


def gate(
    monkeypatch: pytest.MonkeyPatch, *made: tuple[str, int, float, dict[int, int]], **changes: Any
) -> Suggestion:
    """The suggestion where attempts have these figures: kernel, k, loss, sizes."""
    figures = {(kernel, k): rest for kernel, k, *rest in made}

    def attempt(rows: Rows, each: Attempt) -> Attempt:
        if (each.kernel, each.k) not in figures:
            return replace(each, error="it failed")
        loss, sizes = figures[each.kernel, each.k]
        n_classes, n_rows = sum(sizes.values()), sum(n * size for size, n in sizes.items())
        tried = replace(each, loss=loss, chance=n_classes / n_rows, seconds=1.0, sizes=sizes)
        return replace(tried, least_persons=min(sizes))

    monkeypatch.setattr(suggestion, "_attempt", attempt)
    return suggested(kernels=["mondrian"], **{**GATED, **changes})


def test_attempts_outside_a_gate_are_no_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gate(
        monkeypatch,
        ("mdav", 10, 0.1, {10: 4, 15: 4}),  # 0.08
        ("mondrian", 10, 0.2, {10: 1, 20: 4}),  # 0.0556
        ("mdav", 20, 0.3, {20: 5}),
        k=10,
    )
    assert [(c.config.kernel.type, c.config.k) for c in found.choices] == [
        ("mondrian", 10),
        ("mdav", 20),
    ]
    assert not any("refused" in choice.reason for choice in found.choices)
    text = "1 of 3 attempts is outside reidentification.marketer at most 0.07: a release by them"
    assert any(note.startswith(text) for note in found.notes)
    assert any("only 2 attempts have a loss within the gates" in note for note in found.notes)


def test_no_attempt_within_a_gate_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gate(monkeypatch, ("mdav", 5, 0.1, {5: 9}), ("mdav", 10, 0.2, {10: 4, 15: 4}), k=5)
    name = "reidentification.marketer at most 0.07"
    assert found.choices[0].reason.endswith(
        f"Outside the gate {name}: 0.2; such a release is refused."
    )
    assert any(f"no attempt is within {name} (nearest: 0.08): " in note for note in found.notes)
    for text in (found.report(), repr(found)):
        assert f"no attempt is within {name}" in text
        assert "such a release is refused" in text


def test_gates_that_no_attempt_passes_at_once_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    least = {"figure": "reidentification.prosecutor_max", "at_least": 0.15}
    gates = [*GATED["gates"], least, {"figure": "disclosure.gain", "at_most": 0.3}]
    found = gate(
        monkeypatch, ("mdav", 5, 0.1, {5: 9}), ("mdav", 20, 0.2, {20: 4}), k=5, gates=gates
    )
    assert any("no attempt is within all gates at once: " in note for note in found.notes)
    text = "the gate disclosure.gain at most 0.3 was not tried on the sample: it may refuse the "
    assert f"{text}release" in found.notes


def test_with_a_unit_the_persons_of_classes_are_judged() -> None:
    frame = people(600)
    frame["patient"] = np.arange(600) // 2
    largest = {"figure": "reidentification.prosecutor_max", "at_most": 0.15}
    mean = {"figure": "reidentification.marketer", "at_most": 0.001}
    found = suggested(
        frame,
        unit=["patient"],
        one_row_per_person=None,
        kernels=["mondrian"],
        **GATED | {"gates": [largest, mean]},
    )
    assert [each.risks.keys() for each in found.attempts] == [{"prosecutor_max"}] * 8
    assert all(each.least_persons >= each.k for each in found.attempts)
    judged = [each.config.k for each in found.choices]
    assert judged[0] >= 5
    for choice in found.choices:
        assert attempt_of(found, choice).risks["prosecutor_max"] <= 0.15
    text = "the gate reidentification.marketer at most 0.001 was not tried on the sample"
    assert any(note.startswith(text) for note in found.notes)
    with redirect_stdout(io.StringIO()) as out:
        print_suggestion(found, "a.yaml", found.config)
    rows = re.findall(r"^(?:mdav|mondrian) +(\d+) +\S+ +(\S+) +\S+ *$", out.getvalue(), re.M)
    assert len(rows) == 8
    assert re.search(r"k +loss +1 / k +seconds", out.getvalue())
    assert all(float(chance) == pytest.approx(1 / int(k), rel=1e-3) for k, chance in rows)


def test_a_release_by_the_first_choice_passes_the_gates() -> None:
    gates = [{"figure": "reidentification.marketer", "at_most": 0.11}]
    found = suggested(**GATED | {"gates": gates})
    release = anonlib.anonymize(people(600), found.choices[0].config)
    assert release.risk["marketer"] <= 0.11
    assert any("refused, so none of them is a choice" in note for note in found.notes)


def test_a_k_that_the_policy_refuses_is_told() -> None:
    rule = {"id": "least-k", "type": "class_size", "at_least": 5, "says": "It is.", "source": "us"}
    policy = {"name": "ours", "title": "Our rules", "rules": [rule]}
    found = suggested(kernels=["mondrian"], policy=policy)
    assert {each.k for each in found.attempts} == {5, 10, 20}
    assert "k = 3 is not tried: policy ours, rule least-k: asks for 5 or more" in found.notes
    assert found.notes[0].startswith("6 of 6 attempts")


def test_all_k_that_are_refused_alike_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "k = 2, 3 and 4 are not tried: the operator of this installation allows no k below 5"
    monkeypatch.setenv("ANONLIB_MIN_K", "5")
    assert text in suggested(kernels=["mdav"], ks=[4, 2, 3]).notes


def test_what_can_not_be_built_by_its_name_is_an_argument() -> None:
    with pytest.raises(ConfigError, match=r"partitioners: controller: can't be tried by its name"):
        suggested(partitioners=["controller"])
    with pytest.raises(ConfigError, match=r"kernels: unknown kernel 'mondriam'"):
        suggested(kernels=["mondriam"])


def test_a_partitioner_that_looks_at_a_target_says_how_it_is_tried() -> None:
    frame = people(600)
    frame["rich"] = frame.pop("wage") > frame["age"]
    given = {"quasi_identifiers": ["age", "city"], "partitioners": ["target_tree"], "ks": []}
    found = suggested(frame, **given, target="rich", target_is_public=True)
    (note,) = [each for each in found.notes if each.startswith("loss by partitioner")]
    assert "the partitioner of the config, which is always tried" in note
    (note,) = [each for each in suggested(**given).notes if each.startswith("loss by partitioner")]
    assert "looks at a target, and the config names none" in note


def test_the_frontier() -> None:
    found = suggested()
    done = [each for each in found.attempts if each.loss is not None]
    better = [
        each
        for each in done
        if not any(
            (o.risk <= each.risk and (o.loss or 0) < (each.loss or 0))
            or (o.risk < each.risk and (o.loss or 0) <= (each.loss or 0))
            for o in done
        )
    ]
    assert {id(each) for each in found.frontier} <= {id(each) for each in better}
    points = {(each.risk, each.loss) for each in better}
    assert {(each.risk, each.loss) for each in found.frontier} == points


def test_equal_attempts_are_all_on_the_frontier(monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(
        monkeypatch,
        ("mdav", 5, 0.1, 0.2, 1.0),
        ("mondrian", 5, 0.1, 0.2, 2.0),
        ("refine", 5, 0.11, 0.2, 1.0),
        ("mdav", 10, 0.2, 0.1, 1.0),
        ("refine", 10, 0.2, 0.1, 1.0),
    )
    assert {(each.kernel, each.k) for each in found.frontier} == {
        *(("mdav", 5), ("mondrian", 5), ("mdav", 10), ("refine", 10))
    }
    assert found.report().count(">yes<") == 2 * 4  # in the chart's table, and in that of attempts


def test_what_fails_is_a_note() -> None:
    found = suggested(ks=[500], kernels=["mondrian", "peel"])
    failed = {each.kernel: each.error for each in found.attempts if each.k == 5 and each.error}
    assert [*failed] == ["peel"]  # it needs hierarchies
    assert any(note.startswith("mdav, k = 700: ") for note in suggested(ks=[700]).notes)


def test_the_time_is_up() -> None:
    found = suggested(seconds=1e-9)
    assert len(found.attempts) == 1
    assert found.notes[0].startswith("1 of ")


def test_a_sample_has_whole_persons() -> None:
    frame = people(3000)
    frame["patient"] = np.arange(3000) // 5
    found = suggested(frame, unit=["patient"], one_row_per_person=None, rows=500, ks=[], kernels=[])
    assert 400 <= tried_rows(found) <= 600
    assert tried_rows(found) % 5 == 0
    assert all(each.chance is None and each.risk == 1 / 5 for each in found.attempts)
    table = pa.table({"c0": np.arange(1000)})
    assert 70 < sample_rows(Rows(table, Schema(())), 100).table.num_rows < 130


def test_its_page_and_how_it_shows_itself(tmp_path: Path) -> None:
    found = suggested(kernels=["mondrian", "peel"])
    for _ in range(2):  # a page replaces itself
        assert found.report(tmp_path / "tried.html") == str(tmp_path / "tried.html")
    assert (tmp_path / "tried.html").read_text() == found.report()
    for text in (found.report(), repr(found), found._repr_html_()):
        assert "least loss" in text.lower()
        assert "Aberdeen" not in text
    assert "Line chart, Loss against mean chance to be found" in found.report()
    assert "k_anonymity" in found.report()  # the config of a choice
    assert "<p>12 of 12 attempts, on 600 rows.</p>" in found.report()  # other notes are a list
    for text in (found.report(), found._repr_html_()):
        assert "<code>scales</code> can say otherwise" in text


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"seconds": 0}, "seconds: must be a number above 0"),
        ({"seconds": float("nan")}, "seconds: must be a number above 0"),
        ({"seconds": np.float32("nan")}, "seconds: must be a number above 0"),
        ({"seconds": True}, "seconds: must be a number above 0"),
        ({"rows": 10.5}, "rows: must be a whole number"),
        ({"ks": 10}, "ks: must be a list of whole numbers"),
        ({"ks": ["5"]}, "ks: must be a list of whole numbers"),
        ({"ks": np.array([5.0])}, "ks: must be a list of whole numbers"),
        ({"ks": np.array([[5]])}, "ks: must be a list of whole numbers"),
        ({"ks": np.array(5)}, "ks: must be a list of whole numbers"),
        ({"kernels": [5]}, "kernels: must be a list of names"),
        ({"kernels": "mdav"}, "kernels: must be a list of names"),
        ({"partitioners": "kmeans"}, "partitioners: must be a list of names"),
        ({"quasi_identifiers": []}, "quasi_identifiers: name the columns"),
    ],
)
def test_what_cannot_be_tried(change: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        suggested(**change)


@pytest.mark.parametrize("ks", [[np.int64(7)], np.array([7]), (7,), pd.Series([7])])
def test_numbers_of_numpy_are_numbers(ks: Any) -> None:
    found = suggested(
        ks=ks, seconds=np.float32(600), rows=np.int64(1000), kernels=np.array(["mdav"])
    )
    assert [each.k for each in found.attempts] == [5, 7]
    assert yaml.safe_load(found.attempts[1].config_yaml)["privacy"]["models"][0]["k"] == 7


def test_a_sample_is_of_rows() -> None:
    """Not of distinct rows: of few tuples each has its share."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"age": random.integers(20, 60, 20_000), "ill": random.choice(3, 20_000)})
    given: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "k": 5, "l": 3}
    found = anonlib.suggest(
        frame, **given, one_row_per_person=True, rows=2000, ks=[], kernels=["mondrian"]
    )
    assert found.choices
    assert 1800 < tried_rows(found) < 2200


def test_no_k_below_the_minimum_of_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANONLIB_MIN_K", "5")
    assert {each.k for each in suggested(kernels=["mondrian"]).attempts} == {5, 10, 20}


def test_nothing_to_lose() -> None:
    """Columns that do not vary lose nothing, and rows of few equal tuples nothing either."""
    frame = people(600).assign(age=1, wage=1.0, city="a")
    found = suggested(frame, kernels=["mondrian"])
    assert {each.loss for each in found.attempts} == {0.0}
    assert len(found.choices) == 3
    assert sum("no quasi-identifier varies" in note for note in found.notes) == 1
    assert anonlib.anonymize(frame, found.choices[0].config).audit.passed
    frame["age"] = [1, 2] * 300
    found = suggested(frame, kernels=["mondrian"])
    assert found.choices[0].name == "least loss"
    assert not any("no quasi-identifier varies" in note for note in found.notes)


def test_what_no_attempt_may_release() -> None:
    frame = people()
    frame.loc[3, "row"] = 4
    with pytest.raises(InfeasibleError, match="one_row_per_person"):
        suggested(frame)
    assert isinstance(frame, pd.DataFrame)


def test_partitioners() -> None:
    """They are compared in blocks of a quarter of the sample; all attempts have the best one."""
    found = suggested(ks=[], kernels=["mondrian"], partitioners=["mondrian", "target_tree"])
    (note,) = [note for note in found.notes if "by partitioner" in note]
    losses, failed = note.split(": ", 1)[1].split("; target_tree ")
    assert failed == "looks at a target, and the config names none"
    by_name = {name: float(loss) for name, loss in map(str.split, losses.split("; "))}
    best = min(by_name, key=lambda name: by_name[name])
    for each in found.attempts:
        assert [step.type for step in each.config.partition.steps] == [best]
        assert each.config.partition.max_rows == found.config.partition.max_rows
    for name, loss in by_name.items():
        partition = {"steps": [{"type": name}], "max_rows": 150}
        release = anonlib.anonymize(people(600), **GIVEN, partition=partition)
        assert float(f"{release.losses['ncp']:.3g}") == pytest.approx(loss, rel=0.2)


def test_the_time_is_up_while_partitioners_are_compared() -> None:
    with pytest.raises(ConfigError, match="nope"):
        suggested(partitioners=["mondrian", "nope"], seconds=1e-9)
    found = suggested(partitioners=["mondrian", "single", "mondrian"], seconds=1e-9)
    (note,) = [note for note in found.notes if "by partitioner" in note]
    assert note.endswith("; the time was up after 1 of 3 partitioners")


def test_a_kernel_that_needs_what_was_not_read_is_a_note() -> None:
    found = suggested(ks=[], kernels=["lda_mdav"])
    assert [each.kernel for each in found.attempts if each.error] == ["lda_mdav"]
    assert any("looks at a target" in note for note in found.notes)


def test_partitioners_of_other_steps() -> None:
    steps = [{"type": "kmeans"}, {"type": "mondrian"}]
    with pytest.raises(ConfigError, match=r"partition\.steps: is more than cuts"):
        suggested(partition={"steps": steps}, partitioners=["mondrian"])


def test_a_sample_is_not_taken_for_the_table() -> None:
    """Three persons have each ward, which is published as it is: in the sample it looks like a
    key."""
    frame = people(3000).assign(ward=[f"w{i % 1000}" for i in range(3000)])
    given = {"sensitive": ["ward"], "l": None, "ks": [], "kernels": ["mondrian"]}
    found = suggested(frame, rows=100, **given)
    assert tried_rows(found) < 200
    assert found.choices
    with pytest.raises(InfeasibleError, match="ward"):
        suggested(frame.iloc[:1000], rows=100, **given)


def test_sizes_of_classes_are_exact() -> None:
    """Those of other audits are rounded by powers of two above 1,024 rows."""
    frame = pd.DataFrame({"sex": ["a"] * 4100 + ["b"] * 8100 + ["c"] * 7800, "z": "x"})
    found = anonlib.suggest(
        frame,
        quasi_identifiers=["sex", "z"],
        one_row_per_person=True,
        rows=20_000,
        seconds=1,
        kernels=["mondrian"],
        ks=[],
    )
    for each in found.attempts:
        assert each.sizes == {4100: 1, 7800: 1, 8100: 1}
        assert each.chance == 3 / 20_000
    told = data_of(found.report())["settings"][0]["sizes"]
    assert [(name, round(20_000 * share)) for name, share in told] == [
        ("2,000–4,999", 4100),
        ("5,000–9,999", 15_900),
    ]
