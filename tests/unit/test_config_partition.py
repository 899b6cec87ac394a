"""Configs of chains, controllers and suppression: what is wrong with each."""

from typing import Any

from tests.unit.test_config import GOOD, Mistake, each_mistake, problems, require_one_problem

K = {"type": "k_anonymity", "k": 10}
L = {"type": "l_diversity", "l": 2}


def controllers(column: str, **models: Any) -> dict[str, Any]:
    """A step that keeps controllers apart."""
    return {"type": "controller", "column": column, **({"models": models} if models else {})}


# fmt: off
WRONG: list[Mistake] = [
    ("cut_whole", {**GOOD, "partition": {"steps": ["kmeans", "single"]}}, "partition.steps.1",
     "single keeps the table whole; remove the steps that cut it"),
    ("late_controller", {**GOOD, "partition": {"steps": ["kmeans", controllers("age")]}},
     "partition.steps.1", "controller must be the first step"),
    ("strange_controller", {**GOOD, "partition": {"steps": [controllers("hospital")]}},
     "partition.steps.0.column", "no column hospital under `attributes`"),
    ("kept_controller", {**GOOD, "partition": {"steps": [controllers("id")]}},
     "partition.steps.0.column", "must have `role: quasi_identifier`, or `role: drop`"),
    ("own_model", {**GOOD, "partition": {"steps": [controllers("age", a=[{"type": "k_anon"}])]}},
     "partition.steps.0.models", "unknown privacy model 'k_anon'; did you mean k_anonymity? there"),
    ("own_parameter", {**GOOD, "partition": {"steps": [controllers("age", a=[K | {"k": 1}])]}},
     "partition.steps.0.models", "k_anonymity.k: must be greater"),
    ("own_list", {**GOOD, "partition": {"steps": [controllers("age", a=K)]}},
     "partition.steps.0.models", "each controller has a list of privacy models"),
    ("own_attribute",
     {**GOOD, "partition": {"steps": [controllers("age", a=[L | {"attribute": "id"}])]}},
     "partition.steps.0.models.a.0.attribute", "must be a sensitive column or the target"),
    ("costliest", {**GOOD, "privacy": {**GOOD["privacy"], "suppress": "costliest"}},
     "privacy.suppress", "needs a suppression_limit above 0"),
    ("relative_cost", {**GOOD, "privacy": {"models": [K, {"type": "t_closeness", "t": 0.2}],
     "suppress": "costliest", "suppression_limit": 0.1}},
     "privacy.suppress", "by t_closeness, cells are measured against all released rows"),
]
# fmt: on


@each_mistake(WRONG)
def test_one_mistake_gives_one_problem(raw: dict[str, Any], where: str, text: str) -> None:
    require_one_problem(raw, where, text)


def test_kernels_along_hierarchies_need_nominal_columns() -> None:
    found = problems({**GOOD, "kernel": "peel"})
    assert "kernel peel generalizes along hierarchies" in found["attributes.age.scale"]
    assert "recode.columns.age" not in found  # that is what comes of it


def test_a_kernel_that_is_wrong_has_no_other_faults() -> None:
    """Another one stands in for it, of which nothing is said."""
    wrong = {"type": "peel", "effort": -1}
    found = problems({**GOOD, "kernel": wrong, "partition": {"steps": ["tuples"]}})
    assert [where for where in found if where.startswith("kernel")] == ["kernel.effort"]
