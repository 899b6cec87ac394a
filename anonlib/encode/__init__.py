"""Encodings turn released values into numeric features. Each has its own file.

Every feature has a name and belongs to one column. The features and their order depend on the
column's domain, not on the rows, so tables of one domain have the same features.
"""

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import pyarrow as pa
from pydantic import Field

from anonlib import registry
from anonlib.arrays import Sparse
from anonlib.encode._published import read_parents
from anonlib.errors import ConfigError, InputError
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.registry import Plugin

#: An Arrow array of any type.
Column: TypeAlias = Any
#: By column: the hierarchy of its nodes, or the file of that hierarchy.
Hierarchies: TypeAlias = Mapping[str, Hierarchy | str | Path]
#: By column: its possible values, as texts.
Categories: TypeAlias = Mapping[str, tuple[str, ...]]


class EncoderDomain(NamedTuple):
    """What an encoder knows about a released column.

    Attributes:
        hierarchy: The hierarchy whose nodes are released, if there is one.
        categories: The categories as texts, for encodings by category.
    """

    hierarchy: Hierarchy | None = None
    categories: tuple[str, ...] | None = None


class Encoder(Plugin):
    """Turns the released values of one column into features."""

    family: ClassVar[str] = "encoding"
    #: The parts of a column's domain that it needs.
    needs_hierarchy: ClassVar[bool] = False
    needs_categories: ClassVar[bool] = False
    missing: bool = Field(
        default=False, description="missing values have a feature of their own, the last one"
    )

    def names(self, column: str, domain: EncoderDomain) -> tuple[str, ...]:
        """The names of the f features: `column=label`, and `column is missing`."""
        names = self._names(column, domain)
        return (*names, f"{column} is missing") if self.missing else names

    def features(self, values: Column, domain: EncoderDomain) -> Sparse:
        """The features of n released values, which may be null.

        Returns:
            csr_matrix float64[n, f].

        Raises:
            InputError: A value is not in this domain, or the type needs another encoding. The text
                has no values.
        """
        matrix = self._matrix(values, domain)
        return matrix if self.missing else matrix[:, :-1]

    def found(self, values: Column) -> set[str]:
        """The categories of the values, as texts; none if the encoding needs no categories."""
        return set()

    @abstractmethod
    def _names(self, column: str, domain: EncoderDomain) -> tuple[str, ...]:
        """The names of all features, without the feature of missing values."""

    @abstractmethod
    def _matrix(self, values: Column, domain: EncoderDomain) -> Sparse:
        """All features. The last is the feature of missing values."""


class EncodedTable(NamedTuple):
    """The features of a table.

    Attributes:
        features: csr_matrix float64[n, f]; `.toarray()` makes a small one dense.
        names: The names of the f features.
    """

    features: Sparse
    names: tuple[str, ...]


def encode(
    table: Any,
    columns: Mapping[str, Any],
    hierarchies: Hierarchies | None = None,
    categories: Categories | None = None,
) -> EncodedTable:
    """Encodes a released table as features, column by column in the order of `columns`.

    Cost: the size of the result, and one parse for each distinct JSON text.

    Args:
        table: A pandas or Arrow table.
        columns: By column: its encoding, as a `type` or as `{type: ..., ...}` with parameters.
        hierarchies: By column of nodes: its hierarchy. `read_published_hierarchies` reads the
            hierarchies of a release.
        categories: By column: its categories, for encodings by category; by default the categories
            in the table. To encode two tables alike, pass `read_categories` of the first.

    Raises:
        InputError: A column can't be encoded like this. The text names the column.
    """
    from scipy.sparse import csr_matrix, hstack

    encoders = build_encoders(columns)
    known = {**read_categories(table, columns), **(categories or {})}
    parts: list[Sparse] = [csr_matrix((len(table), 0))]
    names: list[str] = []
    for name, domain in make_domains(encoders, hierarchies or {}, known).items():
        with about(name):
            parts.append(encoders[name].features(_column(table, name), domain))
        names += encoders[name].names(name, domain)
    return EncodedTable(csr_matrix(hstack(parts)), tuple(names))


def read_categories(table: Any, columns: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """By column that is encoded by category: its categories, as texts, ascending."""
    known = {}
    for name, encoder in build_encoders(columns).items():
        if encoder.needs_categories:
            with about(name):
                known[name] = tuple(sorted(encoder.found(_column(table, name))))
    return known


def read_published_hierarchies(manifest: str) -> dict[str, Hierarchy]:
    """By column: its hierarchy in a release's public manifest, given as text.

    The manifest names released nodes and the nodes above them. Any other node i is called
    `unnamed i`.
    """
    found = json.loads(manifest).get("hierarchies", {})
    result = {}
    for column, each in found.items():
        names = [f"unnamed {i}" if name is None else name for i, name in enumerate(each["names"])]
        result[column] = read_parents(names, each["parents"])
    return result


def build_encoders(columns: Mapping[str, Any]) -> dict[str, Encoder]:
    """Builds the encoding of each column from its type, or its type and parameters.

    Raises:
        InputError: An encoding does not exist, or a parameter is wrong.
    """
    encoders = {}
    for name, given in columns.items():
        spec = {"type": given} if isinstance(given, str) else given
        with about(name):
            try:
                encoders[name] = registry.build("encoding", spec)
            except ConfigError as error:
                raise InputError(error.line) from None
    return encoders


def make_domains(
    encoders: Mapping[str, Encoder], hierarchies: Hierarchies, categories: Categories
) -> dict[str, EncoderDomain]:
    """The domain of each column. Hierarchies are read from their files.

    Raises:
        InputError: An encoding needs a hierarchy that is not given.
    """
    domains = {}
    for name, encoder in encoders.items():
        tree = hierarchies.get(name)
        if encoder.needs_hierarchy and tree is None:
            raise InputError(
                f"column {name}: encoding {encoder.type} needs its hierarchy; give `hierarchies`"
            )
        if isinstance(tree, str | Path):
            tree = read_hierarchy(tree)
        domains[name] = EncoderDomain(tree, categories.get(name))
    return domains


@contextmanager
def about(column: str) -> Iterator[None]:
    """Adds the column's name to an InputError."""
    try:
        yield
    except InputError as error:
        raise InputError(f"column {column}: {error}") from None


def _column(table: Any, name: str) -> Column:
    """A column of a pandas or Arrow table as one Arrow array without a dictionary."""
    is_arrow = isinstance(table, pa.Table)
    if name not in (table.column_names if is_arrow else table.columns):
        raise InputError("not in the table")
    try:
        values = table.column(name) if is_arrow else pa.Array.from_pandas(table[name])
    except pa.ArrowException:  # its text may hold values
        raise InputError("its values are not of one type") from None
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
