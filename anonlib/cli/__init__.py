"""The command line. Verbs import Spark only when they need it."""

import argparse
import io
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from anonlib import __version__
from anonlib.cli import interrupt
from anonlib.cli.failures import report_error
from anonlib.cli.parser import make_parser, parse_args
from anonlib.cli.shared import load_config, open_progress, print_json
from anonlib.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUDIT_FAILED = 3

GATE_FAILED = 4

AUDITED_AT_RELEASE = 5


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one verb.

    Args:
        argv: The arguments; those of the process if None.

    Returns:
        The exit code: 0 done, 2 config or input error, 3 audit failed or certificate
        contradicted, 4 gate failed, 5 the table can't be audited by itself, 1
        any other error.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    _never_fail_to_print()
    if not argv:  # who does not know a verb is helped by more than the usage
        make_parser(__version__).print_help(sys.stderr)
        return InputError.exit_code
    args = argparse.Namespace(log_format=_log_format(argv), debug="--debug" in argv)
    try:
        args = parse_args(argv, __version__)
        with _hush(debug=args.debug):
            return interrupt.run_interruptible(lambda: _run(args))
    except SystemExit as done:  # --help and --version
        return int(done.code or 0)
    except BrokenPipeError:  # the reader of our output closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except BaseException as error:  # some are no Exception, such as panics of Rust
        return report_error(
            error,
            log_format=args.log_format,
            debug=args.debug,
            config=getattr(args, "conf", None),
            verb=getattr(args, "verb", None),
            progress=getattr(args, "progress", None),
        )


def _run(args: argparse.Namespace) -> int:
    """Runs the verb and returns its exit code. Stops the Spark session if the verb started it."""
    there = _session()
    if there is not None:  # Spark's active session is per thread, and this thread is new
        from anonlib.spark.session import activate

        activate(there)
    try:
        return VERBS[args.verb](args)
    finally:
        started = None if there is not None else _session()
        if started is not None:
            started.stop()


def _release(args: argparse.Namespace) -> int:
    run_id = [] if args.run_id is None else [f"release.run_id={json.dumps(args.run_id)}"]
    if args.example:
        from importlib.resources import as_file

        from anonlib.cli.example import TEMPLATE, print_next_steps, write_example

        with as_file(TEMPLATE) as path:  # what --set gets wrong is told before anything is written
            args.conf = str(path)
            load_config(args, run_id)
        with open_progress(args) as progress:
            args.conf = write_example(progress)
    config = load_config(args, run_id)
    from anonlib import pipeline

    with open_progress(args) as progress:
        result = pipeline.release(config, progress)
    if args.format == "json":
        print_json(result.to_dict())
    else:
        from anonlib.cli.show.summaries import print_release

        print_release(result, args.conf, args.overrides)
        if args.example:
            print_next_steps()
    return 0


def _audit(args: argparse.Namespace) -> int:
    config = load_config(args)
    from anonlib.in_hand.assessment import audit

    with open_progress(args) as progress:
        report = audit(args.table, config, progress, version=args.version)
    if args.format == "json":
        print_json(report.to_dict())
    elif args.format == "junit":
        from anonlib.cli.show.junit import as_junit, audit_cases

        sys.stdout.write(as_junit("audit", args.table, [*audit_cases(report)]))
    else:
        from anonlib.cli.show.summaries import print_audit

        print_audit(report, args.table)
    if report.at_release:
        return AUDITED_AT_RELEASE
    return 0 if report.passed else AUDIT_FAILED


def _evaluate(args: argparse.Namespace) -> int:
    config = load_config(args)
    from anonlib import pipeline

    with open_progress(args) as progress:
        result = pipeline.evaluate_delta(config, progress, trial=args.trial)
    if args.format == "json":
        print_json(result.to_dict())
    else:
        from anonlib.cli.show.summaries import print_evaluation

        print_evaluation(result, args.conf, args.overrides)
    passed = result.evaluation is None or all(gate.passed for gate in result.evaluation.gates)
    return 0 if passed else GATE_FAILED


def _check(args: argparse.Namespace) -> int:
    config = load_config(args)
    from anonlib import pipeline

    with open_progress(args) as progress:
        result = pipeline.check(config, progress)
    if args.format == "json":
        print_json(asdict(result))
    else:
        from anonlib.cli.show.summaries import print_check

        print_check(result, args.conf, args.overrides)
    return 0


def _suggest(args: argparse.Namespace) -> int:
    from anonlib.cli.suggest import run_suggest

    return run_suggest(args)


