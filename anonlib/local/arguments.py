"""Makes a config from the arguments of `anonlib.anonymize`, and guesses what they leave open."""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from inspect import isclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.config.model import Config, PrivacySection, Section
from anonlib.config.reading import GivenConfig, as_config, build_config, copy_tree
from anonlib.config.unused import UNUSED_PATH
from anonlib.errors import (
    ConfigError,
    InputError,
    Problem,
    ProblemsError,
    did_you_mean,
)
from anonlib.guesses.guess import ColumnProfile, guess_scale
from anonlib.guesses.sketch import MOST_ROWS
from anonlib.local.advice import (
    advise,
    advise_protected,
    advise_unchanged,
    ask_of_persons,
    list_missing,
)
from anonlib.local.column_facts import find_facts, make_profile
from anonlib.table.plain_types import to_plain_type
from anonlib.table.schema import Role, is_atomic
from anonlib.text import MISSING_TOKENS

#: The call that an error shows, for who does not know what is needed.
EXAMPLE = (
    'for example anonlib.anonymize(table, quasi_identifiers=["age", "city"], '
    'sensitive=["illness"], k=10, l=2, one_row_per_person=True)'
)
#: The k of a call that names none.
USUAL_K = 10
#: The source of a table in hand.
IN_HAND = {"format": "dataframe"}
#: Sections of a config that arguments stand for.
ARGUED = ("source", "attributes", "unit", "one_row_per_person", "kernel", "release")


