"""What a release promises about its table, and whether a later release keeps that promise."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from anonlib import registry
from anonlib.config.model import Config, bind_models
from anonlib.config.paths import find_record_path
from anonlib.config.policies import Policy, make_policy_spec
from anonlib.config.resolve import find_orders, read_protected_hierarchies
from anonlib.config.summary import find_persons, label_plugin
from anonlib.errors import InputError
from anonlib.partition.controller import Controller
from anonlib.privacy import PrivacyModel, build_models
from anonlib.table.schema import Role, Schema

if TYPE_CHECKING:
    from anonlib.run.history import History
    from anonlib.spark.storage import Storage

#: How rows belong to persons, where the config only declares it.
DECLARED = "declaration"
#: The column of the controllers that each hold the models, if the record does not name it.
UNKNOWN = "a column that the record, of an earlier version of anonlib, does not name"


@dataclass(frozen=True)
class Promise:
    """What a release promises. Releases added to its table must keep it. It holds no values.

    Attributes:
        models: The privacy models of all rows, bound to their columns.
        controllers: By the digest of a controller's name: its additional models.
        columns: By name of a released column: its role, and its recoder with its parameters.
        persons: What identifies a person: a unit, a column, or a declaration.
        joint: Whether models also hold for who knows the other sensitive columns.
        tokens: Digests of the texts that mean a missing sensitive value.
        rules: By policy and id of its rules: a digest of what the rule asks for.
        exempt: The insensitive columns whose rare combinations are acknowledged.
        apart: The column whose data controllers each hold the models, and whether those that fail
            may merge; empty if the models are of all rows together.
        orders: By "order of column x" or "hierarchy of column x": a digest of each one that models
            measure by, or that released intervals are read by.
    """

    models: tuple[PrivacyModel, ...]
    controllers: Mapping[str, tuple[PrivacyModel, ...]]
    columns: Mapping[str, str]
    persons: str
    joint: bool
    tokens: tuple[str, ...]
    rules: Mapping[str, str] = field(default_factory=dict)
    exempt: tuple[str, ...] = ()
    apart: str = ""
    orders: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256, as hex text: the same for equal promises."""
        return _digest(json.dumps(self.to_dict(), sort_keys=True))

    def to_dict(self) -> dict[str, Any]:
        """For the private record, which calls controllers `owners`. What was added later is left
        out where it is empty."""
        return {
            "models": _specs(self.models),
            "owners": {name: _specs(models) for name, models in sorted(self.controllers.items())},
            "columns": dict(sorted(self.columns.items())),
            "persons": self.persons,
            "joint": self.joint,
            "missing_tokens": list(self.tokens),
            **({"rules": dict(sorted(self.rules.items()))} if self.rules else {}),
            **({"exempt": sorted(self.exempt)} if self.exempt else {}),
            **({"apart": self.apart} if self.apart else {}),
            **({"orders": dict(sorted(self.orders.items()))} if self.orders else {}),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Promise":
        """The inverse of `to_dict`. Raises InputError where the content is no promise."""
        try:
            return cls(
                models=build_models(content["models"]),
                controllers={
                    name: build_models(specs) for name, specs in content["owners"].items()
                },
                columns=content["columns"],
                persons=content["persons"],
                joint=content["joint"],
                tokens=tuple(content["missing_tokens"]),
                rules=dict(content.get("rules", {})),
                exempt=tuple(content.get("exempt", ())),
                apart=content.get("apart", ""),
                orders=dict(content.get("orders", {})),
            )
        except (KeyError, TypeError, AttributeError, ValueError):
            raise InputError("the promise in the record is damaged") from None

    def weaknesses(self, prior: "Promise") -> Iterator[str]:
        """What `prior` promises and this does not; nothing if this is at least as strong."""
        for model in prior.models:
            if not any(own.implies(model) for own in self.models):
                yield f"{label_plugin(model)} was promised, and no model of this config implies it"
        for controller, models in prior.controllers.items():
            mine = (*self.models, *self.controllers.get(controller, ()))
            if not all(any(own.implies(model) for own in mine) for model in models):
                yield "a data controller was promised models that no model of this config implies"
        for name in prior.columns.keys() | self.columns.keys():
            before, now = prior.columns.get(name), self.columns.get(name)
            if before != now:
                none = "not released"
                yield f"column {name} was {before or none}, and is {now or none} now"
        checked_now = prior.persons == DECLARED and self.persons.startswith("column ")
        if self.persons != prior.persons and not checked_now:
            yield f"persons were identified by {prior.persons}, now by {self.persons}"
        if prior.joint and not self.joint:
            yield "`privacy.joint: true` was promised"
        if lacking := len({*prior.tokens} - {*self.tokens}):
            yield f"`privacy.missing_tokens` lacks {lacking} texts that meant a missing value"
        for name in {*self.exempt} - {*prior.exempt}:
            yield (
                f"combinations with column {name} were promised not to be rare, and "
                "`privacy.acknowledge_unique` accepts them"
            )
        for name, rule in prior.rules.items():
            if self.rules.get(name) != rule:
                yield f"{name} was promised, and this config's policy has no such rule"
        if prior.apart and prior.apart not in (self.apart, f"merged {self.apart}"):
            before, now = _say_apart(prior.apart), _say_apart(self.apart)
            yield f"models were promised for {before}, and are for {now} now"
        yield from self._find_other_orders(prior)

    def complete(self, other: "Promise") -> "Promise":
        """This promise, with what `other` says where an earlier version's record is silent."""
        apart = other.apart if self.apart == UNKNOWN else self.apart
        return replace(self, apart=apart, orders={**other.orders, **self.orders})

    def _find_other_orders(self, prior: "Promise") -> Iterator[str]:
        """The orders and hierarchies of `prior` that are others in this promise."""
        models = [*prior.models, *(m for own in prior.controllers.values() for m in own)]
        used = {f"order of column {model.column}" for model in models if model.by_order}
        used |= {f"hierarchy of column {model.column}" for model in models if model.by_hierarchy}
        ranked = Role.QUASI_IDENTIFIER.value
        used |= {f"order of column {n}" for n, how in prior.columns.items() if ranked in how}
        for name in prior.orders.keys() | (self.orders.keys() & used):
            if name not in prior.orders:
                yield f"the {name} is not in the record, which is of an earlier version of anonlib"
            elif prior.orders[name] != self.orders.get(name):
                yield f"the {name} was another one"


class TablePromise(NamedTuple):
    """What is known of a table's promise.

    Attributes:
        digest: Its digest, from the public manifest.
        promise: The promise, from the private record; None without that record.
        is_apart: Whether each data controller holds the models, as the manifest says.
    """

    digest: str
    promise: Promise | None
    is_apart: bool

    def is_same(self, promise: Promise) -> bool:
        """Whether a promise is this one. The digests of earlier versions lack `apart`."""
        return promise.digest == self.digest and bool(promise.apart) == self.is_apart


def find_promise(history: "History", records: "Storage") -> TablePromise:
    """The promise of a table's newest release.

    Args:
        history: That of the table.
        records: The folder of the private records.

    Raises:
        InputError: The manifest has no promise, or not the same one as the record.
    """
    try:
        content = json.loads(history.newest_manifest())
        digest, run_id = str(content["promise_sha256"]), str(content["run_id"])
        is_apart = Controller.type in content["partition"]["steps"]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"release.path: the manifest of {history.path} does not say what the table promises; "
            "publish all rows anew"
        ) from None
    path = find_record_path(records.root, run_id)
    if not records.exists(path):
        return TablePromise(digest, None, is_apart)
    try:
        promise = Promise.from_dict(json.loads(records.read(path))["promise"])
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"release.record: {path} is damaged; restore it from a copy, or publish all rows anew"
        ) from None
    if promise.digest != digest:
        raise InputError(
            f"release.record: the promise in {path} is not that in the manifest of {history.path}: "
            "one of them was changed, or belongs to another table"
        )
    if is_apart and not promise.apart:
        promise = replace(promise, apart=UNKNOWN)
    return TablePromise(digest, promise, is_apart)


