"""A config as YAML for pages: without what may be data or a secret."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from anonlib.config.policies import list_policies
from anonlib.config.summary import bare
from anonlib.config.yaml import write_yaml

#: By section: the fields that pages show; None for all of them. Private records show them as well.
_FIELDS: Mapping[str, tuple[str, ...] | None] = {
    "source": ("format", "path", "table", "version", "rows", "seed", "options"),
    "attributes": ("role", "scale", "hierarchy", "type", "pseudonym", "public"),
    "privacy": (
        *("models", "suppression_limit", "suppress", "joint"),
        *("acknowledge_unique", "acknowledge_linked"),
    ),
    "partition": ("steps", "max_rows", "sample_rows"),
    "release": (
        *("path", "mode", "acknowledge_overwrite", "acknowledge_returning"),
        *("partition_by", "register", "rows_per_file", "order"),
    ),
    "evaluate": ("measures",),
    "accountability": ("approver", "purpose", "recipients"),
    **dict.fromkeys(
        [
            *("one_row_per_person", "unit", "person", "kernel", "recode", "gates"),
            *("context", "max_categories", "bound", "seed", "review"),
        ]
    ),
}
#: Options of readers whose values are no data and no secrets, in lower case.
_OPTIONS = ("header", "sep", "delimiter", "encoding", "charset", "quote", "escape", "multiline")
#: Places of plug-ins. Collections in their parameters may be values of the table.
_PLUGINS = ("privacy.models", "partition.steps", "kernel", "recode", "evaluate.measures")


def shorten_config(tree: Mapping[str, Any], unlike: Mapping[str, str] | None = None) -> str:
    """Writes a config as YAML, by a list of fields that are allowed.

    What is left out is listed under `review`: nothing is released by this config before somebody
    has added it, and taken its name off the list.

    Args:
        tree: The sections and fields, as read from YAML.
        unlike: More places for `review`: what a release by this config would do otherwise, and
            why; the reason may be empty, and has no line breaks.
    """
    unlike = unlike or {}
    tree = json.loads(json.dumps(tree, default=str))
    left_out: list[str] = []
    shown = {
        name: kept
        for name, value in tree.items()
        if value is not None and (kept := _section(name, value, left_out)) is not None
    }
    if "evaluate" in left_out or "evaluate.measures" in left_out:
        shown.pop("evaluate", None)
        if shown.pop("gates", None) is not None:  # they name figures of the measures
            left_out.append("gates")
    review = [*dict.fromkeys([*shown.pop("review", []), *left_out, *unlike])]
    # As JSON, a place has no line breaks, which would end the comment.
    head = [
        f"# Not as in the sweep, look at it: {json.dumps(place)}{reason and f'; {reason}'}\n"
        for place, reason in unlike.items()
    ]
    head += [f"# Left out, since it may be data or a secret: {json.dumps(p)}\n" for p in left_out]
    text = write_yaml({**shown, **({"review": review} if review else {})})
    return "".join([*head, text])


def _section(name: str, value: Any, left_out: list[str]) -> Any:
    """What is shown of a section; None for nothing. Adds the places of all else to `left_out`."""
    if name == "policy":
        own = value.get("name") if isinstance(value, Mapping) else value
        # One of anonlib's own names has anonlib's rules, else the config would not have loaded.
        if isinstance(own, str) and (own is value or own in list_policies()):
            return own
    if name not in _FIELDS or (name in _PLUGINS and not _is_plain(value)):
        left_out.append(name)
        return None
    fields = _FIELDS[name]
    if fields is None or not isinstance(value, Mapping):
        return value
    if name == "attributes":
        return {column: _attribute(column, each, left_out) for column, each in value.items()}
    return dict(_fields(name, value, fields, left_out))


def _attribute(column: str, value: Any, left_out: list[str]) -> Any:
    """What is shown of a column. `review` names columns, not their fields."""
    if not isinstance(value, Mapping):
        return value
    kept = {key: each for key, each in value.items() if key in (_FIELDS["attributes"] or ())}
    if kept.keys() != {key for key, each in value.items() if each is not None}:
        left_out.append(f"attributes.{column}")
    return kept


def _fields(
    name: str, value: Mapping[str, Any], fields: Sequence[str], left_out: list[str]
) -> Iterator[tuple[str, Any]]:
    for key, each in value.items():
        place = f"{name}.{key}"
        if place == "source.options" and isinstance(each, Mapping):
            shown = {option: v for option, v in each.items() if option.lower() in _OPTIONS}
            yield key, shown
            left_out += [place] if len(shown) < len(each) else []
        elif key not in fields or (place in _PLUGINS and not _is_plain(each)):
            left_out.append(place)
        elif key == "path" and isinstance(each, str):
            yield key, bare(each)
            left_out += [place] if bare(each) != each else []
        else:
            yield key, each


def _is_plain(value: Any) -> bool:
    """Whether all plug-ins of a place are names, or have no collections as parameters. Recoders of
    single columns are below `columns`."""
    if isinstance(value, Mapping) and "type" not in value:
        return all(map(_is_plain, value.values()))
    each = value if isinstance(value, list) else [value]
    return all(isinstance(plugin, str) or _has_no_collections(plugin) for plugin in each)


def _has_no_collections(plugin: Any) -> bool:
    return isinstance(plugin, Mapping) and not any(
        isinstance(value, Collection) and not isinstance(value, str) for value in plugin.values()
    )
