"""The command line's grammar and its help."""

import argparse
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from anonlib.errors import InputError

EXIT_CODES = "exit codes: 0 done, 2 config or input error, 3 audit failed, 1 anything else"
FORMATS = ("delta", "parquet", "csv")


class UsageError(InputError):
    """The command line can't be understood; `usage` is how it should look."""

    def __init__(self, text: str, usage: str):
        super().__init__(text)
        self.usage = usage


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())


def parse_args(argv: Sequence[str] | None, version: str) -> argparse.Namespace:
    """The arguments. Raises UsageError; SystemExit(0) after --help and --version."""
    top = _Parser(
        prog="anonlib",
        description="Anonymizes tables on Spark and Delta Lake, and audits what it publishes.",
        epilog=_text(f"""
            examples:
              anonlib init people.csv --out people.yaml     draft a config, then review it
              anonlib check people.yaml                     compare it with the table
              anonlib release people.yaml                   anonymize, audit, publish
              anonlib release people.yaml --set seed=8 --set privacy.models.0.k=20
              anonlib audit out/people --conf people.yaml   verify any table
              anonlib show out/people                       look at what is published

            {EXIT_CODES}
        """),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_global_flags(default=True)],
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"anonlib {version}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for add in (_release, _audit, _check, _init, _schema, _plugins, _generate, _show):
        add(verbs)
    return top.parse_args(argv)


def _global_flags(*, default: bool) -> argparse.ArgumentParser:
    """Flags that stand before or after the verb; there they must not undo what stood before."""

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


def _add(verbs: Any, name: str, summary: str, epilog: str = "") -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=summary[:1].upper() + summary[1:] + ".",
        epilog=_text(epilog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_global_flags(default=False)],
        allow_abbrev=False,
    )
    return parser


def _add_conf(parser: argparse.ArgumentParser, *flags: str, **more: Any) -> None:
    parser.add_argument(*flags, metavar="CONF", help="the config, a YAML file", **more)
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a field of the config, e.g. --set privacy.models.0.k=5",
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout")


def _release(verbs: Any) -> None:
    parser = _add(
        verbs,
        "release",
        "anonymize a table, audit the result, and publish it if it passes",
        f"""
            examples:
              anonlib release conf/quickstart.yaml
              anonlib release conf/adult.yaml --set kernel=mondrian --set release.mode=overwrite
              anonlib release conf/adult.yaml --run-id 2026-01-31    done once, however often run

            {EXIT_CODES}
        """,
    )
    _add_conf(parser, "conf")
    parser.add_argument("--run-id", metavar="ID", help="a run that is committed is not repeated")
    _add_json(parser)


def _audit(verbs: Any) -> None:
    parser = _add(
        verbs,
        "audit",
        "verify a published table against the privacy models of a config",
        f"""
            example:
              anonlib audit out/adult --conf conf/adult.yaml

            {EXIT_CODES}
        """,
    )
    parser.add_argument("table", metavar="TABLE", help="folder of a Delta table")
    _add_conf(parser, "--conf", required=True)
    parser.add_argument(
        "--version",
        type=_number(0),
        metavar="N",
        help="the table's version; the latest if left out",
    )
    _add_json(parser)


def _check(verbs: Any) -> None:
    parser = _add(verbs, "check", "compare a config with its source, and run nothing")
    _add_conf(parser, "conf")
    _add_json(parser)


def _init(verbs: Any) -> None:
    parser = _add(
        verbs,
        "init",
        "look at a table and draft a config for it, every guess marked for review",
        """
            examples:
              anonlib init people.csv.gz --out people.yaml
              anonlib init shop.customers --format table
              anonlib init export.txt --format csv --option delimiter=';' --option header=true
        """,
    )
    parser.add_argument("source", metavar="SOURCE", help="file, folder, or catalog table")
    parser.add_argument(
        "--format", metavar="F", help="csv, parquet, json, orc, delta, table, ...; else guessed"
    )
    parser.add_argument(
        "--option",
        dest="options",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of Spark's reader",
    )
    parser.add_argument("--out", metavar="FILE", help="where to write it; stdout if left out")


def _schema(verbs: Any) -> None:
    _add(
        verbs,
        "schema",
        "print the JSON schema of configs, for editors",
        """
            example:
              anonlib schema > anonlib.schema.json
              then begin a config with: # yaml-language-server: $schema=anonlib.schema.json
        """,
    )


def _plugins(verbs: Any) -> None:
    for verb, what, field in (
        ("kernels", "the kernels", "kernel='{type: mondrian, mode: relaxed}'"),
        ("models", "the privacy models", "privacy.models.1='{type: t_closeness, t: 0.3}'"),
        ("partitioners", "the partitioners", "partition.steps.0='{type: single}'"),
    ):
        parser = _add(
            verbs,
            verb,
            f"list {what}: parameters, defaults, meaning, reference",
            f"""
                example:
                  anonlib release conf/adult.yaml --set {field}
            """,
        )
        _add_json(parser)


def _generate(verbs: Any) -> None:
    parser = _add(
        verbs,
        "generate",
        "write a table of invented people, to try things out",
        """
            example:
              anonlib generate --rows 1000000 --out data/people
        """,
    )
    parser.add_argument("--rows", type=_number(0), default=100_000, metavar="N", help="100000")
    parser.add_argument("--seed", type=_number(None), default=0, metavar="S", help="0")
    parser.add_argument("--out", required=True, metavar="PATH", help="folder to write; not there")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help=FORMATS[0])


def _show(verbs: Any) -> None:
    parser = _add(
        verbs,
        "show",
        "print some rows of a published table",
        """
            example:
              anonlib show out/adult --rows 5
        """,
    )
    parser.add_argument("table", metavar="TABLE", help="folder of a published table")
    parser.add_argument("--rows", type=_number(1), default=10, metavar="N", help="10")
    parser.add_argument(
        "--force", action="store_true", help="also a table that anonlib has not published"
    )


def _number(least: int | None) -> Any:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError("a whole number is needed") from None
        if (least is not None and number < least) or abs(number) >= 2**63:
            raise argparse.ArgumentTypeError("out of range")
        return number

    return parse


def _text(text: str) -> str:
    return textwrap.dedent(text).strip()
