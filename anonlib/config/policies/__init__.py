"""Policies: what a law, a regulator or a guide asks of a release, as rules. Configs may name the
files beside this one; a file of one's own has the same form."""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from importlib import resources
from math import ceil
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from anonlib import registry
from anonlib.config.yaml import read_yaml
from anonlib.errors import ConfigError, Problem, did_you_mean, problems_of
from anonlib.privacy import PrivacyModel

#: Who gets a release: anybody, who signed a contract, who comes to an enclave, the organization.
Access = Literal["public", "contract", "enclave", "internal"]

#: Types of columns that rules name, by how Arrow's and Spark's types begin.
ColumnType = Literal["binary", "date", "timestamp"]


def exact(value: object) -> Fraction:
    """A number as it is written in decimals: 0.09 is 9/100. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a number is needed")
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise ValueError("must be a number such as 0.09 or 1/11") from None


def _check_number(value: object) -> str:
    exact(value)
    return str(value)


#: A number as text, so that no binary fraction comes between.
Number = Annotated[str, BeforeValidator(_check_number)]


class Rule(BaseModel):
    """A rule of a policy. Each kind of rule has a class."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[str]

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="a short name")
    type: str = Field(description="the kind of rule")
    says: str = Field(min_length=1, max_length=500, description="the rule, in a sentence")
    source: str = Field(min_length=1, max_length=300, description="where the rule is from")
    access: tuple[Access, ...] = Field(
        default=(),
        description="only where `context.access` is one of these, or not given; else always",
    )


class ClassSize(Rule):
    """Every class has at least some persons. The audit's count is judged, too."""

    kind: ClassVar[str] = "class_size"
    at_least: int | None = Field(None, ge=2, description="the fewest persons of a class")
    risk_at_most: Number | None = Field(
        None, description="the largest chance, 1 / persons of the class, to be found"
    )

    @model_validator(mode="after")
    def _is_bound(self) -> "ClassSize":
        if (self.at_least is None) == (self.risk_at_most is None):
            raise ValueError("give exactly one of at_least and risk_at_most")
        if self.risk_at_most is not None and not 0 < exact(self.risk_at_most) <= Fraction(1, 2):
            raise ValueError("risk_at_most must be above 0, and at most 1/2")
        return self

    @property
    def least(self) -> int:
        """The fewest persons: 1/12 is at most 0.09, and 1/11 is not."""
        if self.risk_at_most is None:
            return self.at_least or 0
        return ceil(1 / exact(self.risk_at_most))


def _model(value: object) -> object:
    """A privacy model from its spec, unbound."""
    if not isinstance(value, Mapping) or not isinstance(value.get("type"), str):
        return value
    try:
        return registry.build("privacy model", value)
    except ConfigError as error:
        raise ValueError("; ".join(problem.text for problem in error.problems)) from None


class RequiredModel(Rule):
    """Every sensitive column has one of some privacy models, or one that implies it."""

    kind: ClassVar[str] = "model"
    any_of: tuple[Annotated[PrivacyModel, BeforeValidator(_model)], ...] = Field(
        min_length=1, description="privacy models as in a config, without `attribute`"
    )


def describe_bounds(at_least: str | None, at_most: str | None) -> str:
    """Bounds as `at least 1 and at most 2`; empty without any."""
    bounds = [("at least", at_least), ("at most", at_most)]
    return " and ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)


class RequiredSetting(Rule):
    """A field of the config is given, is one of some values, or is within bounds."""

    kind: ClassVar[str] = "setting"
    field: str = Field(description="the field, such as privacy.suppression_limit")
    at_most: Number | None = Field(None, description="the largest number")
    at_least: Number | None = Field(None, description="the smallest number")
    one_of: tuple[str | bool, ...] = Field((), description="the values that are allowed")

    @model_validator(mode="after")
    def _asks_one_thing(self) -> "RequiredSetting":
        if self.one_of and (self.at_most is not None or self.at_least is not None):
            raise ValueError("give either one_of, or at_least and at_most")
        return self

    @property
    def asks(self) -> str:
        """What is asked of the field, in words."""
        if self.one_of:
            return f"must be {' or '.join(str(each).lower() for each in self.one_of)}"
        return f"must be {describe_bounds(self.at_least, self.at_most) or 'given'}"


class RequiredGate(Rule):
    """The config has a gate on a figure that is as strict as this one, of a measure with the same
    parameters. Where the measure has unusual ones that the rule does not name, a person has to
    confirm that its figure is the one that is meant."""

    kind: ClassVar[str] = "gate"
    figure: str = Field(description="MEASURE.FIGURE")
    of: str | None = Field(None, description="column, model or estimator of the figure")
    at_most: Number | None = Field(None, description="the largest value that passes")
    at_least: Number | None = Field(None, description="the smallest value that passes")
    parameters: Mapping[str, Any] = Field(
        {}, description="parameters that the measure must have, such as threshold: 0.09"
    )

    @property
    def measure(self) -> str:
        """The type of the measure."""
        return self.figure.partition(".")[0]

    @model_validator(mode="after")
    def _has_bound(self) -> "RequiredGate":
        if self.at_most is None and self.at_least is None:
            raise ValueError("give at_most, at_least or both")
        measures = registry.plugins("measure")
        cls = measures.get(self.measure)
        if cls is None and self.parameters:
            near = did_you_mean(self.measure, measures)
            text = f"unknown measure {self.measure!r}{near or ';'} there are: {', '.join(measures)}"
            raise ValueError(text)
        known = {} if cls is None else cls.model_fields
        for name in self.parameters:
            if name not in known:
                text = f"{self.measure} has no parameter {name}; there are: "
                raise ValueError(f"{text}{', '.join(known) or 'none'}")
        return self


