"""Judges a config, and the classes that an audit counted, by the rules of a policy."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import singledispatch
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel

from anonlib import registry
from anonlib.config.model import Config, Gate
from anonlib.config.policies import (
    Absence,
    ClassSize,
    Coarseness,
    Confirmation,
    OfColumns,
    Policy,
    RequiredGate,
    RequiredModel,
    RequiredSetting,
    Rule,
    describe_bounds,
    exact,
)
from anonlib.config.policies.groups import judge_groups
from anonlib.config.summary import label_plugin
from anonlib.errors import AuditError, ConfigError, Problem
from anonlib.identifiers.column_names import name_words, translate_name
from anonlib.identifiers.direct import KIND_NAMES, LOOSE_KINDS
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.schema import Role, Schema

#: Whether a rule is kept: a doubt is for a person to confirm, and never passed in silence.
State: TypeAlias = Literal["kept", "not kept", "to confirm", "does not apply"]


@dataclass(frozen=True)
class RuleVerdict:
    """What became of a rule.

    Attributes:
        rule: Its id.
        says: The rule, in a sentence.
        source: Where it is from.
        state: Whether it is kept.
        reason: What the config has, or the release.
        where: The field of the config to change.
    """

    rule: str
    says: str
    source: str
    state: State
    reason: str
    where: str


@dataclass(frozen=True)
class Evidence:
    """What rules are judged by.

    Attributes:
        config: The config.
        types: By column: its type, as far as it is known, in words of Arrow or, of a cast, Spark.
        smallest: The fewest persons of a class, as audited; None before the audit.
        uncounted: Whether an audit could not count persons in this table.
        kinds: By released column: what its texts look like; None where nobody has looked.
    """

    config: Config
    types: Mapping[str, str]
    smallest: int | None
    uncounted: bool = False
    kinds: Mapping[str, str] | None = None


#: State, what was found, and the field to change.
Finding: TypeAlias = tuple[State, str, str]


def judge_rules(
    config: Config,
    schema: Schema | None = None,
    smallest: int | None = None,
    *,
    uncounted: bool = False,
    kinds: Mapping[str, str] | None = None,
) -> tuple[RuleVerdict, ...]:
    """The verdicts on all rules of the config's policy; none without one.

    Args:
        config: The config.
        schema: The columns as the source has them. Without it, only casts tell of types.
        smallest: The fewest persons of a class, as the audit counted them.
        uncounted: Whether an audit could not count persons, as in a published table of a unit.
        kinds: What the texts of released columns look like, as the content gate found; None before
            it has looked.
    """
    if config.policy is None:
        return ()
    types = {name: a.type for name, a in config.attributes.items() if a.type is not None}
    if schema is not None:
        types = {column.name: str(column.type) for column in schema.columns} | types
    evidence = Evidence(config, types, smallest, uncounted, kinds)
    verdicts = []
    for rule in config.policy.rules:
        state, found, where = _judge_where_it_applies(rule, evidence)
        verdicts.append(RuleVerdict(rule.id, rule.says, rule.source, state, found, where))
    return tuple(verdicts)


def check_policy(
    config: Config, schema: Schema | None = None, kinds: Mapping[str, str] | None = None
) -> Iterator[Problem]:
    """Problems: rules of the policy that the config does not keep."""
    for verdict in judge_rules(config, schema, kinds=kinds):
        if verdict.state == "not kept":
            name = "" if config.policy is None else config.policy.name
            yield Problem(
                verdict.where,
                f"{verdict.reason}; policy {name}, rule {verdict.rule}: {verdict.says} "
                f"({verdict.source})",
            )


def require_policy(config: Config, schema: Schema, kinds: Mapping[str, str] | None = None) -> None:
    """Raises ConfigError with the rules that the config does not keep on a source's columns, whose
    types are known now. kinds: What their texts look like, if the content gate has looked."""
    if problems := [*check_policy(config, schema, kinds)]:
        raise ConfigError(problems)


def require_rules(
    config: Config, schema: Schema, smallest: int, kinds: Mapping[str, str] | None = None
) -> tuple[RuleVerdict, ...]:
    """The verdicts on an audited release. Its classes are judged again.

    smallest: The fewest persons of a class; 0 if the audit could not count them.
    kinds: What the texts of released columns look like, as the content gate found.

    Raises AuditError unless every rule is kept or for a person to confirm.
    """
    verdicts = judge_rules(config, schema, smallest, kinds=kinds)
    failed = [f"{v.rule}: {v.reason}" for v in verdicts if v.state == "not kept"]
    if failed and config.policy is not None:
        raise AuditError(
            f"policy {config.policy.name} is not kept, nothing was released: {'; '.join(failed)}"
        )
    return verdicts


def narrow_policy(policy: Policy | None) -> Policy | None:
    """The rules that a sample in memory can be judged by: on classes and on models."""
    if policy is None:
        return None
    rules = tuple(r for r in policy.rules if isinstance(r, ClassSize | RequiredModel))
    return policy.model_copy(update={"rules": rules}) if rules else None


def _judge_where_it_applies(rule: Rule, evidence: Evidence) -> Finding:
    access = evidence.config.context.access
    if rule.access and access is not None and access not in rule.access:
        return "does not apply", f"context.access is {access}", ""
    return _judge(rule, evidence)


@singledispatch
def _judge(rule: Rule, _evidence: Evidence) -> Finding:
    raise TypeError(f"a rule of type {rule.type} has no judgement")


@_judge.register
def _(_rule: Confirmation, _evidence: Evidence) -> Finding:
    return "to confirm", "no config can show this", ""


@_judge.register
def _(rule: ClassSize, evidence: Evidence) -> Finding:
    models = evidence.config.privacy.models
    own = [(model.k, i) for i, model in enumerate(models) if isinstance(model, KAnonymity)]
    k, place = max(own, default=(0, 0))
    if evidence.uncounted and k >= rule.least:
        text = "persons can't be counted in this table; its classes were judged at release"
        return "to confirm", text, "unit"
    n = k if evidence.smallest is None else min(k, evidence.smallest)
    what = "k is" if evidence.smallest is None else "the smallest class has"
    shown = n if evidence.smallest is None else evidence.smallest
    chance = f", a chance of 1/{shown} = {1 / shown:.4f}" if rule.risk_at_most and shown else ""
    wanted = f"; {rule.least} is the least" if n < rule.least else ""
    persons = "" if evidence.smallest is None else " persons"
    return (
        _state(keeps=n >= rule.least),
        f"{what} {shown}{persons}{chance}{wanted}",
        f"privacy.models.{place}.k",
    )


def _state(*, keeps: bool) -> State:
    return "kept" if keeps else "not kept"


@_judge.register
def _(rule: RequiredModel, evidence: Evidence) -> Finding:
    attributes = evidence.config.attributes
    models = evidence.config.bound_models
    # A target that is not public is as confidential as a sensitive column.
    sensitive = [
        name
        for name, a in attributes.items()
        if a.role is Role.SENSITIVE or (a.role is Role.TARGET and not a.public)
    ]
    plain = [
        name
        for name, a in attributes.items()
        if a.role is Role.INSENSITIVE or (a.role is Role.TARGET and a.public)
    ]
    bare = [
        name
        for name in sensitive
        if not any(
            own.implies(model.model_copy(update={"attribute": name}))
            for model in rule.any_of
            for own in models
        )
    ]
    if not sensitive:
        return "to confirm", "no column is declared sensitive", "privacy.models"
    if bare:
        wanted = ", or ".join(label_plugin(model) for model in rule.any_of)
        return "not kept", f"{', '.join(bare)}: needs {wanted}", "privacy.models"
    found = f"every sensitive column has it: {', '.join(sensitive)}"
    if plain:
        doubt = f"published as they are, and nothing of them may be sensitive: {', '.join(plain)}"
        return "to confirm", f"{found}; {doubt}", "attributes"
    return "kept", found, "privacy.models"


@_judge.register
def _(rule: RequiredSetting, evidence: Evidence) -> Finding:
    value: Any = evidence.config
    for part in rule.field.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, BaseModel) and part in type(value).model_fields:
            value = getattr(value, part)
        elif value is None:
            break
        else:
            return "not kept", f"a config has no field {rule.field}", "policy"
    return _state(keeps=_fits(rule, value)), rule.asks, rule.field


def _fits(rule: RequiredSetting, value: Any) -> bool:
    if rule.one_of:
        return any(value is each or (value == each and type(value) is str) for each in rule.one_of)
    if rule.at_most is None and rule.at_least is None:
        return value not in (None, "", (), False)
    return _within(value, rule.at_least, rule.at_most)


def _within(value: Any, at_least: str | None, at_most: str | None) -> bool:
    """Whether a number is within bounds, all as they are written."""
    try:
        number = exact(value)
    except ValueError:
        return False
    low = at_least is None or number >= exact(at_least)
    return low and (at_most is None or number <= exact(at_most))


@_judge.register
def _(rule: RequiredGate, evidence: Evidence) -> Finding:
    asked = describe_bounds(rule.at_least, rule.at_most)
    for gate in evidence.config.gates:
        if gate.figure != rule.figure or gate.of not in (None, rule.of):
            continue
        high = rule.at_most is None or _within(gate.at_most, None, rule.at_most)
        if high and (rule.at_least is None or _within(gate.at_least, rule.at_least, None)):
            return _judge_parameters(rule, gate, evidence.config)
    return "not kept", f"no gate is as strict: {rule.figure} {asked}", "gates"


def _judge_parameters(rule: RequiredGate, gate: Gate, config: Config) -> Finding:
    """Whether the measure of a gate, which is as strict as a rule asks, has the parameters that the
    rule means: a chance above 0.5 is another figure than one above 0.09."""
    for i, measure in enumerate(config.measures):
        if measure.type != rule.measure:
            continue
        where, own = f"evaluate.measures.{i}", registry.spec(measure)
        try:
            asked = registry.spec(registry.build("measure", {**own, **rule.parameters}))
        except ConfigError as error:
            text = "; ".join(problem.text for problem in error.problems)
            return "not kept", f"the rule's parameters are not valid: {text}", "policy"
        if wrong := [name for name in rule.parameters if own[name] != asked[name]]:
            return "not kept", f"{measure.type} has another {', '.join(wrong)}", where
        fields = type(measure).model_fields
        usual = {n: f.get_default(call_default_factory=True) for n, f in fields.items()}
        odd = [n for n, value in usual.items() if n not in rule.parameters and own[n] != value]
        if odd:
            names = ", ".join(odd)
            text = f"gate {gate.text}; the rule does not say which {names} {measure.type} must have"
            return "to confirm", text, where
        return "kept", f"gate {gate.text}", "gates"
    return "not kept", f"no measure has the figure {rule.figure}", "evaluate"


@_judge.register
def _(rule: Absence, evidence: Evidence) -> Finding:
    released = _find_released(rule, evidence)
    if rule.pseudonyms:
        released += [n for n, a in evidence.config.attributes.items() if a.pseudonym]
    if released:
        listed = ", ".join(dict.fromkeys(released))
        found = f"released by name or type: {listed}; drop them, or rename what is something else"
        return "not kept", found, f"attributes.{released[0]}"
    return _judge_kinds(rule, evidence)


def _judge_kinds(rule: Absence, evidence: Evidence) -> Finding:
    """What the texts of released columns tell of a rule whose names and types none of them has."""
    kinds = {
        name: kind
        for name, kind in (evidence.kinds or {}).items()
        if any(_is_about(rule, each, "") for each in KIND_NAMES[kind])
    }
    sure = [name for name, kind in kinds.items() if kind not in LOOSE_KINDS]
    wrong = [name for name in sure if not evidence.config.privacy.names_unique(name)]
    if wrong:
        listed = ", ".join(f"{name} ({kinds[name]})" for name in wrong)
        found = (
            f"released, by what their texts look like: {listed}; drop them, or name what is "
            "something else under privacy.acknowledge_unique"
        )
        return "not kept", found, f"attributes.{wrong[0]}"
    if kinds:
        listed = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        return "to confirm", f"released texts look like it, and may not be it: {listed}", ""
    looked = "" if evidence.kinds is None else ", and no text of one looks like what is known of it"
    return "to confirm", f"no released column has such a name or type{looked}; none may hold it", ""


@_judge.register
def _(rule: Coarseness, evidence: Evidence) -> Finding:
    config, doubts = evidence.config, []
    released = _find_released(rule, evidence)
    for name in released:
        state, found = judge_groups(rule, name, config.attributes[name], config.recode)
        if state == "not kept":
            return state, found, f"attributes.{name}"
        if state == "to confirm":
            doubts.append(f"{name}: {found}")
    if doubts:
        return "to confirm", "; ".join(doubts), ""
    if released:
        return "kept", f"in coarse groups: {', '.join(released)}", ""
    return "to confirm", "no released column has such a name or type; none may hold it", ""


#: The elements of a list have a name that nobody chose.
_ELEMENTS = re.compile(r"(list|list_view)<(item|element): ")
#: A part of a type, and a colon if it is the name of a field.
_PART = re.compile(r"([^<>,:]+)(:?)")
#: A letter that stands for `*` while a pattern is split into words.
_STAR = "\N{MASCULINE ORDINAL INDICATOR}"


def _is_in(pattern: str, words: Sequence[str]) -> bool:
    """Whether the words of a pattern follow each other in a name, or are written as one word.
    Patterns are split into words as names are."""
    wanted = [word.replace(_STAR, "*") for word in name_words(pattern.replace("*", _STAR))]
    starts = range(len(words) - len(wanted) + 1)
    follow = any(all(map(fnmatchcase, words[i:], wanted)) for i in starts)
    return follow or any(fnmatchcase(word, "".join(wanted)) for word in (*words, "".join(words)))


def _is_meant(pattern: str, meanings: Collection[str]) -> bool:
    """Whether a name that means these English words has all the words of a pattern."""
    wanted = name_words(pattern.replace("*", _STAR))
    shapes = [word.replace(_STAR, "*") for word in wanted]
    apart = all(any(fnmatchcase(word, shape) for word in meanings) for shape in shapes)
    return apart or any(fnmatchcase(word, "".join(shapes)) for word in meanings)


def _find_released(rule: OfColumns, evidence: Evidence) -> list[str]:
    """The released columns that a rule is about, by their own names and types or by those of what
    is nested in them."""
    hidden = (Role.DROP, Role.IDENTIFIER)
    return [
        name
        for name, attribute in evidence.config.attributes.items()
        if (attribute.role not in hidden or attribute.pseudonym)
        and _is_about(rule, name, evidence.types.get(name, ""))
    ]


def _is_about(rule: OfColumns, column: str, type: str) -> bool:
    """Whether a rule is about a column of a type, such as `struct<phone: string, seen: date>`."""
    parts = _PART.findall(_ELEMENTS.sub("list<", type))
    names = [column, *(part for part, colon in parts if colon)]
    for name in names:
        words, meanings = name_words(name), translate_name(name)
        if any(_is_in(each, words) or _is_meant(each, meanings) for each in rule.names):
            return True
    return any(part.strip().startswith(rule.types) for part, colon in parts if not colon)
