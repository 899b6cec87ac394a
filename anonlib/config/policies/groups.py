"""Whether the released groups of a column are as coarse as a rule wants."""

import re
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from anonlib.arrays import Ints
from anonlib.config.model import Attribute, RecodeSection
from anonlib.config.policies import Coarseness, exact
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.recode.interval import Interval
from anonlib.recode.lca import Lca
from anonlib.table.schema import Role

#: Names of years and of longer periods: 2020, 2020s, 2020-2024, *.
_YEARS = re.compile(r"\*|\d{4}s?( ?[-–] ?\d{4})?")

#: State, and what was found.
Coarse: TypeAlias = tuple[Literal["kept", "not kept", "to confirm"], str]


def judge_groups(
    rule: Coarseness, name: str, attribute: Attribute, recode: RecodeSection
) -> Coarse:
    """Judges a released column.

    Nodes of hierarchies are judged by the lowest that can be released: nodes above them are unions
    of these.

    Args:
        rule: The rule.
        name: The column.
        attribute: Its role.
        recode: The recoders.
    """
    if attribute.role is not Role.QUASI_IDENTIFIER or attribute.scale is None:
        return "not kept", "released as it is; drop it, or make it a quasi-identifier"
    recoder = recode.of(name, attribute.scale)
    if recoder.releases == "nothing":
        return "kept", ""
    if isinstance(recoder, Interval):
        years = rule.period is not None and recoder.round_to == "year"
        top = rule.top is not None and recoder.top is not None
        if years or (top and exact(recoder.top) <= exact(rule.top)):
            return "kept", ""
    if isinstance(recoder, Lca) and attribute.hierarchy is not None:
        try:
            hierarchy = read_hierarchy(attribute.hierarchy)
        except InputError:  # told as a problem of its own
            return "not kept", "its hierarchy can't be read"
        return _judge_nodes(rule, hierarchy, recoder.level)
    return "not kept", f"recoder {recoder.type} can show more; {_hint(rule)}"


def _hint(rule: Coarseness) -> str:
    if rule.top is not None:
        return (
            f"use interval with top: {rule.top}, or lca with a level of its hierarchy that has all "
            f"from {rule.top} on in one node"
        )
    if rule.period is not None:
        return "use interval with round_to: year, or lca with a level of its hierarchy of years"
    return (
        f"use lca with a level of its hierarchy whose nodes have {rule.characters} characters, the "
        "others masked by *"
    )


def _judge_nodes(rule: Coarseness, hierarchy: Hierarchy, level: int) -> Coarse:
    n_leaves = int(hierarchy.tree.high[-1])
    lowest = hierarchy.tree.raised(np.arange(n_leaves), level)
    if rule.top is not None:
        return _judge_top(rule, hierarchy, lowest)
    doubtful = False
    for node in np.unique(lowest).tolist():
        name = hierarchy.names[node]
        if rule.period is not None:
            coarse = bool(_YEARS.fullmatch(name))
        else:
            coarse = len(name.rstrip("*")) <= (rule.characters or 0)
        if coarse or node == len(hierarchy.names) - 1:
            continue
        if node < n_leaves or any(character.isdigit() for character in name):
            return "not kept", f"at level {level} its hierarchy has finer nodes; {_hint(rule)}"
        doubtful = True
    if doubtful:
        return "to confirm", "nodes of its hierarchy have names of their own; they must be coarse"
    return "kept", ""


def _judge_top(rule: Coarseness, hierarchy: Hierarchy, lowest: Ints) -> Coarse:
    """Whether all numbers from `top` on are one node."""
    top, least = exact(rule.top), dict[int, Fraction]()
    above: set[int] = set()
    doubtful = False
    for leaf, node in enumerate(lowest.tolist()):
        try:
            number = exact(hierarchy.names[leaf])
        except ValueError:
            doubtful = True
            continue
        least[node] = min(number, least.get(node, number))
        if number >= top:
            above.add(node)
    if len(above) > 1 or any(node < len(lowest) and least[node] > top for node in above):
        return "not kept", f"its hierarchy tells numbers from {rule.top} on apart; {_hint(rule)}"
    if any(least[node] > top for node in above):
        return "to confirm", f"the name of the node of {rule.top} on must tell no more"
    if doubtful:
        return "to confirm", f"leaves of its hierarchy are no numbers; {rule.top} on is one"
    return "kept", ""
