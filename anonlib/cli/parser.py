"""The grammar of the command line, and its help."""

import argparse
from collections.abc import Sequence
from typing import Any

from anonlib.cli.grammar import (
    EXIT_CODES,
    SHOWN,
    Parser,
    add_conf,
    add_formats,
    add_overrides,
    add_verb,
    dedent_help,
    global_flags,
    utc_time,
    whole_number,
)
from anonlib.cli.hierarchy_parser import add_hierarchy

FORMATS = ("delta", "parquet", "csv")

# Environment variables that anonlib reads, with their descriptions in help.
_MIN_K = ("ANONLIB_MIN_K=20", "no config may have a smaller k")

_REQUIRE = ("ANONLIB_REQUIRE=approver,purpose", "what accountability, context must say")

_RUNS = ("ANONLIB_RUNS=private/runs", "the table of all runs, whatever configs say")

_EVENTS = ("ANONLIB_EVENTS=events/", "OpenLineage events, if not in the config")

_OF_ALL = (
    ("ANONLIB_JARS=FOLDER", "where Delta's jars are, or are put"),
    ("ANONLIB_MAVEN_URL=URL", "where they are fetched from"),
    ("ANONLIB_DEBUG=1", "keep what Spark logs, which may be data"),
)


def parse_args(argv: Sequence[str] | None, version: str) -> argparse.Namespace:
    """Parses arguments.

    Args:
        argv: The arguments; those of the process if None.
        version: The text that `--version` prints.

    Raises:
        UsageError: The arguments are not valid.
        SystemExit: With code 0, after `--help` and `--version`.
    """
    args: argparse.Namespace = make_parser(version).parse_args(argv)
    return args


