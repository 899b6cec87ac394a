"""The grammar of `anonlib hierarchy`, and its help."""

import argparse
from typing import Any

from anonlib.cli.grammar import (
    EXIT_CODES,
    SHOWN,
    Parser,
    add_conf,
    add_formats,
    add_overrides,
    add_verb,
    whole_number,
)

#: Levels of a hierarchy of dates, from the finest to the coarsest.
DATE_LEVELS = ("day", "month", "quarter", "year", "decade")

_NOTES = """
    Missing values are no leaves: they stand under the root. The file holds the
    distinct values of the column, and its groups' names are published with what
    is released as them.
"""


def add_hierarchy(verbs: Any) -> None:
    """Adds the verb `hierarchy` and its actions."""
    parser = add_verb(
        verbs,
        "hierarchy",
        "build, look at, and check generalization trees",
        f"""
            examples:
              anonlib hierarchy build intervals --widths 5 10 20 --range 17 90 --out age.csv
              anonlib hierarchy show age.csv
              anonlib hierarchy check age.csv --conf conf/adult.yaml --column age

            {EXIT_CODES}
        """,
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=Parser
    )
    _build(actions)
    _show(actions)
    _check(actions)


def _build(actions: Any) -> None:
    parser = add_verb(
        actions,
        "build",
        "write a hierarchy over the values of a column, a list, or a range",
        f"{_NOTES}\n    anonlib hierarchy build KIND --help shows what a kind takes.",
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True, parser_class=Parser)
    _intervals(kinds)
    _mask(kinds)
    _dates(kinds)
    _groups(kinds)
    _frequency(kinds)
    _target(kinds)


def _intervals(kinds: Any) -> None:
    parser = _kind(
        kinds,
        "intervals",
        "intervals of numbers, of given widths or of about as many rows each",
        "anonlib hierarchy build intervals --widths 5 10 --range 17 90 --out age.csv",
        "anonlib hierarchy build intervals --parts 16 4 --values ages.txt --out age.csv",
    )
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument(
        "--widths",
        nargs="+",
        metavar="W",
        help="a level for each; each is a multiple of the one before: 5 10 20",
    )
    how.add_argument(
        "--parts",
        nargs="+",
        type=whole_number(2),
        metavar="N",
        help="intervals by level, from many to few, each dividing the one before: 16 4. Their "
        "bounds tell how the values are distributed",
    )
    parser.add_argument("--origin", metavar="X", help="where an interval begins (default: 0)")
    _add_values(parser, ranges="numbers")


def _mask(kinds: Any) -> None:
    parser = _kind(
        kinds,
        "mask",
        "characters masked from the right: 12345, 1234*, 123**",
        "anonlib hierarchy build mask --conf people.yaml --column zip --out zip.csv",
    )
    parser.add_argument(
        "--masked",
        nargs="+",
        type=whole_number(1),
        metavar="N",
        help="how many characters of the longest value each level masks (default: 1 2 3 ...)",
    )
    parser.add_argument(
        "--pad",
        default="",
        metavar="C",
        help="mask short values as if filled up with C on the left, such as 0 for numbers "
        "(default: don't)",
    )
    _add_values(parser, ranges="numbers")


def _dates(kinds: Any) -> None:
    parser = _kind(
        kinds,
        "dates",
        "days, months, quarters, years, decades",
        "anonlib hierarchy build dates --range 2020-01-01 2025-12-31 --out day.csv",
    )
    parser.add_argument(
        "--levels",
        nargs="+",
        choices=DATE_LEVELS,
        default=list(DATE_LEVELS),
        metavar="LEVEL",
        help=f"some of {', '.join(DATE_LEVELS)} (default: all)",
    )
    _add_values(parser, ranges="days")


def _groups(kinds: Any) -> None:
    parser = _kind(
        kinds,
        "groups",
        "neighbours of an ordered list",
        "anonlib hierarchy build groups --order low mid high --fan-out 2 --out pay.yaml",
    )
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--order", nargs="+", metavar="VALUE", help="the values, in their order")
    given.add_argument("--values", metavar="FILE", help="the values, in their order, one a line")
    parser.add_argument(
        "--fan-out",
        nargs="+",
        type=whole_number(2),
        required=True,
        metavar="N",
        help="how many neighbours make a group, a number for each level",
    )


def _frequency(kinds: Any) -> None:
    parser = _kind(
        kinds,
        "frequency",
        "rare values together, deep down (Huffman's tree); it tells what is how frequent",
        "anonlib hierarchy build frequency --values jobs.txt --out job.yaml",
    )
    _add_fan_out(parser)
    _add_values(parser)


def _target(kinds: Any) -> None:
    parser = _kind(
        kinds,
        "target",
        "values alike in a target together; it tells which are",
        "anonlib hierarchy build target --target income --conf people.yaml \\\n"
        "      --column job --out job.yaml",
    )
    parser.add_argument("--target", required=True, metavar="NAME", help="a column of few classes")
    _add_fan_out(parser)
    add_conf(parser, "--conf", required=True)
    parser.add_argument("--column", required=True, metavar="NAME", help="the column")


def _kind(kinds: Any, name: str, summary: str, *examples: str) -> argparse.ArgumentParser:
    parser = add_verb(kinds, name, summary, "\n  ".join(["examples:", *examples]))
    parser.add_argument("--out", required=True, metavar="FILE", help="what to write: .csv or .yaml")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--root", default="*", metavar="NAME", help=f"the root's name {SHOWN}")
    return parser


def _add_values(parser: argparse.ArgumentParser, ranges: str = "") -> None:
    """Adds the arguments that say where the values of a hierarchy come from.

    Args:
        parser: The parser to add them to.
        ranges: What `--range` is a range of, for its help; empty for no such argument.
    """
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--conf", metavar="CONF", help="a config: its source is read, with Spark")
    given.add_argument("--values", metavar="FILE", help="one value a line, repeated ones counted")
    if ranges:
        given.add_argument(
            "--range", nargs=2, metavar=("LOW", "HIGH"), help=f"all {ranges} from LOW to HIGH"
        )
        parser.add_argument("--step", metavar="X", help="of a range (default: 1)")
    parser.add_argument("--column", metavar="NAME", help="with --conf: the column")
    add_overrides(parser)


def _add_fan_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fan-out",
        type=whole_number(2),
        default=2,
        metavar="N",
        help=f"most nodes below one {SHOWN}",
    )


def _show(actions: Any) -> None:
    parser = add_verb(
        actions,
        "show",
        "print a hierarchy as a tree, the upper nodes first where it is large",
        """
            example:
              anonlib hierarchy show conf/hierarchies/education.yaml
        """,
    )
    parser.add_argument("file", metavar="FILE", help="CSV or YAML")
    parser.add_argument(
        "--nodes", type=whole_number(1), default=60, metavar="N", help=f"how many nodes {SHOWN}"
    )


def _check(actions: Any) -> None:
    parser = add_verb(
        actions,
        "check",
        "check a hierarchy, alone or against a column",
        f"""
            examples:
              anonlib hierarchy check conf/hierarchies/age.csv
              anonlib hierarchy check age.csv --conf conf/adult.yaml --column age

            Values without a leaf are counted; --debug shows them, on a terminal only.

            {EXIT_CODES}
        """,
    )
    parser.add_argument("file", metavar="FILE", help="CSV or YAML")
    add_conf(parser, "--conf")
    parser.add_argument("--column", metavar="NAME", help="with --conf: the column")
    add_formats(parser)
