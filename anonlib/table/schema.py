"""Roles, scales and attributes: what the columns of a table are."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from anonlib.hierarchy import Hierarchy
from anonlib.text import join_names

#: By the unit of times: how many are a second.
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Role(StrEnum):
    """What a column is."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi_identifier"
    SENSITIVE = "sensitive"
    TARGET = "target"
    INSENSITIVE = "insensitive"
    DROP = "drop"


#: Roles of columns in which NaN is a missing value. (A unit may have the role drop.)
WITHOUT_NAN = (Role.QUASI_IDENTIFIER, Role.IDENTIFIER, Role.DROP)


class Scale(StrEnum):
    """How a quasi-identifier or a target is measured."""

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"


@dataclass(frozen=True)
class Field:
    """A column as the source has it.

    Attributes:
        name: Its name.
        type: Its type, as the source writes it.
        arrow: Its Arrow type; None for a type that Arrow can't carry.
    """

    name: str
    type: str
    arrow: pa.DataType | None


@dataclass(frozen=True)
class Column:
    """A column of the config, as the source has it.

    Attributes:
        name: Its name in the source and in the release.
        id: Its name between reading and writing: c0..cN.
        role: What it is.
        type: Its Arrow type, after the cast.
        source_type: Its type, as the source writes it.
        cast: The type that its text is cast to, if the config names one.
        scale: How it is measured; None for columns that nothing measures.
        order: The categories of an ordinal column of text, from low to high.
        pseudonym: Whether it is released as a pseudonym.
        recoder: The Recoder of a quasi-identifier (any type here: recode/ builds on this module).
        hierarchy: Its hierarchy, if it has one.
    """

    name: str
    id: str
    role: Role
    type: pa.DataType
    source_type: str
    cast: str | None = None
    scale: Scale | None = None
    order: tuple[str, ...] | None = None
    pseudonym: bool = False
    recoder: Any = None  # a Recoder; recode/ builds on this module
    hierarchy: Hierarchy | None = None

    @property
    def released(self) -> bool:
        """Whether the release has this column."""
        if self.role is Role.IDENTIFIER:
            return self.pseudonym
        return self.role is not Role.DROP

    @property
    def released_type(self) -> pa.DataType:
        """The type of the column in the release."""
        if self.pseudonym:
            return pa.string()
        return self.recoder.output(self.type) if self.recoder else self.type

    @property
    def by_category(self) -> bool:
        """Whether kernels see codes or ranks of categories, known for the whole table."""
        return self.scale in (Scale.NOMINAL, Scale.ORDINAL)


@dataclass(frozen=True)
class Schema:
    """The columns of a run, in the source's order.

    Attributes:
        columns: The columns.
        unit: Ids of the columns that identify a person.
        protected: Ids of the columns that privacy models look at.
        controller: Id of the column that names a row's data controller.
        joint: Whether models hold also where all other protected columns are known.
    """

    columns: tuple[Column, ...]
    unit: tuple[str, ...] = ()  # ids of the columns that identify a person
    protected: tuple[str, ...] = ()  # ids of the columns that privacy models look at
    controller: str | None = None  # id of the column that says whose a row is
    joint: bool = False  # whether models hold where all other protected columns are known

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def by_id(self, id: str) -> Column:
        """The column named `id` between reading and writing."""
        return next(column for column in self.columns if column.id == id)

    def of(self, *roles: Role) -> tuple[Column, ...]:
        """The columns of these roles."""
        return tuple(column for column in self.columns if column.role in roles)

    @property
    def quasi_identifiers(self) -> tuple[Column, ...]:
        return self.of(Role.QUASI_IDENTIFIER)

    @property
    def identifying(self) -> tuple[Column, ...]:
        """The columns that identify persons. Their texts are compared as identities."""
        persons = {*self.unit}
        return tuple(c for c in self.columns if c.role is Role.IDENTIFIER or c.id in persons)

    @property
    def hierarchies(self) -> dict[str, Hierarchy]:
        """By name of a column: its hierarchy, if the column is released as nodes of it."""
        columns = self.quasi_identifiers
        return {c.name: c.hierarchy for c in columns if c.hierarchy and c.recoder.names_nodes}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the recoders of the quasi-identifiers show of single persons, or can't keep."""
        recoded = [c for c in self.quasi_identifiers if c.recoder is not None]
        names: dict[str, list[str]] = {}
        for column in recoded:
            if text := column.recoder.shows:
                names.setdefault(text, []).append(column.name)
        for column in recoded:
            if column.recoder.releases == "node" and column.hierarchy is None:
                text = f"no hierarchy, so recoder {column.recoder.type} releases a value that all "
                text += "rows of a class have, else `*`"
                names.setdefault(text, []).append(column.name)
        return tuple(f"column {join_names(named)}: {text}" for text, named in names.items())

    @property
    def target(self) -> Column | None:
        """The target, if a kernel or partitioner looks at it. It then has a scale."""
        return next((column for column in self.of(Role.TARGET) if column.scale is not None), None)

    @property
    def context(self) -> tuple[Column, ...]:
        """The insensitive columns that partitioners look at. They have a scale."""
        return tuple(c for c in self.of(Role.INSENSITIVE) if c.scale is not None)

    @property
    def released(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.released)


def is_number(type: pa.DataType) -> bool:
    """Whether values are numbers: no dates, no booleans."""
    at = pa.types
    return bool(at.is_integer(type) or at.is_floating(type) or at.is_decimal(type))


def may_be_continuous(type: pa.DataType) -> bool:
    """Whether values are on a line: numbers, dates, timestamps."""
    return is_number(type) or bool(pa.types.is_date(type) or pa.types.is_timestamp(type))


def find_target_scale(type: pa.DataType, needs_classes: bool) -> Scale:
    """The scale of a target or insensitive column without one in the config. Numbers are
    continuous, unless classes are needed."""
    return Scale.CONTINUOUS if may_be_continuous(type) and not needs_classes else Scale.NOMINAL


def is_atomic(type: pa.DataType) -> bool:
    """Whether a column of this type can be a quasi-identifier."""
    return may_be_continuous(type) or bool(pa.types.is_string(type) or pa.types.is_boolean(type))


def is_storable(type: pa.DataType) -> bool:
    """Whether a Delta table can hold values of this type: no durations, no times of day, and no
    lists of nothing but null."""
    at = pa.types
    if at.is_struct(type):
        return all(is_storable(type.field(i).type) for i in range(type.num_fields))
    if at.is_map(type):
        parts = [type.key_type, type.item_type]
    elif at.is_nested(type):
        parts = [type.value_type]
    else:
        return is_atomic(type) or bool(at.is_binary(type) or at.is_null(type))
    return all(is_storable(part) and not at.is_null(part) for part in parts)