@dataclass(frozen=True)
class Arguments:
    """The arguments of `anonlib.anonymize`, which explains them."""

    quasi_identifiers: Sequence[str] | None = None
    sensitive: Sequence[str] | None = None
    identifiers: Sequence[str] | None = None
    insensitive: Sequence[str] | None = None
    target: str | None = None
    target_is_public: bool = False
    k: int | None = None
    l: int | None = None  # noqa: E741 (the name in the literature)
    unit: Sequence[str] | None = None
    one_row_per_person: bool | str | None = None
    scales: Mapping[str, str] | None = None
    hierarchies: Mapping[str, str | Path] | None = None
    kernel: str | Mapping[str, Any] | None = None
    path: str | Path | None = None
    sections: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (kind, _) in KINDS.items():
            if kind is list:
                object.__setattr__(self, name, _list_names(getattr(self, name)))

    @property
    def roles(self) -> dict[str, list[Role]]:
        """By column: the roles that the arguments give it."""
        roles: dict[str, list[Role]] = {}
        named = {
            Role.QUASI_IDENTIFIER: self.quasi_identifiers,
            Role.SENSITIVE: self.sensitive,
            Role.IDENTIFIER: self.identifiers,
            Role.INSENSITIVE: self.insensitive,
            Role.TARGET: None if self.target is None else [self.target],
        }
        for role, names in named.items():
            for name in names or ():
                roles.setdefault(name, []).append(role)
        return roles

    @property
    def persons(self) -> list[str]:
        """The columns that identify persons. They are identifiers, unless another argument names
        them."""
        named = self.one_row_per_person
        return [*(self.unit or ()), *([named] if isinstance(named, str) else [])]

    @property
    def names(self) -> set[str]:
        """The columns that are read."""
        return {*self.roles, *self.persons}

    def refuse_beside_config(self) -> None:
        """Raises InputError if arguments are given beside a whole config."""
        plain = Arguments()
        named = [f.name for f in fields(self) if getattr(self, f.name) != getattr(plain, f.name)]
        if named:
            raise InputError(
                f"{', '.join(named)}: give a config or arguments, not both; write these into the "
                "config"
            )

    def require_kinds(self) -> None:
        """Raises InputError with all arguments that are of a wrong kind, and what is wrong with the
        settings of the others."""
        wrong = [*self._find_kinds()]
        if wrong:
            names = {name for name, _ in wrong}
            sections = {n: value for n, value in self.sections.items() if n not in names}
            plain: dict[str, Any] = dict.fromkeys(names - {"privacy"})
            others = find_in_settings(replace(self, **plain, sections=sections))
            raise InputError("; ".join([*(f"{name}: {text}" for name, text in wrong), *others]))

    def _find_kinds(self) -> Iterator[tuple[str, str]]:
        """The arguments that are of a wrong kind, and which they must be."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given["privacy"] = self.sections.get("privacy")
        for name, (kind, words) in KINDS.items():
            value = given[name]
            if value is None:
                continue
            if not isinstance(value, kind):
                yield name, f"must be {words}"
            elif kind is list and not all(isinstance(each, str) for each in value):
                yield name, "the names of columns must be text; rename the others"
        files = given["hierarchies"] if isinstance(given["hierarchies"], Mapping) else {}
        if not all(isinstance(path, str | Path) for path in files.values()):
            yield "hierarchies", "give the path of a file for each column"


_NAMES = (list, "a list of names of columns")
_BY_COLUMN = (Mapping, "a mapping by column")
#: By argument: its kind, and the same in words. Whether a number is one that counts persons, the
#: config says.
KINDS: dict[str, tuple[Any, str]] = {
    "quasi_identifiers": _NAMES,
    "sensitive": _NAMES,
    "identifiers": _NAMES,
    "insensitive": _NAMES,
    "target": (str, "the name of a column"),
    "target_is_public": (bool, "True or False"),
    "k": (object, "a number"),
    "l": (object, "a number"),
    "unit": _NAMES,
    "one_row_per_person": (bool | str, "True, or the name of a column"),
    "scales": _BY_COLUMN,
    "hierarchies": _BY_COLUMN,
    "privacy": (Mapping, "a mapping of fields"),
    "kernel": (str | Mapping, "the name of a kernel, or a mapping with its `type`"),
    "path": (str | Path, "the path of a folder"),
    "sections": (Mapping, "a mapping of sections"),
}


#: A list of columns of the section privacy, as a text has it.
_LISTED = re.compile(r"`(acknowledge_unique): \[([^\]]*)\]`")
#: Fields of the config -> the arguments that stand for them. The first match counts.
_NAMED = (
    (r"attributes\.(.+)\.(scale|order)", r"scales (column \1)"),
    (r"attributes\.(.+)\.hierarchy", r"hierarchies (column \1)"),
    (r"attributes\.(.+)\.public", r"target_is_public"),
    (r"attributes\.(.+)", r"column \1"),
    (r"attributes", "quasi_identifiers"),
    (r"unit\.\d+", "unit"),
    (r"release\.path", "path"),
)


@contextmanager
def name_arguments(arguments: Arguments) -> Iterator[None]:
    """Lets problems of the config that arguments have made speak of the arguments."""
    try:
        yield
    except ProblemsError as error:
        raise type(error)(_rename(error.problems, arguments)) from None


def _rename(problems: Sequence[Problem], arguments: Arguments) -> list[Problem]:
    models = "models" in (arguments.sections.get("privacy") or {})
    # Columns that no argument names are left out.
    texts = [p.text.replace("give it `role: drop`", "leave it out") for p in problems]
    texts = [t.replace("give it `role: identifier`", "name it in `identifiers`") for t in texts]
    if not models:
        texts = [text.replace("by a model such as l_diversity", "by `l=2`") for text in texts]
    texts = [_LISTED.sub(_spell_list, text) for text in texts]
    places = [_name_argument(p.where, models=models) for p in problems]
    return [*map(Problem, places, texts)]


def _spell_list(match: re.Match[str]) -> str:
    """A list of columns in the section privacy, as the argument for it."""
    names = ", ".join(f'"{name}"' for name in match[2].split(", "))
    return f'`privacy={{"{match[1]}": [{names}]}}`'


def _name_argument(where: str, *, models: bool) -> str:
    """The argument for a field of the config. models: Whether the models are an argument."""
    if not models and (found := re.match(r"privacy\.models\.(0|k_anonymity)?", where)):
        return "k" if found[1] else "l"
    for pattern, name in _NAMED:
        if found := re.fullmatch(pattern, where):
            return found.expand(name)
    return where


def _list_names(names: Any) -> Any:
    """Names of columns as a list, if they are a list of another kind: a tuple, an index of pandas,
    an array of one dimension, or a set, which is sorted, since its own order is not that of the
    next process. Anything else as it is."""
    if isinstance(names, set | frozenset):
        return sorted(names, key=str)
    if getattr(names, "ndim", None) == 1 and hasattr(names, "tolist"):
        return names.tolist()
    return [*names] if isinstance(names, Sequence) and not isinstance(names, str) else names


def config_from_arguments(
    table: pa.Table,
    names: Sequence[str],
    arguments: Arguments,
    profile_table: Callable[[Sequence[str]], Mapping[str, ColumnProfile]] | None = None,
) -> tuple[Config, tuple[str, ...]]:
    """Makes the config of a call. Nothing in it is read from the environment: names of columns and
    categories may look like variables.

    Args:
        table: The columns that the arguments name; of a table in Spark without its rows.
        names: All columns of the table.
        arguments: The arguments.
        profile_table: Looks at columns of a table in Spark.

    Returns:
        The config, and notes on what was guessed.

    Raises:
        InputError: Arguments are missing, contradict each other, or name no column. The error has
            what is wrong with the settings, too.
        ConfigError: What they say is no valid config.
    """
    wrong = [*_find_problems(table, names, arguments)]
    if wrong:
        raise InputError("; ".join([*wrong, *find_in_settings(arguments)]))
    attributes: dict[str, dict[str, Any]] = {}
    guesses: dict[str, list[str]] = {}
    profiles: dict[Role, list[ColumnProfile]] = {}
    roles = {name: [Role.IDENTIFIER] for name in arguments.persons} | arguments.roles
    scales, hierarchies = arguments.scales or {}, arguments.hierarchies or {}
    declared = arguments.one_row_per_person is True and not arguments.unit
    seen = [n for n, (role,) in roles.items() if _is_looked_at(role, table.column(n), declared)]
    profile_of = profile_table(seen) if profile_table else _profile_columns(table, seen)
    for name, (role,) in roles.items():
        attributes[name] = {"role": str(role)}
        if name in profile_of:
            profiles.setdefault(role, []).append(profile_of[name])
        if role is Role.QUASI_IDENTIFIER:
            column = table.column(name)
            attributes[name] |= _guess_scale(column, profile_of[name], scales, hierarchies)
            if name not in scales:
                guesses.setdefault(attributes[name]["scale"], []).append(name)
        if name in hierarchies:
            attributes[name]["hierarchy"] = str(hierarchies[name])
        if role is Role.TARGET and arguments.target_is_public:
            attributes[name]["public"] = True
    notes = [
        f"taken as {scale}: {', '.join(guessed)}; `scales` can say otherwise"
        for scale, guessed in guesses.items()
    ]
    left_out = [name for name in names if name not in attributes]
    attributes |= {name: {"role": "drop"} for name in left_out}
    notes += [*_note_left_out(left_out), *_note_unused(arguments)]
    problems: list[Problem] = []
    sections = _list_sections(arguments, attributes, list_missing(_list_protected(profiles)))
    tree = copy_tree(sections, "", problems)
    config = build_config(tree, None, problems)
    hidden = profiles.pop(Role.IDENTIFIER, [])
    if declared:
        columns = {} if profile_table else _code_columns(table, seen)
        notes += ask_of_persons(_list_askable(profiles, hidden), columns)
    return config, (*notes, *_advise(profiles, config.privacy))


def _is_looked_at(role: Role, column: pa.ChunkedArray, declared: bool) -> bool:
    """Whether notes are on a column: one that is released; where rows are declared to be persons,
    also an identifier that may stand for some of them."""
    if role is not Role.IDENTIFIER:
        return True
    is_whole = pa.types.is_integer(column.type) and column.type != pa.uint64()  # Spark has none
    return declared and (is_whole or _is_text(column))


def _list_askable(
    released: Mapping[Role, Sequence[ColumnProfile]], identifiers: Sequence[ColumnProfile]
) -> list[ColumnProfile]:
    """The columns that may stand for persons. Of identifiers that are taken for them, the content
    gate tells."""
    others = [p for p in identifiers if not replace(p, kind=None).may_stand_for_persons]
    return [*(profile for those in released.values() for profile in those), *others]


def _profile_columns(table: pa.Table, names: Iterable[str]) -> dict[str, ColumnProfile]:
    """By name: the profiles of columns in memory."""
    columns = {name: to_plain_type(name, table.column(name)) for name in names}
    return {n: make_profile(n, each.type, find_facts(each)) for n, each in columns.items()}


def _code_columns(table: pa.Table, names: Iterable[str]) -> dict[str, Ints]:
    """By name: int64[n]. A number for each value of a column, of the first rows."""
    columns = {}
    for name in names:
        values = to_plain_type(name, table.column(name).slice(0, MOST_ROWS))
        if is_atomic(values.type):
            codes = values.dictionary_encode().indices.fill_null(-1)
            columns[name] = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return columns


def _note_left_out(names: Sequence[str]) -> Iterator[str]:
    """Columns that no argument names."""
    if names:
        yield f"not in the release, since no argument names them: {', '.join(names)}"


def _note_unused(arguments: Arguments) -> Iterator[str]:
    """Arguments that change nothing."""
    roles = {*arguments.roles, *arguments.persons}
    for name in arguments.hierarchies or {}:
        if name not in roles:
            yield f"hierarchies: changes nothing for column {name}, which no argument gives a role"
    if arguments.target_is_public and arguments.target is None:
        yield "target_is_public: changes nothing, since there is no target"


def _advise(
    profiles: Mapping[Role, Sequence[ColumnProfile]], privacy: PrivacySection
) -> Iterator[str]:
    """Notes on the released columns, by role."""
    unchanged = [
        profile
        for role, those in profiles.items()
        for profile in those
        if role is not Role.QUASI_IDENTIFIER and not privacy.names_unique(profile.name)
    ]
    yield from advise(profiles.get(Role.QUASI_IDENTIFIER, ()))
    yield from advise_unchanged(unchanged)
    yield from advise_protected(_list_protected(profiles), privacy.missing_tokens)


def _list_protected(profiles: Mapping[Role, Sequence[ColumnProfile]]) -> list[ColumnProfile]:
    """The columns that models may protect."""
    return [*profiles.get(Role.SENSITIVE, ()), *profiles.get(Role.TARGET, ())]


def _find_problems(table: pa.Table, names: Sequence[str], arguments: Arguments) -> Iterator[str]:
    if not arguments.quasi_identifiers:
        yield f"quasi_identifiers: name the columns by which persons can be recognised, {EXAMPLE}"
    if not arguments.unit and not arguments.one_row_per_person:
        yield (
            "one_row_per_person: say that each row is another person (True, or the column that "
            'identifies a person), or name the columns that do, such as unit=["patient_id"]'
        )
    for name, roles in arguments.roles.items():
        different = [*dict.fromkeys(roles)]
        if len(different) > 1:
            yield f"column {name}: has {len(different)} roles ({', '.join(different)}); give it one"
        elif len(roles) > 1:
            yield f"column {name}: is named {len(roles)} times as {roles[0]}; name it once"
    scales = arguments.scales or {}
    named = [*arguments.roles, *arguments.persons, *scales, *(arguments.hierarchies or {})]
    for name in dict.fromkeys(named):
        if name not in names:
            yield f"column {name}: not in the table{did_you_mean(name, names)}"
    for name, scale in scales.items():
        if name in names and name not in (arguments.quasi_identifiers or ()):
            yield f"scales: column {name} is no quasi-identifier: only these have a scale"
        elif name in names and _is_text(table.column(name)):
            yield from _check_text_scale(name, table.column(name), scale)
    secret = None if arguments.target_is_public else arguments.target
    if arguments.l is not None and not (arguments.sensitive or secret):
        yield "l: no column needs it: name a sensitive column, or a target that is not public"
    modelled = arguments.l is not None or "models" in (arguments.sections.get("privacy") or {})
    if arguments.target is not None and not modelled and not arguments.target_is_public:
        yield "target: it is published; protect it with l, or accept that: target_is_public=True"
    yield from _find_contradictions(arguments)


def _check_text_scale(name: str, column: pa.ChunkedArray, scale: str) -> Iterator[str]:
    ordered = pa.types.is_dictionary(column.type) and column.type.ordered
    if scale == "ordinal" and not ordered:
        yield (
            f"scales: column {name} is text, whose order is not known; make it an ordered "
            "category (in pandas `pd.Categorical(..., categories=[...], ordered=True)`, in polars "
            "`pl.Enum([...])`)"
        )
    elif scale == "continuous":
        yield (
            f"scales: column {name} is text, which is not continuous; if these are numbers or "
            "dates, convert it (in pandas `pd.to_numeric`, `pd.to_datetime`, in polars "
            "`.cast(pl.Float64)`, `.str.to_date()`); else choose another scale"
        )


def _find_contradictions(arguments: Arguments) -> Iterator[str]:
    own = [f.name for f in fields(arguments) if f.name != "sections"]
    for name in arguments.sections:
        if name not in Config.model_fields:
            near = did_you_mean(name, [*own, *(n for n in Config.model_fields if n not in ARGUED)])
            if section := _find_section(name):
                value = arguments.sections[name]
                shown = repr(value) if isinstance(value, int | float) else "..."
                near = f'; it is a field of a section: {section}={{"{name}": {shown}}}'
            yield f"{name}: no argument and no section of a config{near}"
    for name in ARGUED:
        if name in arguments.sections:
            yield f"{name}: arguments stand for this section; leave it out, or give a whole config"
    if "models" in (arguments.sections.get("privacy") or {}):
        for name, model in (("k", "k_anonymity"), ("l", "l_diversity")):
            if getattr(arguments, name) is not None:
                there = f'{{"type": "{model}", "{name}": {getattr(arguments, name)!r}}}'
                yield f"{name}: privacy.models has the models: put {there} there instead"


def _find_section(name: str) -> str:
    """The section of a config, among those that are arguments, that has a field; empty if none
    has."""
    for section, info in Config.model_fields.items():
        kinds = (info.annotation, *get_args(info.annotation))
        models = [kind for kind in kinds if isclass(kind) and issubclass(kind, Section)]
        if section not in ARGUED and any(name in model.model_fields for model in models):
            return section
    return ""


def find_in_settings(arguments: Arguments) -> list[str]:
    """What is wrong with the settings, such as `k` or the kernel, where what is said of columns is
    wrong: what may merely follow from that is left out."""
    ours = {*Config.model_fields} - {*ARGUED}
    sections = {name: value for name, value in arguments.sections.items() if name in ours}
    # What may follow from these problems is left out; without a text, they are not told.
    problems = [Problem("attributes", ""), Problem("unit", "")]
    tree = copy_tree(_list_sections(replace(arguments, sections=sections), {}), "", problems)
    try:
        build_config(tree, None, problems)
    except ConfigError as error:
        found = _rename(error.problems, arguments)
        return [str(problem) for problem in found if problem.text]
    return []


def _is_text(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    at = pa.types
    return any(holds(kind) for holds in (at.is_string, at.is_large_string, at.is_string_view))


def _guess_scale(
    column: pa.ChunkedArray,
    profile: ColumnProfile,
    scales: Mapping[str, str],
    hierarchies: Mapping[str, str | Path],
) -> dict[str, Any]:
    """The scale of a column: what the arguments say, or a guess; with the order of an ordered
    category."""
    name = profile.name
    scale = scales.get(name)
    if scale in (None, "ordinal") and pa.types.is_dictionary(column.type) and column.type.ordered:
        return {"scale": "ordinal", **_list_order(name, column)}
    if scale is not None or name in hierarchies:
        return {"scale": scale or "nominal"}
    return {"scale": str(guess_scale(replace(profile, parses_as=None)).scale)}


def _list_order(name: str, column: pa.ChunkedArray) -> dict[str, Any]:
    """The order of an ordered category: of the values that occur, and of text only. Numbers have
    their own.

    Raises InputError if that is another one, if parts of the column have different categories, or
    these are neither text nor numbers.
    """
    if not is_atomic(to_plain_type(name, column).type):
        raise InputError(
            f"column {name}: its categories are neither text nor numbers; make them text (in "
            "pandas `.cat.rename_categories(str)`)"
        )
    first, *others = [pa.chunked_array([chunk.dictionary]) for chunk in column.chunks]
    if any(not each.equals(first) for each in others):
        raise InputError(
            f"column {name}: parts of the table have different categories, whose common order is "
            "not known; call unify_dictionaries() on the table"
        )
    categories = to_plain_type(name, first).to_pylist()
    occurring = {*to_plain_type(name, column).unique().to_pylist()}
    order = [each for each in dict.fromkeys(categories) if each is not None and each in occurring]
    if all(isinstance(each, str) for each in order):
        return {"order": order}
    if order != sorted(order):
        raise InputError(
            f"column {name}: its categories are numbers in an order of their own; make them text"
        )
    return {}


def _list_sections(
    arguments: Arguments, attributes: Mapping[str, Any], tokens: Sequence[str] = ()
) -> dict[str, Any]:
    """The sections of the config. tokens: Texts that mean a missing value besides the usual ones,
    if no argument lists such texts."""
    models: list[dict[str, Any]] = [
        {"type": "k_anonymity", "k": USUAL_K if arguments.k is None else arguments.k}
    ]
    diversity = {"type": "l_diversity", "l": arguments.l}
    if arguments.l is not None and arguments.sensitive:
        models.append(diversity)
    # Everybody may know a public target: in a config, too, only a model that names it protects it.
    if arguments.l is not None and arguments.target is not None and not arguments.target_is_public:
        models.append({**diversity, "attribute": arguments.target})
    kernel = arguments.kernel or "mdav"
    persons: dict[str, Any] = {"unit": list(arguments.unit)} if arguments.unit else {}
    if arguments.one_row_per_person:
        persons["one_row_per_person"] = arguments.one_row_per_person
    privacy: dict[str, Any] = {"models": models}
    if tokens:
        privacy["missing_tokens"] = [*MISSING_TOKENS, *tokens]
    sections = dict(arguments.sections)
    if sections.get("seed") is None:
        # Drawn: who knows the seed can test guesses at how cells were made.
        sections["seed"] = secrets.randbits(31)
    return {
        **sections,
        "source": {**IN_HAND},
        "attributes": dict(attributes),
        **persons,
        "kernel": {"type": kernel} if isinstance(kernel, str) else dict(kernel),
        "privacy": {**privacy, **(sections.get("privacy") or {})},
        "release": {"path": arguments.path or UNUSED_PATH},
    }


def config_in_hand(config: GivenConfig, *, in_memory: bool) -> Config:
    """The config of a call for a table in hand. A dict may lack the source, which is the table, and
    in memory the release, which is not written.

    Raises as `as_config`.
    """
    if not isinstance(config, Mapping):
        return as_config(config)
    unused = {"release": {"path": UNUSED_PATH}} if in_memory else {}
    return as_config({"source": IN_HAND, **unused, **config})
