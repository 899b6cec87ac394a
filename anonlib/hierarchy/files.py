"""Reads and writes files of hierarchies, as trees of names: ARX's CSV and nested YAML."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from anonlib.errors import InputError

#: ARX writes the first. A file is read with the separator that gives the most plausible hierarchy.
SEPARATORS = ";,"
#: Most bytes of a file: of CSV, and of YAML, which takes far longer to read.
MAX_BYTES, MAX_YAML_BYTES = 100_000_000, 5_000_000
#: Most nodes, and most levels, of a tree.
MAX_NODES, MAX_DEPTH = 2_000_000, 2_000
#: Texts that need no quotes in YAML, unless YAML reads them as numbers or the like.
_PLAIN = re.compile(r"\w[\w .+*/()<>=%&$-]*(?<! )")
#: Most characters of a key that YAML reads without a question mark before it.
_LONGEST_KEY = 1_000
#: The tag that YAML gives a text without quotes.
_tag: Callable[..., str] = yaml.resolver.Resolver().resolve
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class NamedTree:
    """A tree of names that grows node by node.

    Node 0 is the root. Every other node comes after its parent, and siblings are in order.

    Attributes:
        names: The name of each node.
        parent: The parent of each node. The root is its own parent.
        lines: The line of the file that names each node first; 0 for none.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.parent: list[int] = []
        self.lines: list[int] = []
        self._depth: list[int] = []

    def add(self, name: str, parent: int | None, line: int = 0) -> int:
        """Adds a node and returns its number. The first node is the root, without a parent.

        Raises:
            InputError: The tree is too large.
        """
        depth = 0 if parent is None else self._depth[parent] + 1
        if len(self.names) >= MAX_NODES:
            _refuse([f"has more than {MAX_NODES:,} values and groups"])
        if depth > MAX_DEPTH:
            _refuse([f"{_lines([line])} more than {MAX_DEPTH:,} groups within each other"])
        self._depth.append(depth)
        self.names.append(name)
        self.parent.append(0 if parent is None else parent)
        self.lines.append(line)
        return len(self.names) - 1

    def below(self) -> list[list[int]]:
        """The children of every node."""
        below: list[list[int]] = [[] for _ in self.names]
        for node in range(1, len(self.names)):
            below[self.parent[node]].append(node)
        return below

    def repeated(self) -> list[int]:
        """The nodes that have the name of an earlier node."""
        first: dict[str, int] = {}
        return [i for i, name in enumerate(self.names) if first.setdefault(name, i) != i]


def _lines(lines: Sequence[int]) -> str:
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"line {lines[0]}{more}: {'have' if more else 'has'}"


def _refuse(problems: Sequence[str]) -> NoReturn:
    raise InputError("; ".join(problems))


def _require_single(nodes: NamedTree, problems: Sequence[str] = ()) -> NamedTree:
    """Returns the tree. Raises InputError if there are problems, or if two nodes share a name."""
    repeated = [nodes.lines[node] for node in nodes.repeated()]
    if repeated:
        again = f"{_lines(repeated)} a name that is also elsewhere in the tree; rename one"
        problems = [*problems, again]
    if problems:
        _refuse(problems)
    return nodes


@dataclass(frozen=True)
class Row:
    """A value and the groups above it, up to the root.

    Attributes:
        names: The value first, the root last.
        line: The line in the file; 0 for none.
    """

    names: Sequence[str]
    line: int = 0


def parse_csv(text: str) -> NamedTree:
    """Parses a CSV text. Raises InputError with all problems, by line."""
    readings = [rows for each in SEPARATORS if (rows := _rows(text, each)) is not None]
    if not readings:
        _refuse([f"not CSV, or a name of more than {csv.field_size_limit():,} characters"])
    rows = min(readings, key=_doubts)
    problems = [*_row_problems(rows)]
    if problems:
        _refuse(problems)
    nodes, values = grow_tree(rows)
    inner = set(nodes.parent[1:])
    groups = [row.line for row, node in zip(rows, values, strict=True) if node in inner]
    problems = [f"{_lines(groups)} a value that is a group of others"] if groups else []
    return _require_single(nodes, problems)