def make_parser(version: str) -> Parser:
    """The parser of all verbs."""
    top = Parser(
        prog="anonlib",
        description="Anonymizes tables on Spark and Delta Lake, and audits what it publishes.",
        epilog=dedent_help(f"""
            examples:
              anonlib release --example                     see what it does
              anonlib init people.csv --out people.yaml     draft a config, then review it
              anonlib check people.yaml                     compare it with the table
              anonlib suggest people.yaml                   which kernel, which k
              anonlib release people.yaml                   anonymize, audit, publish
              anonlib release people.yaml --set seed=8 --set privacy.models.0.k=20
              anonlib evaluate people.yaml --trial          what a release would be worth
              anonlib audit out/people --conf people.yaml   verify any table
              anonlib show out/people                       look at what is published
              anonlib runs people.yaml                      past runs, their verdicts
              anonlib hierarchy build --help                make a generalization tree

            {EXIT_CODES}
        """),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[global_flags(default=True)],
        allow_abbrev=False,
    )
    _add_environment(top, _MIN_K, _REQUIRE, _RUNS, _EVENTS, *_OF_ALL)
    top.add_argument("--version", action="version", version=f"anonlib {version}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=Parser)
    for add in (
        _release,
        _audit,
        _evaluate,
        _check,
        _suggest,
        _sweep,
        _init,
        _schema,
        _plugins,
        add_hierarchy,
        _generate,
        _show,
        _report,
        _certificate,
        _verify,
        _runs,
    ):
        add(verbs)
    return top


def _release(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "release",
        "anonymize a table, audit the result, and publish it if it passes",
        f"""
            examples:
              anonlib release --example                      needs no config and no table
              anonlib release conf/adult.yaml --set kernel=mondrian --set seed=8
              anonlib release conf/adult.yaml --run-id 2026-01-31    done once

            {EXIT_CODES}
        """,
    )
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("conf", nargs="?", metavar="CONF", help="the config, a YAML file")
    given.add_argument(
        "--example",
        action="store_true",
        help="a table of invented people and its config, in the new folder ./anonlib-example",
    )
    add_overrides(parser)
    parser.add_argument(
        "--run-id",
        metavar="ID",
        help="the run's name; one that is committed is not run again (default: a new one)",
    )
    add_formats(parser)
    _add_environment(parser, _MIN_K, _REQUIRE, _RUNS, _EVENTS)


def _evaluate(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "evaluate",
        "measure what a release is worth and how risky it is, and judge it by the config's gates",
        f"""
            What to measure and the gates are the config's `evaluate` and `gates`;
            `anonlib measures NAME` lists what a measure has.

            examples:
              anonlib evaluate conf/adult.yaml               the published table
              anonlib evaluate conf/adult.yaml --trial       a release that is not published

            {EXIT_CODES}
        """,
    )
    add_conf(parser, "conf")
    parser.add_argument(
        "--trial", action="store_true", help="make, audit and measure a release; publish nothing"
    )
    add_formats(parser)
    _add_environment(parser, _MIN_K, _RUNS, _EVENTS)


def _audit(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "audit",
        "verify a published table against the privacy models of a config",
        f"""
            Classes are counted anew, by code of its own; the source is not read.

            examples:
              anonlib audit out/adult --conf conf/adult.yaml
              anonlib audit out/adult --conf conf/adult.yaml --set privacy.models.0.k=20
              anonlib audit out/adult --conf conf/adult.yaml --format junit > audit.xml

            {EXIT_CODES},
            5 persons can't be counted in the table: they were audited at release
        """,
    )
    parser.add_argument("table", metavar="TABLE", help="folder of a Delta table, or a Parquet file")
    add_conf(parser, "--conf", required=True)
    parser.add_argument(
        "--version",
        type=whole_number(0),
        metavar="N",
        help="the table's version (default: the latest)",
    )
    add_formats(parser, junit=True)
    _add_environment(parser, _MIN_K)


def _check(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "check",
        "compare a config with its source, and publish nothing",
        f"""
            Says what each column is released as, and all problems at once. The source is
            scanned, so that models which can't hold on it are found as well. What else
            stands in the way, such as a table that is there, is told and no error.

            example:
              anonlib check conf/adult.yaml

            {EXIT_CODES}
        """,
    )
    add_conf(parser, "conf")
    add_formats(parser)
    _add_environment(parser, _MIN_K, _REQUIRE)


def _suggest(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "suggest",
        "try kernels and k on a sample of a table, and suggest three of them",
        f"""
            Nothing is published. Each attempt is a release of the sample in memory,
            audited as any other. Losses are of the sample; where that is a part of
            the table, those of the whole table are smaller. For a table, a config
            is drafted as by init, and gets the kernel and the partitioner of the
            least loss; it is to be reviewed.

            examples:
              anonlib suggest people.csv                  drafts people.yaml
              anonlib suggest conf/adult.yaml
              anonlib suggest conf/adult.yaml --k 5 10 20 --seconds 120 --page tried.html

            {EXIT_CODES}
        """,
    )
    parser.add_argument(
        "conf", metavar="CONF|TABLE", help="the config, a YAML file; or a table, as init takes it"
    )
    add_overrides(parser)
    _add_attempts(parser)
    parser.add_argument("--page", metavar="FILE", help="a file for the page, private")
    # Here --format is that of the table.
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout")
    _add_source(parser.add_argument_group("of a table"), "TABLE.yaml in the working directory")
    _add_environment(parser, _MIN_K)


def _add_attempts(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that say what `suggest` tries, on how many rows, for how long."""
    parser.add_argument(
        "--k",
        nargs="+",
        type=whole_number(2),
        default=[5, 10, 20, 50],
        metavar="K",
        help="the k to try, besides the config's (default: 5 10 20 50)",
    )
    parser.add_argument(
        "--kernels", nargs="+", default=[], metavar="NAME", help="the kernels to try"
    )
    parser.add_argument(
        "--partitioners",
        nargs="+",
        default=[],
        metavar="NAME",
        help="partitioners to compare with the config's, in blocks of a quarter of the sample "
        "(default: mondrian, for a table of several blocks)",
    )
    parser.add_argument(
        "--rows",
        type=whole_number(100),
        default=20_000,
        metavar="N",
        help="about the most rows of the sample (default: 20000)",
    )
    parser.add_argument(
        "--seconds",
        type=whole_number(1),
        default=60,
        metavar="N",
        help="no attempt is begun after this time (default: 60)",
    )


def _sweep(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "sweep",
        "try a grid of configs on small tables in memory, and measure what each is worth",
        f"""
            Nothing is published. Results are appended to a private Delta table as they
            come; points that have one are not tried again. OUT/report.html is a page to
            choose a setting on, and to copy its config from.

            examples:
              anonlib sweep conf/papers/price.yaml --set seeds=3
              anonlib sweep conf/papers/price.yaml              goes on with the other seeds

            {EXIT_CODES}
        """,
    )
    parser.add_argument("conf", metavar="SWEEP", help="the sweep, a YAML file")
    add_overrides(parser)
    parser.add_argument("--retry", action="store_true", help="try points that failed again")
    add_formats(parser)
    _add_environment(parser, _MIN_K)


def _init(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "init",
        "look at a table and draft a config for it, every guess listed for review",
        """
            The draft has names, types and counts, but no value of the table.

            examples:
              anonlib init people.csv.gz --out people.yaml
              anonlib init people.csv.gz --out people.yaml --ask
              anonlib init shop.customers --format table
              anonlib init export.txt --format csv --option delimiter=';'
              anonlib init shop.customers --format jdbc --option user=me \\
                  --option url=jdbc:postgresql://HOST/DATABASE --secret password=PGPASSWORD
        """,
    )
    parser.add_argument(
        "source", metavar="SOURCE", help="file, folder, or table of a catalog or database"
    )
    _add_source(parser, "stdout")
    parser.add_argument(
        "--ask", action="store_true", help="ask about the guesses in the terminal, column by column"
    )


def _add_source(parser: Any, out: str) -> None:
    """Adds the flags that say how a table is read, and where the draft of its config goes.

    out: Where it goes by default.
    """
    parser.add_argument(
        "--format",
        metavar="F",
        help="csv, parquet, json, orc, delta, table, jdbc, ... (default: a guess)",
    )
    parser.add_argument(
        "--option",
        dest="options",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an option of Spark's reader; the draft has it, so no password and no key",
    )
    parser.add_argument(
        "--secret",
        dest="secrets",
        action="append",
        default=[],
        metavar="OPTION=VARIABLE",
        help="an option that is secret, by the name of the environment variable that has it",
    )
    parser.add_argument("--out", metavar="FILE", help=f"where to write the draft (default: {out})")


def _schema(verbs: Any) -> None:
    add_verb(
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
    for verb, what, name, field in (
        ("kernels", "the kernels", "mondrian", "kernel='{type: mondrian, mode: relaxed}'"),
        (
            *("models", "the privacy models", "p_sensitive"),
            "privacy.models.1='{type: p_sensitive, p: 3}'",
        ),
        ("partitioners", "the partitioners", "single", "partition.steps.0='{type: single}'"),
        ("recoders", "the recoders of columns", "interval", "recode.columns='{age: interval}'"),
        ("measures", "the measures of a release", "marginals", "evaluate.measures='[marginals]'"),
    ):
        parser = add_verb(
            verbs,
            verb,
            f"list {what}, or describe one: parameters, defaults, meaning, reference",
            f"""
                examples:
                  anonlib {verb} {name}
                  anonlib check people.yaml --set {field}
            """,
        )
        parser.add_argument("name", nargs="?", metavar="NAME", help="describe only this one")
        add_formats(parser)


def _generate(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "generate",
        "write a table of invented people, to try things out",
        """
            example:
              anonlib generate --rows 1000000 --out data/people
        """,
    )
    parser.add_argument(
        "--rows", type=whole_number(0), default=100_000, metavar="N", help=f"rows {SHOWN}"
    )
    parser.add_argument(
        "--seed",
        type=whole_number(None),
        default=0,
        metavar="S",
        help=f"same seed, same rows {SHOWN}",
    )
    parser.add_argument(
        "--out", required=True, metavar="PATH", help="the folder to write; it must not exist"
    )
    parser.add_argument(
        "--format", choices=FORMATS, default=FORMATS[0], help=f"how it is written {SHOWN}"
    )


def _show(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "show",
        "print some random rows of a published table",
        """
            example:
              anonlib show out/adult --rows 5
        """,
    )
    parser.add_argument("table", metavar="TABLE", help="folder of a published table")
    parser.add_argument(
        "--rows", type=whole_number(1), default=10, metavar="N", help=f"how many {SHOWN}"
    )
    parser.add_argument(
        "--force", action="store_true", help="show the table even if anonlib has not published it"
    )


def _report(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "report",
        "write the page of a release, or of two to compare, from their private records",
        """
            examples:
              anonlib report out/adult.private/2026-01-31.json
              anonlib report 2026-01-31 --conf conf/adult.yaml --out adult.html
              anonlib report 2026-01-31 --against 2025-12-31 --conf conf/adult.yaml
        """,
    )
    parser.add_argument(
        "--against",
        metavar="RUN",
        help="another run to compare with, named as RUN: what differs, what is better",
    )
    parser.add_argument("run", metavar="RUN", help="the run's private record; with --conf, its id")
    add_conf(parser, "--conf")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the HTML file (default: RUN.html or RUN.against.OTHER.html beside the record)",
    )


def _certificate(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "certificate",
        "write the certificate of a release, for a privacy officer to sign",
        """
            Two pages and annexes, in HTML made for paper, or in PDF (needs WeasyPrint).

            examples:
              anonlib certificate out/adult.private/2026-01-31.json
              anonlib certificate 2026-01-31 --conf conf/adult.yaml --out adult.pdf
        """,
    )
    parser.add_argument("run", metavar="RUN", help="the run's private record; with --conf, its id")
    add_conf(parser, "--conf")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the file, .html or .pdf (default: RUN.certificate.html beside the record)",
    )


def _verify(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "verify",
        "compare a certificate with the table that it is of, line by line",
        """
            Counts the table anew, and says which lines it confirms, and which it contradicts.

            examples:
              anonlib verify adult.certificate.html out/adult
              anonlib verify people.html people.parquet     a release of anonlib.anonymize
              anonlib verify adult.certificate.html out/adult --record RECORD   all lines

            exit codes: 0 no line is contradicted, 2 certificate or input,
            3 a line is contradicted, 1 else
        """,
    )
    parser.add_argument("certificate", metavar="CERTIFICATE", help="the certificate, in HTML")
    parser.add_argument("table", metavar="TABLE", help="folder of a Delta table, or a Parquet file")
    parser.add_argument(
        "--version",
        type=whole_number(0),
        metavar="N",
        help="the table's version (default: the latest)",
    )
    parser.add_argument("--record", metavar="FILE", help="the run's private record")
    add_formats(parser, junit=True)


def _runs(verbs: Any) -> None:
    parser = add_verb(
        verbs,
        "runs",
        "list the runs that ended, newest first: what they published, and what was verified",
        """
            Every run of `release` and `evaluate`, also one that failed once Spark had
            started, is noted in a private Delta table: RECORD/runs, or
            `accountability.runs` of its config.

            examples:
              anonlib runs conf/adult.yaml
              anonlib runs conf/adult.yaml --since 2026-01-31
              anonlib runs s3a://org/private/runs --target s3a://org/out/adult --json
              anonlib runs conf/batches.yaml --person - < person.json
        """,
    )
    parser.add_argument(
        "place",
        metavar="CONF|PATH",
        help="a config, a released table, or the folder of the table of runs",
    )
    add_overrides(parser)
    parser.add_argument(
        "--since",
        type=utc_time,
        metavar="TIME",
        help="only runs that ended at this time or later: 2026-01-31, or 2026-01-31T12:00 (UTC)",
    )
    parser.add_argument("--target", metavar="TABLE", help="only runs on this table")
    parser.add_argument(
        "--person",
        metavar="FILE",
        help="list the runs that released a person, by the config's ledger: a JSON object with "
        "the person's identifying columns as in the source; - reads it from stdin",
    )
    add_formats(parser)
    _add_environment(parser, _RUNS)


def _add_environment(parser: argparse.ArgumentParser, *variables: tuple[str, str]) -> None:
    """Appends environment variables to the help: pairs of an example and its effect."""
    lines = [f"  {name:<34}{text}" for name, text in variables]
    parser.epilog = "\n".join([f"{parser.epilog}\n", "environment:", *lines])
