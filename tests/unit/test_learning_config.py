"""The models of the measure `learning` in a config."""

from typing import Any

import pytest
from pydantic import ValidationError

from anonlib import registry
from anonlib.measure.fidelity.learning import Learning, label
from anonlib.measure.learners.mlp import Mlp
from anonlib.measure.scores import Scores


def test_models_are_named_or_given_with_parameters() -> None:
    measure = Learning(models=["mlp", {"type": "mlp", "hidden": [5, 2]}, {"type": "random_forest"}])
    assert [model.type for model in measure.models] == ["mlp", "mlp", "random_forest"]
    assert measure.models[1] == Mlp(hidden=(5, 2))
    labels = [label(model, measure.models) for model in measure.models]
    assert labels == ["mlp", "mlp hidden=(5, 2)", "random_forest"]
    for each in (measure, Learning()):
        assert registry.build("measure", registry.spec(each)) == each
    default = Learning.model_json_schema()["properties"]["models"]["default"]
    assert default == [model.type for model in Learning().models]


@pytest.mark.parametrize(
    ("models", "told"),
    [
        (["svm"], "unknown learner 'svm'; there are: boosted_trees"),
        ([{"trees": 3}], "name each model by `type`: boosted_trees"),
        ([{"type": "mlp", "epochs": 0}], "mlp.epochs: must be greater than"),
        ([{"type": "mlp", "layers": 2}], "mlp.layers: unknown field; allowed: "),
        (["mlp", {"type": "mlp"}], "mlp is there twice; remove one"),
        ("mlp", "tuple"),
        ([], "at least 1 item"),
    ],
)
def test_wrong_models_are_told(models: Any, told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Learning(models=models)
    assert told in str(caught.value)


def test_a_release_made_without_persons_marks_none() -> None:
    assert Learning().held_out == 0
    assert Learning(split="after", holdout=0.2).held_out == 0.2
    assert not Learning.usual


def test_every_score_is_a_figure_in_each_form() -> None:
    forms = ("{}", "raw_{}", "{}_loss", "baseline_{}")
    assert [*Learning.names] == [form.format(name) for form in forms for name in Scores._fields]