def grow_tree(rows: Sequence[Row]) -> tuple[NamedTree, list[int]]:
    """Makes a tree of rows that share their root. Returns it, and the node of each row's value."""
    nodes, values = NamedTree(), []
    nodes.add(rows[0].names[-1], None, rows[0].line)
    numbers: dict[tuple[int, str], int] = {}
    for row in rows:
        node = 0
        for name in reversed(row.names[:-1]):
            if (node, name) not in numbers:
                numbers[node, name] = nodes.add(name, node, row.line)
            node = numbers[node, name]
        values.append(node)
    return nodes, values


def _rows(text: str, separator: str) -> list[Row] | None:
    rows = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        for fields in reader:
            while fields and not fields[-1]:
                fields.pop()
            names = [name for i, name in enumerate(fields) if i == 0 or name != fields[i - 1]]
            if names:
                rows.append(Row(names, reader.line_num))
    except csv.Error:
        return None
    return rows


def _doubts(rows: list[Row]) -> tuple[int, int]:
    """Measures how little rows look like a hierarchy: values without a group, number of roots."""
    return sum(len(row.names) < 2 for row in rows), len({row.names[-1] for row in rows})


def _row_problems(rows: list[Row]) -> Iterator[str]:
    if not rows:
        yield "has no rows"
        return
    short = [row.line for row in rows if len(row.names) < 2]
    if short:
        tabs = all("\t" in name for row in rows for name in row.names)
        hint = "; separate names by commas, not by tabs" if tabs else ""
        yield f"{_lines(short)} no group above the value{hint}"
    hollow = [row.line for row in rows if "" in row.names[1:]]
    if hollow:
        yield f"{_lines(hollow)} an empty name between others"
    roots = Counter(row.names[-1] for row in rows)
    if len(roots) > 1:
        root = roots.most_common(1)[0][0]
        others = [row.line for row in rows if row.names[-1] != root]
        hint = ""
        if len({row.names[0] for row in rows}) == 1:
            hint = "; the root stands last in each line, and the value first"
        elif others == [rows[0].line] and len(rows) > 2:
            hint = "; if it is a header, remove it"
        yield f"{_lines(others)} another root than most{hint}"
    seen: set[str] = set()
    again = []
    for row in rows:
        if row.names[0] in seen:
            again.append(row.line)
        seen.add(row.names[0])
    if again:
        yield f"{_lines(again)} a value of an earlier row"


def to_csv(nodes: NamedTree) -> str:
    """Writes a CSV text that `parse_csv` reads as this tree."""
    inner = set(nodes.parent[1:])
    above: list[list[str]] = []
    rows = []
    for node, name in enumerate(nodes.names):
        way = [name, *(above[nodes.parent[node]] if node else ())]
        above.append(way if node in inner else [])
        if node not in inner:
            rows.append(SEPARATORS[0].join(map(_csv_field, way)) + "\n")
    text = "".join(rows)
    # If the first name begins with a byte order mark, readers drop the mark: write another one.
    return f"\ufeff{text}" if text.startswith("\ufeff") else text


def _csv_field(name: str) -> str:
    # csv.writer leaves a lone carriage return bare.
    if not any(c in f'{SEPARATORS}"\r\n' for c in name):
        return name
    return '"' + name.replace('"', '""') + '"'


def parse_yaml(text: str) -> NamedTree:
    """Parses a nested YAML text. Raises InputError with all problems, by line."""
    reader = _YamlReader()
    try:
        # Events allow any depth, and keep texts as they are written.
        for event in yaml.parse(text, yaml.SafeLoader):
            reader.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)  # the text of the error may show a value
        _refuse([f"line {mark.line + 1}: is not valid YAML" if mark else "not valid YAML"])
    return reader.finish()


@dataclass
class _Open:
    """A mapping or list that is being read.

    Attributes:
        node: The node whose content it is; None for the whole file.
        mapping: Whether it is a mapping.
        key: The node of the mapping's key whose content comes next, or None.
    """

    node: int | None
    mapping: bool
    key: int | None = None


