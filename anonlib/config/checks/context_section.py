"""Checks of `context` and `review`: what attackers may know, until when, who has looked."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from anonlib.config.model import Attribute, Config, ContextSection
from anonlib.config.resolve import find_joint_columns
from anonlib.errors import ConfigError, Problem, did_you_mean
from anonlib.privacy import PrivacyModel
from anonlib.table.schema import Role


def check_context(
    context: ContextSection,
    attributes: Mapping[str, Attribute],
    models: Sequence[PrivacyModel],
    *,
    joint: bool,
) -> Iterator[Problem]:
    """What attackers may know and is released must be among what models count: quasi-identifiers,
    and with `joint` the sensitive columns."""
    counted = find_joint_columns(models, attributes, joint=joint)
    for i, name in enumerate(context.may_know):
        where, attribute = f"context.may_know.{i}", attributes.get(name)
        if attribute is None:
            near = did_you_mean(name, attributes)
            yield Problem(where, f"no column {name} under `attributes`{near}")
        elif attribute.role in (Role.SENSITIVE, Role.TARGET) and name not in counted:
            yield Problem(
                where,
                f"{name} is released and no model counts on attackers who know it: set "
                "privacy.joint: true with a model that protects it, make it a quasi-identifier, or "
                "drop it",
            )
        elif attribute.role is Role.INSENSITIVE:
            yield Problem(
                where,
                f"{name} is released as insensitive, and attackers may know it: make it a "
                "quasi-identifier, or drop it",
            )


def check_review(review: Sequence[str], attributes: Mapping[str, Attribute]) -> Iterator[Problem]:
    """Checks that the list of what is to be looked at names fields that there are."""
    places = [*[f"attributes.{name}" for name in attributes], *Config.model_fields]
    for i, place in enumerate(review):
        section = place.partition(".")[0]
        if place not in places and (section == "attributes" or section not in places):
            yield Problem(
                f"review.{i}",
                f"names no field of this config{did_you_mean(place, places)}; take it off the list",
            )


def check_expiry(context: ContextSection) -> Iterator[Problem]:
    """Checks that the last day of a release is not over."""
    if context.expires is not None and context.expires < datetime.now(UTC).date():
        text = "is over: nobody may use the release; name a later day"
        yield Problem("context.expires", text)


def require_current(context: ContextSection) -> None:
    """Raises ConfigError if the last day of a release is over."""
    if problems := [*check_expiry(context)]:
        raise ConfigError(problems)


def require_reviewed(review: Sequence[str]) -> None:
    """Raises ConfigError if guesses of a draft are left that nobody has looked at."""
    if review:
        raise ConfigError(
            [
                Problem(
                    "review",
                    f"a draft: nobody has looked at {', '.join(review)}; correct each, and take "
                    "its name off this list",
                )
            ]
        )
