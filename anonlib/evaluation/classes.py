"""Classes: the rows that agree on all quasi-identifiers, of a release and of its source."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.arrays import Ints
from anonlib.auditing import AuditSpec
from anonlib.auditing.view import View, make_view
from anonlib.config.model import Config
from anonlib.config.resolve import bind_models, joint_columns, protected_hierarchies
from anonlib.recode.proportional import Proportional
from anonlib.recode.set import Set
from anonlib.table.columns import TOKEN
from anonlib.table.schema import Role, Schema


@dataclass(frozen=True)
class Sizes:
    """How large classes are: n_classes[i], of `size`[i] persons each; both int64[s], ascending.

    persons: whether these are persons; else they are rows, of which a person may have several that
    can't be told from those of others any more.
    """

    size: Ints
    n_classes: Ints
    persons: bool = True

    @property
    def n(self) -> int:
        """Persons; who is in several classes counts in each."""
        return int(self.size @ self.n_classes)

    @property
    def smallest(self) -> int:
        """The size of the smallest class; 0 where there is none."""
        return int(self.size[0]) if len(self.size) else 0


def view_of(
    released: DataFrame, schema: Schema, config: Config, protected: Sequence[str] = ()
) -> tuple[View, AuditSpec]:
    """A release, its columns named by id, as its audit sees it, with these protected columns."""
    columns = [F.col(column.id).alias(column.name) for column in schema.released]
    spec = published_spec(config)
    if config.unit and TOKEN in released.columns:
        columns.append(F.col(TOKEN))
        spec = replace(spec, persons="token", token=TOKEN)
    return make_view(released.select(*columns), spec, protected, ()), spec


def released_sizes(released: DataFrame, schema: Schema, config: Config) -> Sizes:
    """The classes of a release: one aggregate of it. The driver gets a row for each size, of which
    n rows have at most (2 n)^(1/2)."""
    view, spec = view_of(released, schema, config)
    count = F.count("*") if view.token is None else F.count_distinct(view.token)
    return _sizes(view.rows, view.keys, count, persons=spec.persons != "unknown")


def source_sizes(source: DataFrame, schema: Schema) -> Sizes:
    """The classes of a source: one aggregate of it."""
    keys = [column.id for column in schema.quasi_identifiers]
    count = F.count_distinct(*schema.unit) if schema.unit else F.count("*")
    return _sizes(source, keys, count, persons=True)


def _sizes(rows: DataFrame, keys: Sequence[str], count: Column, *, persons: bool) -> Sizes:
    """Rows without a person's identity are nobody's."""
    classes = rows.groupBy(*keys).agg(count.alias("size")).where("size > 0")
    found = sorted(classes.groupBy("size").count().collect())
    size, n_classes = np.array(found, np.int64).reshape(-1, 2).T
    return Sizes(size, n_classes, persons)


def published_spec(config: Config) -> AuditSpec:
    """What a published table of this config must be."""
    released = {
        name: attribute
        for name, attribute in config.attributes.items()
        if attribute.role not in (Role.DROP, Role.IDENTIFIER) or attribute.pseudonym
    }
    quasi = [n for n, a in released.items() if a.role is Role.QUASI_IDENTIFIER]
    scales = {name: released[name].scale for name in quasi}
    recoders = {n: config.recode.of(n, scale) for n, scale in scales.items() if scale}
    shares = {n: r.steps for n, r in recoders.items() if isinstance(r, Proportional)}
    # As text, a set is sorted already: equal sets are equal texts.
    sets = [n for n, r in recoders.items() if isinstance(r, Set) and r.form == "array"]
    return AuditSpec(
        columns=tuple(released),
        quasi_identifiers=tuple(quasi),
        models=bind_models(config.privacy.models, config.attributes),
        insensitive=tuple(n for n, a in released.items() if a.role is Role.INSENSITIVE),
        acknowledge_unique=config.privacy.acknowledge_unique,
        missing_tokens=config.privacy.missing_tokens,
        persons="unknown" if config.unit else "rows",
        sets=tuple(sets),
        hierarchies=protected_hierarchies(config),
        joint=joint_columns(config),
        shares=shares,
    )
