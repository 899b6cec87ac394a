"""What the grammars of all verbs share: flags, types of arguments, help."""

import argparse
import re
import textwrap
from datetime import UTC, datetime
from typing import Any, NoReturn

from anonlib.errors import InputError, did_you_mean

#: Columns of help texts; longer lines would break on narrow terminals.
WIDTH = 79
EXIT_CODES = "exit codes: 0 done, 2 config or input, 3 audit failed, 4 gate failed, 1 else"

#: How help shows a default.
SHOWN = "(default: %(default)s)"


class UsageError(InputError):
    """The command line is not valid.

    Attributes:
        usage: argparse's usage text, which shows the right form.
    """

    def __init__(self, text: str, usage: str):
        super().__init__(text)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError where argparse would exit."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does. What is unknown is told by the verb's own parser, with its flags."""
        known, unknown = self.parse_known_args(args, namespace)
        if unknown:
            parser = self._of(known)
            flags = [text for action in parser._actions for text in action.option_strings]
            name, is_flag = unknown[0].partition("=")[0], unknown[0].startswith("-")
            near = did_you_mean(name, flags) if is_flag else ""
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
        return known

    def _of(self, known: argparse.Namespace) -> argparse.ArgumentParser:
        """The parser of the verb, and its action, that were given."""
        parser: argparse.ArgumentParser = self
        while verbs := [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]:
            parser = verbs[0].choices[getattr(known, verbs[0].dest)]
        return parser

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)$", message)
        if wrong is not None:
            message += did_you_mean(wrong[1], re.findall(r"[\w-]+", wrong[2]))
        raise UsageError(message, self.format_usage())


def global_flags(*, default: bool) -> argparse.ArgumentParser:
    """Flags that are allowed before and after the verb.

    Args:
        default: Whether flags that are not given get their defaults. False after the verb, where
            defaults would overwrite the values of flags before it.
    """

    def initially(value: Any) -> Any:
        return value if default else argparse.SUPPRESS

    flags = argparse.ArgumentParser(add_help=False)
    group = flags.add_argument_group("everywhere")
    group.add_argument(
        "--quiet", "-q", action="store_true", default=initially(False), help="show no progress"
    )
    group.add_argument(
        "--log-format",
        choices=("text", "json"),
        default=initially("text"),
        help="progress and errors on stderr as text, or as one JSON object per line",
    )
    group.add_argument(
        "--debug",
        action="store_true",
        default=initially(False),
        help="show tracebacks and Spark's own words, which may contain data",
    )
    return flags


def add_verb(verbs: Any, name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    """Adds a verb, or an action of a verb, with its help and the global flags.

    Args:
        verbs: argparse's group of verbs or actions.
        name: The name.
        summary: One line of help. With a capital and a full stop it is the description, too.
        epilog: Help after the arguments: examples, exit codes.
    """
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=textwrap.fill(summary[:1].upper() + summary[1:] + ".", WIDTH),
        epilog=dedent_help(epilog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[global_flags(default=False)],
        allow_abbrev=False,
    )
    return parser


def add_conf(parser: argparse.ArgumentParser, *flags: str, **more: Any) -> None:
    """Adds the argument that names a config, and the flag `--set`."""
    parser.add_argument(*flags, metavar="CONF", help="the config, a YAML file", **more)
    add_overrides(parser)


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Adds the flag `--set`, which overrides fields of the config."""
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a field of the config, as often as needed: privacy.models.0.k=5",
    )


def add_formats(parser: argparse.ArgumentParser, *, junit: bool = False) -> None:
    """Adds the flag `--format`: the result as text, JSON or JUnit's XML on stdout."""
    given = parser.add_mutually_exclusive_group()
    xml = "; junit: XML for CI, a test for each verdict" if junit else ""
    given.add_argument(
        "--format",
        choices=("text", "json", "junit") if junit else ("text", "json"),
        default="text",
        help=f"the result on stdout{xml} {SHOWN}",
    )
    given.add_argument(
        "--json", dest="format", action="store_const", const="json", help="as --format json"
    )


def whole_number(least: int | None) -> Any:
    """A type of argument: integers of 64 bits, at least `least` unless that is None."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                "a whole number is needed; if several are allowed, put blanks between them: 12 20"
                if "," in text
                else "a whole number is needed"
            ) from None
        if least is not None and number < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}")
        if abs(number) >= 2**63:
            raise argparse.ArgumentTypeError("must be less than 2^63, on both sides of 0")
        return number

    return parse


def utc_time(text: str) -> datetime:
    """A type of argument: dates and times, in UTC unless they name another zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("a date such as 2026-01-31 is needed") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def dedent_help(text: str) -> str:
    """A help text without the indentation of the code around it."""
    return textwrap.dedent(text).strip()
