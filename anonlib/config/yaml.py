"""The YAML of configs: plain mappings, lists, texts, numbers, booleans and nulls, nothing else.

Configs and sweep files have a largest size. Larger files are refused before any work on them.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

from anonlib.errors import Problem

#: Most bytes of a file.
MAX_BYTES = 1_000_000

#: Most levels of mappings and lists within each other.
MAX_DEPTH = 30

#: Most keys and values in all.
MAX_NODES = 100_000

#: Most characters of a text, of a key, and of a number.
MAX_TEXT, MAX_KEY, MAX_NUMBER = 100_000, 1_000, 100

#: By field: most items.
MAX_ITEMS = {
    "attributes": 10_000,
    "unit": 100,
    "privacy.models": 100,
    "privacy.missing_tokens": 1_000,
    "partition.steps": 20,
    "evaluate.measures": 100,
    "release.partition_by": 100,
    "gates": 1_000,
    "source.options": 1_000,
    "spark.conf": 1_000,
}

_PLAIN = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map")
)

_NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})

#: The tag of what older or newer YAML, or Python, reads as another number than it looks like.
_UNCLEAR = "tag:anonlib:unclear"

#: YAML 1.1 reads `yes`, `no`, `on` and `off` as truth values, too: such a text would change its
#: meaning.
_BOOL, _TRUTHS = "tag:yaml.org,2002:bool", ("true", "false")

#: By tag: what it is. Numbers are plain decimals: in YAML 1.1 010 is 8, 1:30 is 90, 1e3 a text.
_DECIMALS = (
    ("tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z")),
    (
        "tag:yaml.org,2002:float",
        re.compile(
            r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z"
            r"|[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z"
        ),
    ),
    (
        _UNCLEAR,
        re.compile(
            r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9_]+)?\Z"
            r"|[-+]?0(?:[xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)\Z"
            r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z"
        ),
    ),
)

#: The signs that numbers begin with.
_FIRST = "-+.0123456789"

#: What is said in place of a text of the reader that has one of these, in plain words.
_SAID = {
    "but found '<scalar>'": (
        "a text goes on after its closing quote; within '...' write '' for a quote, within \"...\" "
        'write \\" for one'
    ),
    "unknown escape": "within \"...\" a backslash is written twice, within '...' once",
    "expected <block end>": (
        "this line is not below what it belongs to, or begins in another column than its like; "
        "indent by spaces, those of one section alike"
    ),
    "mapping values are not allowed": (
        "a second `: ` in a line, a line that is indented too far, or a line before it without "
        "`: `; put text that has `: ` in quotes"
    ),
    "cannot start any token": (
        "a tab, or a sign that can begin no value; indent by spaces, and put text that begins "
        "with a sign in quotes"
    ),
    "could not find expected ':'": (
        "a line without `: `, where a key with its value is expected, or a quote or bracket "
        "before it is not closed"
    ),
    "expected ',' or": "a list or mapping in brackets lacks a comma, or its closing bracket",
    "but found another document": "a second document begins; a file has one, so remove `---`",
    "unexpected end of stream": "a text in quotes is not closed",
    "expected the node content": (
        "a value is expected; put text that begins with a sign in quotes"
    ),
    "sequence entries are not allowed": "a list begins on a line of its own, below its key",
}


def read_yaml(text: str) -> Any:
    """Reads a YAML text. Raises yaml.YAMLError, whose `problem` is in plain words and names no
    value."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        found = error.problem or ""
        error.problem = next((t for part, t in _SAID.items() if part in found), found)
        raise


def write_yaml(tree: Any) -> str:
    """A tree as YAML that `read_yaml` reads as the same tree."""
    return str(yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True))


class _Loader(yaml.SafeLoader):
    """A loader that refuses repeated keys, aliases and tags, which YAML would accept silently,
    numbers that are no plain decimals, and other truth values than true and false. It stops as soon
    as a text is larger than a config may be. Dates stay texts.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 (so declared by yaml)
        first: [
            *((tag, form) for tag, form in resolvers if tag in _PLAIN - _NUMBERS),
            *(_DECIMALS if first in _FIRST else ()),
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    depth = n_nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self.n_nodes += 1
        if self.n_nodes > MAX_NODES:
            raise _too_large(f"more than {MAX_NODES:,} keys and values", event.start_mark)
        if self.depth > MAX_DEPTH:
            raise _too_large(
                f"nested too deeply; at most {MAX_DEPTH} levels are allowed", event.start_mark
            )
        if self.check_event(yaml.AliasEvent):
            event = self.get_event()  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(
                None, None, "aliases are not allowed; write the value out", event.start_mark
            )
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(node, yaml.ScalarNode):
            _require_short(node)
            if node.tag == _BOOL and node.value.lower() not in _TRUTHS:
                is_key = isinstance(parent, yaml.MappingNode) and index is None
                says = "put this key" if is_key else "write true or false, or put this text"
                raise _refuse(f"{says} in quotes", node)
            if node.tag == _UNCLEAR:
                raise _refuse(
                    "a number is a plain decimal, such as 10, 0.5 or 1e-3, without a leading zero, "
                    "`_`, `:` or 0x; write it so, or put text in quotes",
                    node,
                )
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if node.tag not in _PLAIN:
            raise _refuse("tags are not allowed; remove this one", node)
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):
            # The text of the error may show the value, such as a number of thousands of digits.
            raise _refuse("this value can't be read; put it in quotes", node) from None

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = set()
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _refuse("keys must be text; put this one in quotes", key_node)
            if len(key) > MAX_KEY:
                raise _refuse(f"a key of more than {MAX_KEY:,} characters", key_node)
            if key in keys:
                raise _refuse(f"key {key!r} is given twice; remove one", key_node)
            keys.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """A dumper that puts texts in quotes if `_Loader` would read them as numbers, too."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (so declared by yaml)
        first: [*resolvers, *(_DECIMALS if first in _FIRST else ())]
        for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


def _require_short(node: yaml.ScalarNode) -> None:
    number = node.tag in _NUMBERS or node.tag == _UNCLEAR
    most = MAX_NUMBER if number else MAX_TEXT
    if len(node.value) > most:
        what = "number" if number else "text"
        hint = "; put text in quotes" if number else ""
        raise _too_large(f"a {what} of more than {most:,} characters{hint}", node.start_mark)


def _too_large(text: str, mark: Any) -> yaml.YAMLError:
    return yaml.composer.ComposerError(None, None, text, mark)


def _refuse(text: str, node: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


def split_key(key: str) -> list[str]:
    """The parts of a dotted key such as `a.b.0.c`. A part in double quotes may contain dots."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]+)"|([^."]+)', key)]


def shorten_key(key: str) -> str:
    """The last part of a dotted key without `.type`, with the one before if it is a number."""
    *_, before, last = ["", *split_key(key.removesuffix(".type"))]
    return f"{before}.{last}" if last.isdigit() and before else last


def check_sizes(tree: Mapping[str, Any]) -> Iterator[Problem]:
    """Problems: fields of a config that have too many items."""
    for where, most in MAX_ITEMS.items():
        value: Any = tree
        for part in where.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, Collection) and not isinstance(value, str) and len(value) > most:
            yield Problem(where, f"has {len(value):,} items; at most {most:,} are allowed")
