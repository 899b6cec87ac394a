"""Makes a config from the arguments of `anonlib.anonymize`, and guesses what they leave open."""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from anonlib.config.draft import ColumnProfile, guess_scale
from anonlib.config.model import Config
from anonlib.config.reading import parse
from anonlib.errors import InputError, did_you_mean
from anonlib.local.rows import name_type, to_plain_type
from anonlib.table.schema import Role

#: The call that an error shows, for who does not know what is needed.
EXAMPLE = (
    'for example anonlib.anonymize(table, quasi_identifiers=["age", "city"], '
    'sensitive=["illness"], k=10, l=2, one_row_per_person=True)'
)


@dataclass(frozen=True)
class Arguments:
    """The arguments of `anonlib.anonymize`, which explains them."""

    quasi_identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    insensitive: tuple[str, ...] = ()
    target: str | None = None
    k: int = 10
    l: int | None = None  # noqa: E741 (the name in the literature)
    unit: tuple[str, ...] = ()
    one_row_per_person: bool | str = False
    scales: Mapping[str, str] = field(default_factory=dict)
    hierarchies: Mapping[str, str | Path] = field(default_factory=dict)
    kernel: str | Mapping[str, Any] = "mdav"
    path: str | None = None
    sections: Mapping[str, Any] = field(default_factory=dict)

    @property
    def roles(self) -> dict[str, list[Role]]:
        """By column: the roles that the arguments give it."""
        roles: dict[str, list[Role]] = {}
        named = {
            Role.QUASI_IDENTIFIER: self.quasi_identifiers,
            Role.SENSITIVE: self.sensitive,
            Role.IDENTIFIER: self.identifiers,
            Role.INSENSITIVE: self.insensitive,
            Role.TARGET: () if self.target is None else (self.target,),
        }
        for role, names in named.items():
            for name in names:
                roles.setdefault(name, []).append(role)
        return roles

    def refuse_beside_config(self) -> None:
        """Raises InputError if arguments are given beside a whole config."""
        plain = Arguments()
        named = [f.name for f in fields(self) if getattr(self, f.name) != getattr(plain, f.name)]
        if named:
            raise InputError(
                f"{', '.join(named)}: give a config or arguments, not both; write these into "
                "the config"
            )


def config_from_arguments(table: pa.Table, arguments: Arguments) -> tuple[Config, tuple[str, ...]]:
    """Makes the config of a call.

    Args:
        table: The table, or a part of it.
        arguments: The arguments.

    Returns:
        The config, and notes on what was guessed.

    Raises:
        InputError: Arguments are missing, or name no column.
        ConfigError: What they say is no valid config.
    """
    _check(table, arguments)
    attributes: dict[str, dict[str, Any]] = {}
    guesses: dict[str, list[str]] = {}
    roles = {name: [Role.IDENTIFIER] for name in _persons(arguments)} | arguments.roles
    for name, (role,) in roles.items():
        attributes[name] = {"role": str(role)}
        if role is Role.QUASI_IDENTIFIER:
            attributes[name] |= _scale(table, name, arguments)
            if name not in arguments.scales:
                guesses.setdefault(attributes[name]["scale"], []).append(name)
        if name in arguments.hierarchies:
            attributes[name]["hierarchy"] = str(arguments.hierarchies[name])
    notes = [
        f"taken as {scale}: {', '.join(names)}; `scales` can say otherwise"
        for scale, names in guesses.items()
    ]
    left_out = [name for name in table.column_names if name not in attributes]
    attributes |= {name: {"role": "drop"} for name in left_out}
    if left_out:
        notes.append(f"not in the release, since no argument names them: {', '.join(left_out)}")
    if arguments.one_row_per_person is True:
        notes.append("each row counts as another person: declared, not checked")
    return parse(_sections(arguments, attributes)), tuple(notes)


def _persons(arguments: Arguments) -> list[str]:
    """The columns that identify persons. They are identifiers, unless another argument names
    them."""
    named = arguments.one_row_per_person
    return [*arguments.unit, *([named] if isinstance(named, str) else [])]


def _check(table: pa.Table, arguments: Arguments) -> None:
    """Raises InputError with all that is wrong with the arguments."""
    wrong = [*_find_problems(table, arguments)]
    if wrong:
        raise InputError("; ".join(wrong))


def _find_problems(table: pa.Table, arguments: Arguments) -> Iterator[str]:
    if not arguments.quasi_identifiers:
        yield f"quasi_identifiers: name the columns by which persons can be recognised, {EXAMPLE}"
    if not arguments.unit and not arguments.one_row_per_person:
        yield (
            "one_row_per_person: say that each row is another person (True, or the column that "
            'identifies a person), or name the columns that do, such as unit=["patient_id"]'
        )
    for name, roles in arguments.roles.items():
        if len(roles) > 1:
            yield f"column {name}: has {len(roles)} roles ({', '.join(roles)}); give it one"
    named = [*arguments.roles, *_persons(arguments), *arguments.scales, *arguments.hierarchies]
    for name in dict.fromkeys(named):
        if name not in table.column_names:
            yield f"column {name}: not in the table{did_you_mean(name, table.column_names)}"
    for name in arguments.scales:
        if name in table.column_names and name not in arguments.quasi_identifiers:
            yield f"scales: column {name} is no quasi-identifier: only these have a scale"


def _scale(table: pa.Table, name: str, arguments: Arguments) -> dict[str, Any]:
    """The scale of a column: what is named, or a guess; with the order of an ordered column."""
    column = table.column(name)
    ordered: dict[str, Any] = {}
    if pa.types.is_dictionary(column.type) and column.type.ordered and column.num_chunks:
        ordered = {"scale": "ordinal"}
        categories = column.chunk(0).dictionary
        if pa.types.is_string(categories.type) or pa.types.is_large_string(categories.type):
            ordered["order"] = categories.to_pylist()
    wanted = arguments.scales.get(name)
    if wanted not in (None, "ordinal"):
        return {"scale": wanted}
    if ordered or wanted:
        return ordered or {"scale": wanted}
    if name in arguments.hierarchies:
        return {"scale": "nominal"}
    values = to_plain_type(name, column)
    present = values.drop_null()
    n_distinct = 0 if pa.types.is_nested(values.type) else len(present.unique())
    profile = ColumnProfile(name, name_type(values.type), len(present), n_distinct)
    return {"scale": str(guess_scale(profile).scale)}


def _sections(arguments: Arguments, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of the config. What is given under `sections` goes before."""
    models: list[dict[str, Any]] = [{"type": "k_anonymity", "k": arguments.k}]
    if arguments.l is not None:
        models.append({"type": "l_diversity", "l": arguments.l})
        if arguments.target is not None:
            models.append({"type": "l_diversity", "l": arguments.l, "attribute": arguments.target})
    kernel = arguments.kernel
    persons: dict[str, Any] = {"unit": list(arguments.unit)} if arguments.unit else {}
    if arguments.one_row_per_person:
        persons["one_row_per_person"] = arguments.one_row_per_person
    known: dict[str, Any] = {
        "source": {"format": "dataframe"},
        "attributes": dict(attributes),
        **persons,
        "kernel": {"type": kernel} if isinstance(kernel, str) else dict(kernel),
        "release": {"path": arguments.path or "released"},
        # Who knows the seed can test guesses at how cells were made.
        "seed": secrets.randbits(31),
    }
    sections = {name: value for name, value in arguments.sections.items() if name != "privacy"}
    privacy = {"models": models, **arguments.sections.get("privacy", {})}
    return {**known, **sections, "privacy": privacy}