def _sweep(args: argparse.Namespace) -> int:
    from anonlib.sweeps.file import load_sweep

    sweep = load_sweep(args.conf, args.overrides)
    from anonlib import pipeline

    with open_progress(args) as progress:
        result = pipeline.sweep(sweep, progress, retry=args.retry)
    if args.format == "json":
        print_json(result.to_dict())
    else:
        from anonlib.cli.show.sweep_table import print_sweep

        print_sweep(result)
    return 0


def _init(args: argparse.Namespace) -> int:
    from anonlib.cli.init import run_init

    return run_init(args)


def _schema(_args: argparse.Namespace) -> int:
    from anonlib.config.json_schema import make_json_schema

    print_json(make_json_schema())
    return 0


def _plugins(args: argparse.Namespace) -> int:
    from anonlib.config.listing import LISTED, describe_plugin, list_plugins

    family = LISTED[args.verb]
    one = None if args.name is None else describe_plugin(family, args.name)
    listings = list_plugins(family) if one is None else (one,)
    if args.format == "json":
        print_json([asdict(listing) for listing in listings])
        return 0
    from anonlib.cli.show.summaries import print_listing, print_listings

    if one is None:
        print_listings(listings, args.verb)
    else:
        print_listing(one)
    return 0


def _hierarchy(args: argparse.Namespace) -> int:
    from anonlib.cli.hierarchy import run_hierarchy

    return run_hierarchy(args)


def _generate(args: argparse.Namespace) -> int:
    from anonlib.source.look import write_people

    with open_progress(args) as progress:
        write_people(args.out, args.format, args.rows, args.seed, progress)
        progress.note(f"written: {args.out}, {args.rows:,} rows of invented people")
    return 0


def _report(args: argparse.Namespace) -> int:
    from anonlib.pages.output import report as write_report

    write = partial(write_report, against=args.against)
    return _write_page(args, write, "private")


def _certificate(args: argparse.Namespace) -> int:
    from anonlib.pages.output import certify

    return _write_page(args, certify, "for those who sign")


def _write_page(args: argparse.Namespace, write: Callable[..., str], whom: str) -> int:
    """Writes a page of a run. whom: who may read it."""
    from anonlib.cli.show.summaries import local

    config = None if args.conf is None else load_config(args)
    with open_progress(args) as progress:
        out = write(args.run, config, args.out)
        progress.note(f"written: {local(out)} ({whom})")
    return 0


def _verify(args: argparse.Namespace) -> int:
    from anonlib.in_hand.verification import verify

    with open_progress(args) as progress:
        lines = verify(
            args.certificate, args.table, progress, version=args.version, record=args.record
        )
    if args.format == "json":
        print_json([asdict(line) for line in lines])
    elif args.format == "junit":
        from anonlib.cli.show.junit import as_junit, make_line_cases

        sys.stdout.write(as_junit("verify", args.table, [*make_line_cases(lines)]))
    else:
        from anonlib.cli.show.line_verdicts import print_lines

        print_lines(lines)
    return AUDIT_FAILED if any(line.state == "contradicted" for line in lines) else 0


def _runs(args: argparse.Namespace) -> int:
    from anonlib.cli.runs import run_runs

    return run_runs(args)


def _show(args: argparse.Namespace) -> int:
    from anonlib.cli.show.summaries import print_rows
    from anonlib.source.look import read_published_rows

    names, rows = read_published_rows(args.table, args.rows, force=args.force)
    print_rows(names, rows)
    return 0


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "release": _release,
    "audit": _audit,
    "evaluate": _evaluate,
    "check": _check,
    "suggest": _suggest,
    "sweep": _sweep,
    "init": _init,
    "schema": _schema,
    "kernels": _plugins,
    "models": _plugins,
    "partitioners": _plugins,
    "recoders": _plugins,
    "measures": _plugins,
    "hierarchy": _hierarchy,
    "generate": _generate,
    "show": _show,
    "report": _report,
    "certificate": _certificate,
    "verify": _verify,
    "runs": _runs,
}


def _session() -> "SparkSession | None":
    """The existing Spark session, or None. Starts and imports nothing."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession._instantiatedSession


def _log_format(argv: Sequence[str]) -> Literal["text", "json"]:
    """The log format in raw arguments, for errors that occur before they are parsed."""
    wanted = ("--log-format", "json") in pairwise(argv) or "--log-format=json" in argv
    return "json" if wanted else "text"


def _never_fail_to_print() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def _hush(*, debug: bool) -> Iterator[None]:
    """Silences logs and warnings of libraries, unless debug: they may contain data."""
    if debug:
        yield
        return
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
