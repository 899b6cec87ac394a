"""Checks of `attributes`: names, roles, scales, hierarchies."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from anonlib.config.model import RESERVED_PREFIX, Attribute, PrivacySection
from anonlib.config.resolve import find_ordered_columns
from anonlib.errors import InputError, Problem
from anonlib.hierarchy import read_hierarchy
from anonlib.kernels import Kernel
from anonlib.privacy import PrivacyModel
from anonlib.table.layouts import NUMBERS, is_date_pattern
from anonlib.table.schema import Role, Scale
from anonlib.text import find_alike

#: Roles of columns that are not released.
HIDDEN = (Role.DROP, Role.IDENTIFIER)


def check_names(names: Collection[str]) -> Iterator[Problem]:
    """Checks the names of the columns."""
    if not names:
        yield Problem("attributes", "give every column of the source a role")
    alike = find_alike(names)
    for name in names:
        where = f"attributes.{name}"
        if name in alike:
            yield Problem(where, "another column differs from this one in case only; rename one")
        if name.lower().startswith(RESERVED_PREFIX):
            yield Problem(
                where, f"names that begin with {RESERVED_PREFIX} are reserved; rename the column"
            )
        if not name.strip():
            yield Problem("attributes", "a column name is blank; rename the column")


def check_attributes(
    attributes: Mapping[str, Attribute],
    kernel: Kernel,
    privacy: PrivacySection,
    models: Sequence[PrivacyModel],
) -> Iterator[Problem]:
    """Checks the roles of the columns, and what goes with them."""
    by_role: Counter[Role] = Counter(a.role for a in attributes.values())
    if not by_role[Role.QUASI_IDENTIFIER]:
        yield Problem("attributes", "at least one column must have `role: quasi_identifier`")
    if by_role[Role.TARGET] > 1:
        yield Problem(
            "attributes", f"{by_role[Role.TARGET]} columns have `role: target`; at most one may"
        )
    columns = {model.column for model in privacy.models}
    ordered = find_ordered_columns(models, attributes)
    for name, attribute in attributes.items():
        yield from _check_scale(kernel, name, attribute)
        yield from _check_layout(name, attribute.type, attribute.layout)
        where = f"attributes.{name}"
        if attribute.order is not None:
            if attribute.scale is not Scale.ORDINAL and name not in ordered:
                yield Problem(
                    f"{where}.order",
                    "only ordinal columns, and columns under a model that goes by their order "
                    "(t_closeness with `distance: ordered`), have an order; remove it",
                )
            if len(attribute.order) < 2 or len(set(attribute.order)) < len(attribute.order):
                yield Problem(f"{where}.order", "give at least two categories, each once")
        if attribute.pseudonym and attribute.role is not Role.IDENTIFIER:
            yield Problem(f"{where}.pseudonym", "only identifiers can become pseudonyms; remove it")
        if attribute.public and attribute.role is not Role.TARGET:
            yield Problem(f"{where}.public", "only a target can be public; remove it")
        if attribute.role is Role.TARGET and not attribute.public and name not in columns:
            yield Problem(
                f"{where}.public",
                "the target is published: set `public: true` to accept that, or protect the "
                "column with a privacy model",
            )


def _check_layout(name: str, type: str | None, layout: str | None) -> Iterator[Problem]:
    """Checks how the texts of a column are written."""
    where = f"attributes.{name}.layout"
    if layout is None:
        return
    is_time = type in ("date", "timestamp", "timestamp_ntz")
    if type in (None, "string", "boolean"):
        yield Problem(
            where,
            "says how texts write numbers, dates or times: give the column a `type` of these, or "
            "remove `layout`",
        )
    elif is_time and not is_date_pattern(layout):
        yield Problem(
            where,
            "must be a pattern with day, month and a year of four digits, such as dd.MM.yyyy, "
            "d/M/yyyy H:mm or yyyy-MM-dd'T'HH:mm:ss",
        )
    elif not is_time and layout not in NUMBERS:
        yield Problem(where, f"must be {' or '.join(NUMBERS)}")


def _check_scale(kernel: Kernel, name: str, attribute: Attribute) -> Iterator[Problem]:
    where = f"attributes.{name}.scale"
    quasi = attribute.role is Role.QUASI_IDENTIFIER
    if quasi and attribute.scale is None:
        yield Problem(where, f"required; one of: {', '.join(Scale)}")
    elif quasi and must_be_nominal(kernel, attribute):
        yield Problem(where, f"must be nominal: kernel {kernel.type} generalizes along hierarchies")
    if attribute.role is Role.TARGET and attribute.scale is Scale.ORDINAL:
        yield Problem(where, "a target must be continuous or nominal")
    elif not quasi and attribute.role is not Role.TARGET and attribute.scale is not None:
        yield Problem(where, "only quasi-identifiers and the target have a scale; remove it")


def must_be_nominal(kernel: Kernel, attribute: Attribute) -> bool:
    """Whether a kernel generalizes along hierarchies, which a column of this scale can't have."""
    return kernel.needs_nominal and attribute.scale is not Scale.NOMINAL


def check_hierarchies(
    attributes: Mapping[str, Attribute], models: Sequence[PrivacyModel]
) -> Iterator[Problem]:
    """Checks that hierarchies can be read, and that their columns may have one."""
    modelled = {model.column for model in models}
    for name, attribute in attributes.items():
        where = f"attributes.{name}.hierarchy"
        if attribute.hierarchy is None:
            continue
        protected = attribute.role is Role.SENSITIVE or (
            attribute.role is Role.TARGET and name in modelled
        )
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not Scale.NOMINAL:
            yield Problem(where, "only nominal columns have a hierarchy; remove it")
        elif attribute.role is not Role.QUASI_IDENTIFIER and not protected:
            yield Problem(
                where,
                "only quasi-identifiers, sensitive columns and a target with a privacy model "
                "have a hierarchy; remove it",
            )
        else:
            try:
                hierarchy = read_hierarchy(attribute.hierarchy)
                if protected:
                    hierarchy.folded()
            except InputError as error:
                yield Problem(where, str(error))