class _YamlReader:
    def __init__(self) -> None:
        self.nodes = NamedTree()
        self.groups: list[int] = []
        self.open: list[_Open] = []

    def take(self, event: Any) -> None:
        """Reads the next event of a YAML text."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent) and self.nodes.names:
            _refuse([f"line {line}: has another document"])
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            _refuse(
                [f"line {line}: has an anchor or alias, which is not allowed; write the names out"]
            )
        if getattr(event, "tag", None):
            _refuse([f"line {line}: has a tag, which is not allowed; remove it"])
        if isinstance(event, yaml.CollectionEndEvent):
            self.open.pop()
            self._end_content()
        elif isinstance(event, yaml.NodeEvent):
            if not self.open and not isinstance(event, yaml.MappingStartEvent):
                _refuse([f'line {line}: has no root; begin with one, such as "*":'])
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event, line)
            else:
                self._collection(isinstance(event, yaml.MappingStartEvent), line)

    def finish(self) -> NamedTree:
        """The tree, after the last event."""
        if not self.nodes.names:
            _refuse(["has no root"])
        inner = set(self.nodes.parent[1:])
        names, lines = self.nodes.names, self.nodes.lines
        without = [lines[node] for node in self.groups if node not in inner]
        hollow = [lines[node] for node in self.groups if not names[node]]
        problems = [f"{_lines(without)} a group without a value"] if without else []
        problems += [f"{_lines(hollow)} a group without a name"] if hollow else []
        return _require_single(self.nodes, problems)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        top = self.open[-1]
        if top.mapping and top.key is None:
            if top.node is None and self.nodes.names:
                _refuse([f"line {line}: has another root"])
            top.key = self.nodes.add(event.value, top.node, line)
            self.groups.append(top.key)
            return
        present = event.value or event.style is not None
        if present:
            self.nodes.add(event.value, top.key if top.mapping else top.node, line)
        elif not top.mapping:
            _refuse([f"line {line}: has an empty item; write '' for an empty text"])
        self._end_content()

    def _collection(self, mapping: bool, line: int) -> None:
        top = self.open[-1] if self.open else None
        if top is None:
            self.open.append(_Open(None, mapping))
            return
        if top.mapping and top.key is None:
            _refuse([f"line {line}: has a name that is not a text"])
        if not top.mapping and not mapping:
            _refuse([f"line {line}: has a list in a list; give the inner one a name"])
        self.open.append(_Open(top.key if top.mapping else top.node, mapping))

    def _end_content(self) -> None:
        """Ends the content of a key of the innermost mapping."""
        if self.open and self.open[-1].mapping:
            self.open[-1].key = None


def to_yaml(nodes: NamedTree) -> str:
    """Writes a YAML text that `parse_yaml` reads as this tree."""
    below = nodes.below()
    lines = []
    todo = [(0, 0, "")]  # node, indentation, mark before it
    while todo:
        node, indent, mark = todo.pop()
        text, start = _yaml_scalar(nodes.names[node]), " " * indent + mark
        if not below[node]:
            lines.append(f"{start}{text}")
            continue
        inner = indent + len(mark)
        if len(text) > _LONGEST_KEY:
            lines += [f"{start}? {text}", f"{' ' * inner}:"]
        else:
            lines.append(f"{start}{text}:")
        dash = "" if all(below[child] for child in below[node]) else "- "
        todo += [(child, inner + 2, dash) for child in reversed(below[node])]
    return "\n".join(lines) + "\n"


def _yaml_scalar(name: str) -> str:
    """A name in YAML, such that every reader of YAML reads it as this text."""
    if _PLAIN.fullmatch(name):
        tag = _tag(yaml.ScalarNode, name, (True, False))
        if tag == "tag:yaml.org,2002:str":
            return name
    plain = (c if c.isprintable() and c not in _ESCAPED else _escape(c) for c in name)
    return f'"{"".join(plain)}"'


def _escape(c: str) -> str:
    return _ESCAPED.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 2**16 else f"\\U{ord(c):08x}")
