"""Checks of `partition`: the order of its steps, and what tuples and controllers need."""

from collections.abc import Iterator, Mapping

from anonlib import registry
from anonlib.config.checks.attributes import must_be_nominal
from anonlib.config.checks.privacy_section import check_protected, name_relative
from anonlib.config.checks.recode_section import list_column_recoders
from anonlib.config.model import Attribute, Config
from anonlib.errors import Problem, did_you_mean
from anonlib.kernels import Kernel
from anonlib.partition import TaskPartitioner, TreePartitioner
from anonlib.partition.controller import Controller
from anonlib.partition.tuples import TuplesPartitioner
from anonlib.recode import Recoder
from anonlib.table.schema import Role


def check_steps(config: Config) -> Iterator[Problem]:
    """Checks the steps and their order."""
    steps = config.partition.steps
    if not steps:
        yield Problem("partition.steps", "give at least one step; `{type: single}` is one block")
    if config.kernel.finds_levels and not config.partition.by_tuples:
        yield Problem(
            "partition.steps",
            f"kernel {config.kernel.type} finds one level for the whole table: use tuples",
        )
    for i, step in enumerate(steps):
        where = f"partition.steps.{i}"
        if isinstance(step, Controller):
            if i:
                yield Problem(where, "controller must be the first step")
            yield from _check_controller(step, config.attributes, where)
        if isinstance(step, TuplesPartitioner):
            yield from _check_tuples(config, where)
        if isinstance(step, TaskPartitioner) and i < len(steps) - 1:
            yield Problem(where, f"{step.type} works inside the blocks: it must be the last step")
        if step.max_block_rows is not None and any(isinstance(s, TreePartitioner) for s in steps):
            yield Problem(where, f"{step.type} keeps the table whole; remove the steps that cut it")


def _check_tuples(config: Config, where: str) -> Iterator[Problem]:
    """Problems: settings that one search over the tuples of the whole table does not support."""
    kernel = config.kernel
    if len(config.partition.steps) > 1:
        yield Problem(where, "tuples searches the whole table: it must be the only step")
    if not kernel.takes_weights:
        yield Problem(
            "kernel.type",
            f"kernel {kernel.type} does not work with tuples; these do: "
            f"{_weighted_types('kernel')}",
        )
    if config.unit:
        yield Problem(where, "tuples counts rows, but a unit has several; use kmeans")
    relative = name_relative(config.all_models)
    if kernel.suppresses and config.privacy.suppression_limit and relative:
        yield Problem(
            "privacy.suppression_limit",
            f"by {relative}, cells are measured against all released rows, which change when "
            f"{kernel.type} suppresses some; set it to 0",
        )
    if config.privacy.suppress != "needed":
        yield Problem("privacy.suppress", "costliest does not work with tuples; use `needed`")
    for name, attribute, recoder in list_column_recoders(config.attributes, config.recode):
        if must_be_nominal(kernel, attribute):
            continue
        if not recoder.takes_weights:
            yield Problem(
                f"recode.columns.{name}",
                f"recoder {recoder.type} does not work with tuples; these do: "
                f"{_weighted_types('recoder')}",
            )
        elif kernel.finds_levels and "level" not in type(recoder).model_fields:
            yield Problem(
                f"recode.columns.{name}",
                f"kernel {kernel.type} finds levels of hierarchies; use recoder lca",
            )


def _weighted_types(family: str) -> str:
    """The names of the kernels or recoders that take rows with weights."""
    known = registry.plugins(family).items()
    names = (name for name, p in known if issubclass(p, (Kernel, Recoder)) and p.takes_weights)
    return ", ".join(names)


def _check_controller(
    step: Controller, attributes: Mapping[str, Attribute], where: str
) -> Iterator[Problem]:
    attribute = attributes.get(step.column)
    if attribute is None:
        text = f"no column {step.column} under `attributes`{did_you_mean(step.column, attributes)}"
        yield Problem(f"{where}.column", text)
    elif attribute.role not in (Role.QUASI_IDENTIFIER, Role.DROP):
        yield Problem(
            f"{where}.column",
            "the column must have `role: quasi_identifier`, or `role: drop`, which does not "
            "publish it",
        )
    for name, models in step.models.items():
        yield from check_protected(attributes, models, f"{where}.models.{name}")
