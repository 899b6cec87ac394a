"""The audited table as the models see it: canonical columns under plain names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anonlib.auditing.report import AuditSpec, Persons
from anonlib.hierarchy import Hierarchy

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class View:
    """The audited rows, in canonical form and under plain names. Rows with equal keys are a class.

    Attributes:
        rows: The rows, with all columns named below.
        whole: The rows of the whole table, with the protected columns: the reference of relative
            models.
        keys: The quasi-identifiers; with data controllers also the controller.
        sensitive: By released name of a protected column: its name in the view. Missing values are
            null.
        insensitive: The insensitive columns, if they are checked.
        persons: How persons are counted.
        token: The column of the persons' tokens, if persons are counted by it.
        hierarchies: By released name of a protected column: its hierarchy.
        orders: By released name of a protected column of text: all values, low to high.
        parts: The private columns whose values are parts of the table.
        sets: The keys that are sets, if their elements are in the order of the table, not sorted.
    """

    rows: "DataFrame"
    whole: "DataFrame"
    keys: tuple[str, ...]
    sensitive: Mapping[str, str]
    insensitive: tuple[str, ...]
    persons: Persons
    token: str | None
    hierarchies: Mapping[str, Hierarchy]
    orders: Mapping[str, tuple[str, ...]]
    parts: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()


def make_view(
    df: "DataFrame",
    spec: AuditSpec,
    protected: Sequence[str],
    insensitive: Sequence[str],
    whole: "DataFrame | None" = None,
    parts: Sequence[str] = (),
    *,
    sort: bool = True,
) -> View:
    """The view of a table with some protected and insensitive columns.

    Columns are taken by position, since their names may contain anything, or differ in case only.

    Args:
        df: The audited table.
        spec: Its requirements.
        protected: The protected columns of the view.
        insensitive: The insensitive columns of the view.
        whole: The table that `df` is a part of; by default `df` itself.
        parts: The private columns whose values are parts of the table.
        sort: Whether to sort the elements of sets, which costs much.
    """
    from pyspark.sql import functions as F

    from anonlib.auditing.canonical import clear_missing, fold_value, make_key

    released = {name: F.col(f"c{i}") for i, name in enumerate(df.columns)}
    types = {field.name: field.dataType for field in df.schema.fields}
    plain = df.toDF(*[f"c{i}" for i in range(len(df.columns))])

    def key(name: str) -> "Column":
        return make_key(released[name], types[name], is_set=sort and name in spec.sets)

    keys = {f"q{i}": key(name) for i, name in enumerate(spec.quasi_identifiers)}
    keys = keys or {"q0": F.lit(1)}  # a release without quasi-identifiers is one class
    if spec.apart is not None:
        keys["a"] = released[spec.apart]
    names = {name: f"s{i}" for i, name in enumerate(protected)}
    others = {f"i{i}": key(name) for i, name in enumerate(insensitive)}
    private = {f"p{i}": released[name] for i, name in enumerate(parts)}
    token = spec.token if spec.persons == "token" else None
    same = keys | others | private | ({} if token is None else {"t": released[token]})
    texts = {short: fold_value(released[name], types[name]) for name, short in names.items()}
    values = {c: clear_missing(F.col(c), types[n], spec.missing_tokens) for n, c in names.items()}
    rows = plain.select(*[column.alias(short) for short, column in (same | texts).items()])
    everything = rows.withColumns(values) if values else rows
    unnamed = replace(spec, persons="rows", apart=None, only=None)
    return View(
        rows=everything if spec.only is None else everything.where(F.col("a").isin(*spec.only)),
        whole=everything if whole is None else make_view(whole, unnamed, protected, ()).rows,
        keys=tuple(keys),
        sensitive=names,
        insensitive=tuple(others),
        persons=spec.persons,
        token=None if token is None else "t",
        hierarchies=spec.hierarchies,
        orders=spec.orders,
        parts=tuple(private),
        sets=() if sort else _list_sets(spec),
    )


def _list_sets(spec: AuditSpec) -> tuple[str, ...]:
    """The keys that are sets."""
    return tuple(f"q{i}" for i, name in enumerate(spec.quasi_identifiers) if name in spec.sets)
