"""Checks of `recode`."""

from collections.abc import Iterator, Mapping

from anonlib import registry
from anonlib.config.model import Attribute, RecodeSection
from anonlib.errors import Problem, did_you_mean
from anonlib.recode import Recoder
from anonlib.table.schema import Role, Scale


def check_recoders(attributes: Mapping[str, Attribute], recode: RecodeSection) -> Iterator[Problem]:
    """Checks that recoders fit the scales of their columns."""
    for scale in Scale:
        yield from _check_recoder_scale(getattr(recode, scale), scale, f"recode.{scale}")
    for name, recoder in recode.columns.items():
        where = f"recode.columns.{name}"
        attribute = attributes.get(name)
        if attribute is None or attribute.role is not Role.QUASI_IDENTIFIER:
            quasi = [n for n, a in attributes.items() if a.role is Role.QUASI_IDENTIFIER]
            near = did_you_mean(name, quasi)
            yield Problem(where, f"must name a column with `role: quasi_identifier`{near}")
        elif attribute.scale is not None:
            yield from _check_recoder_scale(recoder, attribute.scale, where)
    for name, attribute, recoder in list_column_recoders(attributes, recode):
        if recoder.needs_hierarchy and attribute.hierarchy is None:
            yield Problem(
                f"attributes.{name}.hierarchy",
                f"required by recoder {recoder.type}: a file of the values and their "
                "generalizations",
            )


def _check_recoder_scale(recoder: Recoder, scale: Scale, where: str) -> Iterator[Problem]:
    if scale not in recoder.scales:
        known = registry.plugins("recoder").values()
        fit = sorted(c.type for c in known if issubclass(c, Recoder) and scale in c.scales)
        yield Problem(
            where,
            f"recoder {recoder.type} is for scale {', '.join(sorted(recoder.scales))} only; for "
            f"{scale}: {', '.join(fit)}",
        )


def list_column_recoders(
    attributes: Mapping[str, Attribute], recode: RecodeSection
) -> Iterator[tuple[str, Attribute, Recoder]]:
    """Yields name, attribute and recoder of the quasi-identifiers that have a scale."""
    for name, attribute in attributes.items():
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.scale is not None:
            yield name, attribute, recode.of(name, attribute.scale)
