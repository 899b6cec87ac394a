"""The verb `init`: drafts a config. Drafts hold no secrets, since people copy and commit them."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from anonlib.cli.shared import open_progress, write_text
from anonlib.config.checks.source_section import check_database, check_format, check_secrets
from anonlib.config.keys import read_secret_options
from anonlib.config.model import SourceSection
from anonlib.config.places import check_paths
from anonlib.errors import ConfigError, InputError, Problem, problems_of

if TYPE_CHECKING:
    from anonlib.guesses.draft import Draft
    from anonlib.progress import Progress


def run_init(args: argparse.Namespace) -> int:
    """Drafts a config and returns the exit code.

    Raises:
        ConfigError: An argument holds a secret, or is not valid.
        InputError: The output exists, or the source can't be read.
    """
    source = describe_source(args, args.source)
    out = None if args.out is None else Path(args.out)
    if out is not None:
        require_free(out)
    if args.ask and not sys.stdin.isatty():
        raise InputError("--ask: needs a terminal, and stdin is not one; leave it out")
    from anonlib.guesses.draft import format_draft

    with open_progress(args) as progress:
        draft = draft_table(args.source, args.format, source, progress)
        draft = _ask_in_terminal(draft) if args.ask else draft
        text = format_draft(draft, Path() if out is None else out.parent)
        if out is not None:
            write_text(out, text)
            progress.note(f"written: {out}; review its guesses, then check it")
    if out is None:
        sys.stdout.write(text)
    return 0


def require_free(out: Path) -> None:
    """Raises InputError if a file is there already."""
    if out.exists():
        raise InputError(f"{out}: is there already; name another file with --out")


def draft_table(
    table: str, kind: str | None, source: SourceSection, progress: "Progress"
) -> "Draft":
    """The draft for a table. kind: Its format; None for a guess."""
    from anonlib.guesses.draft import make_draft
    from anonlib.source.profile import profile

    return make_draft(profile(table, kind, source.options, progress, source.secrets))


def _ask_in_terminal(draft: "Draft") -> "Draft":
    """The draft with the answers of who sits at the terminal. Raises InputError if these end."""
    from anonlib.cli.questions import ask_all

    def say(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    def ask(question: str) -> str:
        sys.stderr.write(question)
        sys.stderr.flush()
        answer = sys.stdin.readline()
        if not answer:
            raise InputError("--ask: the answers ended; nothing was written")
        return answer

    return ask_all(draft, ask, say)


def describe_source(args: argparse.Namespace, table: str) -> SourceSection:
    """The section `source` that the arguments describe: how a table is read.

    Raises:
        ConfigError: An argument holds a secret, or is not valid.
        InputError: An option or a secret is no pair.
    """
    options, secrets = _pairs("--option", args.options), _pairs("--secret", args.secrets)
    given = {"format": args.format or "csv", "options": options, "secrets": secrets}
    try:
        source = SourceSection.model_validate(given)
        places = check_paths({"source.path": table})
        databases = _of_database(source, table) if args.format == "jdbc" else ()
        if found := [*check_format(source), *check_secrets(source), *places, *databases]:
            raise ConfigError(found)
        read_secret_options(source)
    except ValidationError as error:
        problems = problems_of(error, SourceSection, "source")
    except ConfigError as error:
        problems = [*error.problems]
    else:
        return source
    raise ConfigError([*_of_arguments(problems)])


def _of_database(source: SourceSection, table: str) -> Iterator[Problem]:
    """Problems of a database's options. The argument SOURCE names the table."""
    named = [name for name in source.options if name.lower() in ("dbtable", "query")]
    if named:
        yield Problem(
            f"source.options.{named[0]}",
            "SOURCE names the table, or is a query as `(SELECT ...) AS t`; take this away",
        )
        return
    whole = source.model_copy(update={"options": {**source.options, "dbtable": table}})
    yield from check_database(whole)


def _of_arguments(problems: Sequence[Problem]) -> Iterator[Problem]:
    """The problems, with the arguments in place of the fields of the config."""
    names = {
        "source.format": "--format",
        "source.options": "--option",
        "source.secrets": "--secret",
        "source.path": "SOURCE",
    }
    for problem in problems:
        section = ".".join(problem.where.split(".")[:2])
        name = problem.where.removeprefix(section).removeprefix(".")
        text = problem.text.replace("under source.secrets", "by --secret OPTION=VARIABLE")
        yield Problem(f"{names[section]} {name}".rstrip(), text)


def _pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    example = "delimiter=';'" if flag == "--option" else "password=PGPASSWORD"
    pairs = [text.partition("=") for text in texts]
    if not all(key and equals for key, equals, _ in pairs):
        raise InputError(f"{flag}: write KEY=VALUE, e.g. {flag} {example}")
    return {key: value for key, _, value in pairs}