class OfColumns(Rule):
    """A rule on the columns of some names or types."""

    names: tuple[str, ...] = Field(
        (),
        description="words of names: `birth date` is in date_of_birth_date and BirthDate; * stands "
        "for any letters",
    )
    types: tuple[ColumnType, ...] = Field((), description="types of columns")

    @model_validator(mode="after")
    def _names_columns(self) -> "OfColumns":
        if not self.names and not self.types:
            raise ValueError("give names, types or both")
        if not all(any(map(str.isalnum, name)) for name in self.names):
            raise ValueError("each of names needs a letter or a digit")
        return self


class Absence(OfColumns):
    """No such column is released. Names prove nothing: that no other column holds the same is for a
    person to confirm."""

    kind: ClassVar[str] = "absent"
    pseudonyms: bool = Field(False, description="nor any pseudonym of an identifier")


class Coarseness(OfColumns):
    """Such columns are released in coarse groups only, or not at all."""

    kind: ClassVar[str] = "coarse"
    characters: int | None = Field(None, ge=1, description="the first characters of a code")
    period: Literal["year"] | None = Field(None, description="dates: years, or longer periods")
    top: Number | None = Field(None, description="numbers from here on are one group")

    @model_validator(mode="after")
    def _is_one(self) -> "Coarseness":
        if sum(each is not None for each in (self.characters, self.period, self.top)) != 1:
            raise ValueError("give exactly one of characters, period and top")
        return self


class Confirmation(Rule):
    """What no config can show: a person has to confirm it."""

    kind: ClassVar[str] = "confirm"


#: By type: the kinds of rules.
KINDS: Mapping[str, type[Rule]] = {
    cls.kind: cls
    for cls in (
        ClassSize,
        RequiredModel,
        RequiredSetting,
        RequiredGate,
        Absence,
        Coarseness,
        Confirmation,
    )
}


class Policy(BaseModel):
    """A policy: its rules, each with its source and a sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$", description="a short name")
    title: str = Field(min_length=1, max_length=200, description="what the policy is from")
    rules: tuple[Rule, ...] = Field(min_length=1, description="the rules")

    @model_validator(mode="after")
    def _names_rules_once(self) -> "Policy":
        ids = [rule.id for rule in self.rules]
        if len(set(ids)) < len(ids):
            raise ValueError("two rules have one id; rename one")
        return self


def build_policy(raw: object, where: str, problems: list[Problem]) -> Policy | None:
    """Makes a policy from a mapping.

    Args:
        raw: The mapping, as read from YAML.
        where: Its place in the config.
        problems: All problems are added here. Then there is no policy.
    """
    if isinstance(raw, Policy):
        return raw
    if not isinstance(raw, Mapping):
        problems.append(Problem(where, "a mapping with name, title and rules is needed"))
        return None
    given = raw.get("rules")
    specs = given if isinstance(given, list) else []
    found: list[Problem] = []
    rules = [_build_rule(spec, f"{where}.rules.{i}", found) for i, spec in enumerate(specs)]
    whole = {**raw, "rules": rules if isinstance(given, list) else given}
    if found:  # the rest is checked as if there were a rule
        stand_in = Confirmation(id="any", type="confirm", says="any", source="any")
        whole["rules"] = [stand_in]
    try:
        policy = Policy.model_validate(whole)
    except ValidationError as error:
        found += problems_of(error, Policy, where)
    if not found and policy.name in list_policies() and policy != _read_own(policy.name):
        text = "is the name of a policy that comes with anonlib, whose rules are others; choose one"
        found.append(Problem(f"{where}.name", f"{policy.name} {text}"))
    problems += found
    return None if found else policy


@cache
def _read_own(name: str) -> Policy:
    """A policy that comes with anonlib."""
    raw = read_yaml(list_policies()[name])
    rules = [KINDS[spec["type"]].model_validate(spec) for spec in raw["rules"]]
    return Policy.model_validate({**raw, "rules": rules})


def _build_rule(spec: object, where: str, problems: list[Problem]) -> Rule | None:
    kind = spec.get("type") if isinstance(spec, Mapping) else None
    cls = KINDS.get(kind) if isinstance(kind, str) else None
    if not isinstance(spec, Mapping) or cls is None:
        near = did_you_mean(kind, KINDS) if isinstance(kind, str) else ""
        text = f"name the kind of rule by `type`{near or ';'} there are: {', '.join(KINDS)}"
        problems.append(Problem(f"{where}.type", text))
        return None
    try:
        return cls.model_validate(spec)
    except ValidationError as error:
        problems += problems_of(error, cls, where)
        return None


@cache
def list_policies() -> Mapping[str, str]:
    """By name: the text of each policy that comes with anonlib."""
    files = resources.files(__name__).iterdir()
    found = {f.name.removesuffix(".yaml"): f for f in files if f.name.endswith(".yaml")}
    return {name: found[name].read_text("utf-8") for name in sorted(found)}


def make_policy_spec(policy: Policy) -> dict[str, Any]:
    """A policy as its file has it, without fields that are left out."""
    rules = []
    for rule in policy.rules:
        fields: dict[str, Any] = {
            name: value
            for name, value in rule
            if value != type(rule).model_fields[name].get_default()
        }
        if isinstance(rule, RequiredModel):
            fields["any_of"] = [_plain_model(model) for model in rule.any_of]
        rules.append({n: list(v) if isinstance(v, tuple) else v for n, v in fields.items()})
    return {"name": policy.name, "title": policy.title, "rules": rules}


def _plain_model(model: PrivacyModel) -> dict[str, Any]:
    return {n: value for n, value in registry.spec(model).items() if value is not None}