def require_kept(promise: Promise, history: "History", records: "Storage") -> None:
    """Raises InputError unless a promise is at least as strong as the table's."""
    known = find_promise(history, records)
    if known.is_same(promise):
        return
    if known.promise is None:
        raise InputError(
            f"release.path: {history.path} was released with other models, roles, columns, orders, "
            f"controllers or persons, and its private record is not in {records.root}, so it is "
            "unknown which promise is stronger; append with the same ones, or put the record there"
        )
    if lacking := sorted(promise.weaknesses(known.promise)):
        raise InputError(
            f"release.path: the table at {history.path} promises more than this config: "
            f"{'; '.join(lacking)}; a batch may only strengthen it: change the config, or publish "
            "all rows anew (`mode: overwrite`)"
        )


def describe_change(promise: Promise, history: "History", records: "Storage") -> Iterator[str]:
    """Notes on a promise that replaces a table's and is weaker; nothing if it is as strong."""
    try:
        known = find_promise(history, records)
    except InputError:
        yield "what the replaced table promised is unknown"
        return
    if known.promise is not None:
        lacking = sorted(promise.weaknesses(known.promise.complete(promise)))
        yield from (f"the replaced table promised more: {text}" for text in lacking)
    elif not known.is_same(promise):
        yield "the replaced table promised something else; its private record was not found"


