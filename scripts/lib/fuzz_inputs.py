"""Inputs for fuzzing, as hypothesis strategies: real files with parts deleted, repeated, replaced
and broken, as trees of YAML and as bytes."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Any

import yaml
from hypothesis import strategies as st

#: Part of values that no error may show.
MARK = "RAWVALUE"
#: An environment variable with the mark in it.
VARIABLE = "ANONLIB_FUZZ"
#: Sections, and their fields whose values may be data or secrets; "*": an attribute.
HIDDEN = (
    *(("source", "where"), ("source", "options"), ("spark", "conf")),
    *(("privacy", "missing_tokens"), ("*", "order")),
)

Draw = Callable[[st.SearchStrategy[Any]], Any]

_TEXTS = st.sampled_from(
    [
        *("", " ", "\x00", "\x1b[31m", "\u202e", "\ud800", "\U0001f600", "é" * 300, "a" * 5_000),
        *("..", "/", "${HOME}", "${", "${X}", "a.b", '"', "*", "true", "1e400"),
        *("mdav", "kmeans", "k_anonymity", "age", "controller", "lca", "tuples", "costliest"),
    ]
)
_NUMBERS = st.sampled_from(
    [
        *(0, 1, -1, 2, 2**31, 2**63, -(2**63) - 1, 10**30, 10**400, 0.5, 1e308, -0.0),
        *(math.nan, math.inf, -math.inf),
    ]
)
_PLAIN = st.one_of(
    st.none(), st.booleans(), _NUMBERS, st.integers(), st.floats(), _TEXTS, st.text(max_size=8)
)
#: What YAML has, and what is odd in its place.
values = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=8,
)
#: What only Python has.
objects = values | st.sampled_from(
    [b"\xff", date(2020, 1, 1), (1, 2), {1, 2}, {1: 2}, object(), 1j, int, range(3), bytearray(b"")]
)


def places(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every node of a tree except the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from places(value, (*above, key))


@st.composite
def trees(draw: st.DrawFn, seeds: Sequence[Any], odd: st.SearchStrategy[Any] = values) -> Any:
    """One of the trees, changed in one to four places."""
    tree = _copy(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(1, 4))):
        found = [*places(tree)]
        if not found:
            break
        path = draw(st.sampled_from(found))
        node = tree
        for part in path[:-1]:
            node = node[part]
        _change(draw, tree, found, node, path, odd)
    return tree


def _change(
    draw: Draw,
    tree: Any,
    found: Sequence[tuple[Any, ...]],
    node: Any,
    path: tuple[Any, ...],
    odd: st.SearchStrategy[Any],
) -> None:
    key = path[-1]
    kinds = ["replace", "replace", "delete", "nest", "rename", "swap", "grow", "hide"]
    kind = draw(st.sampled_from(kinds))
    if kind == "delete":
        del node[key]
    elif kind == "nest":
        for _ in range(draw(st.sampled_from([1, 2, 40, 300]))):
            node[key] = draw(st.sampled_from([[node[key]], {"a": node[key]}]))
    elif kind == "rename" and isinstance(node, dict):
        node[draw(_TEXTS)] = node.pop(key)
    elif kind == "swap":
        node[key] = _copy(_at(tree, draw(st.sampled_from(found))))
    elif kind == "grow" and isinstance(node, list):
        node.extend([node[key]] * draw(st.sampled_from([1, 50])))
    elif kind == "hide":
        _hide(draw, tree, found)
    else:
        node[key] = draw(odd)


def _hide(draw: Draw, tree: Any, found: Sequence[tuple[Any, ...]]) -> None:
    """Puts the mark at a place whose values no error may show."""
    name, field = draw(st.sampled_from(HIDDEN))
    sections = [
        section
        for path in found
        if name in (path[-1], "*" if path[-2:-1] == ("attributes",) else path[-1])
        and isinstance(section := _at(tree, path), dict)
    ]
    if sections:
        given = draw(st.sampled_from([MARK, f"${{{VARIABLE}}}"]))
        value = draw(st.sampled_from([given, [given], [given, given], {MARK: 1}, {"a": given}]))
        draw(st.sampled_from(sections))[field] = value


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def _copy(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    return [_copy(value) for value in tree] if isinstance(tree, list) else tree


def dumped(tree: Any) -> bytes:
    """The tree as YAML; all but ASCII is escaped, halves of surrogate pairs too."""
    return yaml.safe_dump(tree, sort_keys=False).encode()


_PIECES = st.sampled_from(
    [
        *(
            b"",
            b"\x00",
            b"\xff\xfe",
            b"\xc3",
            b"\xed\xa0\x80",
            b"\xef\xbb\xbf",
            b"\t",
            b"\r",
            b"\n",
        ),
        *(
            b"\x1b[2J",
            b"'",
            b'"',
            b'""',
            b"&a ",
            b"*a",
            b"<<: *a",
            b"!!python/name:os.system ",
            b"!",
        ),
        *(b"[" * 2_000, b"{a: " * 500, b"- " * 2_000, b"? " * 500, b"9" * 5_000, b"%YAML 9.9\n"),
        *(
            b"---\n",
            b"...\n",
            b": ",
            b"{}",
            b"[]",
            b"|\n",
            b">",
            b"#",
            b"\\",
            b"\x85",
            b"\xe2\x80\xa8",
        ),
        *(b";", b",", b",,,,", b"1e999", b"0x1F", b"1:30", b".nan", b"2020-01-01", b"~", b"yes"),
    ]
)


@st.composite
def texts(draw: st.DrawFn, seeds: Sequence[bytes]) -> bytes:
    """One of the files, broken in one to four places."""
    data: bytes = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 4))):
        data = _broken(draw, data, seeds)
    return data


def _broken(draw: Draw, data: bytes, seeds: Sequence[bytes]) -> bytes:
    kind = draw(st.sampled_from(["insert", "insert", "line", "cut", "splice", "byte", "whole"]))
    at = draw(st.integers(0, max(len(data) - 1, 0)))
    if kind == "insert":
        piece = draw(_PIECES | st.binary(max_size=6))
        return data[:at] + piece + data[at:]
    if kind == "line":
        return _lines(draw, data)
    if kind == "cut":
        return draw(st.sampled_from([data[:at], data[at:], data[:at] + data[at + 20 :]]))
    if kind == "splice":
        other = draw(st.sampled_from(seeds))
        return data[:at] + other[draw(st.integers(0, max(len(other) - 1, 0))) :]
    if kind == "byte":
        return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
    codec = draw(st.sampled_from(["utf-16", "utf-32", "latin-1", "utf-8-sig"]))
    return data.decode("utf-8", "replace").encode(codec, "replace")


def _lines(draw: Draw, data: bytes) -> bytes:
    """A line goes, comes twice, or changes places or its indentation."""
    lines = data.splitlines(keepends=True) or [b""]
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    kind = draw(st.sampled_from(["delete", "repeat", "swap", "indent"]))
    if kind == "delete":
        del lines[i]
    elif kind == "repeat":
        lines.insert(j, lines[i] * draw(st.sampled_from([1, 2, 1_000])))
    elif kind == "swap":
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i] = b" " * draw(st.integers(1, 9)) + lines[i].lstrip()
    return b"".join(lines)