def make_promise(config: Config, schema: Schema) -> Promise:
    """The promise of a run."""
    controller = config.partition.controller
    own = {} if controller is None else controller.models
    columns = {}
    for column in schema.released:
        how = "pseudonym" if column.pseudonym else ""
        how = how if column.recoder is None else label_plugin(column.recoder)
        columns[column.name] = f"{column.role} {how}".rstrip()
    return Promise(
        models=config.bound_models,
        controllers={
            _digest(name): bind_models(models, config.attributes) for name, models in own.items()
        },
        columns=columns,
        persons=_persons(config),
        joint=config.privacy.joint,
        tokens=tuple(sorted(map(_digest, config.privacy.missing_tokens))),
        rules={} if config.policy is None else _digest_rules(config.policy),
        exempt=tuple(
            name
            for name, attribute in config.attributes.items()
            if attribute.role is Role.INSENSITIVE and config.privacy.acknowledges_unique(name)
        ),
        apart="" if controller is None else _name_controllers(controller),
        orders=_digest_orders(config, schema),
    )


def _name_controllers(step: Controller) -> str:
    """`Promise.apart` of a config. The name of the column comes last, since it may be any text."""
    return f"merged column {step.column}" if step.merge else f"column {step.column}"


def _say_apart(apart: str) -> str:
    """`Promise.apart` in words: whose rows hold the models."""
    if not apart:
        return "all rows together"
    column = apart.removeprefix("merged ")
    merged = "" if column == apart else " (merged where they fail)"
    return f"each controller of {column}{merged}"


def _digest_orders(config: Config, schema: Schema) -> dict[str, str]:
    """`Promise.orders` of a config."""
    models, attributes = config.all_models, config.attributes
    orders = {name: [*order] for name, order in find_orders(models, attributes).items()}
    orders |= {
        column.name: [*column.order]
        for column in schema.quasi_identifiers
        # A released median means the same by any order; an interval does not.
        if column.order and column.recoder is not None and column.recoder.releases == "interval"
    }
    trees = {
        name: [[*tree.names], tree.tree.parent.tolist()]
        for name, tree in read_protected_hierarchies(models, attributes).items()
    }
    return {
        f"{kind} of column {name}": _digest(json.dumps(each))
        for kind, found in (("order", orders), ("hierarchy", trees))
        for name, each in found.items()
    }


def _digest_rules(policy: Policy) -> dict[str, str]:
    """By rule: a digest of all but its words."""
    digests = {}
    for rule in make_policy_spec(policy)["rules"]:
        asked = {key: value for key, value in rule.items() if key not in ("says", "source")}
        text = json.dumps(asked, sort_keys=True)
        digests[f"rule {rule['id']} of policy {policy.name}"] = _digest(text)
    return digests


def _persons(config: Config) -> str:
    kind, columns = find_persons(config)
    folded = ", case folded" if config.person.fold_case else ""
    if kind == "unit":
        return f"unit {', '.join(sorted(columns))}{folded}"
    if kind == "checked":
        return f"column {', '.join(columns)}{folded}"
    return DECLARED


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _specs(models: tuple[PrivacyModel, ...]) -> list[dict[str, Any]]:
    specs = Counter(json.dumps(registry.spec(model), sort_keys=True) for model in models)
    return [json.loads(text) for text in sorted(specs)]
