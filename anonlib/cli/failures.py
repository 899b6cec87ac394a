"""The text and the exit code of an error.

Errors of other libraries may contain raw values in their texts. Only their types are shown, unless
the user asks for more with --debug.
"""

import sys
import traceback
from typing import TYPE_CHECKING, Literal

from anonlib.errors import AnonlibError, ProblemsError, describe_unexpected
from anonlib.text import printable

if TYPE_CHECKING:
    from anonlib.progress import Progress

INTERRUPTED = "interrupted: stopped before it was done"
#: What happens to unfinished work, for verbs that write while they run.
_AFTERWARDS = {
    "release": "what is left behind is removed by the next run",
    "evaluate": "what is left behind is removed by the next run",
    "sweep": "results that are there are kept, and the next run goes on with the other points",
}
DEBUG_WARNING = "warning: what follows may contain data; read it before you pass it on"


def report_error(
    error: BaseException,
    *,
    log_format: Literal["text", "json"],
    debug: bool,
    config: str | None,
    verb: str | None,
    progress: "Progress | None",
) -> int:
    """Writes an error to stderr.

    Args:
        error: What ended the verb.
        log_format: Plain text, or one JSON object.
        debug: Whether to show the traceback, too. It may contain data.
        config: The path of the config, if known.
        verb: The verb, if known.
        progress: Knows the run's id and target; for JSON only.

    Returns:
        The exit code.
    """
    code = error.exit_code if isinstance(error, AnonlibError) else 1
    if debug:
        sys.stderr.write(f"{DEBUG_WARNING}\n")
        traceback.print_exception(error)
    if log_format == "json":
        _json(error, code, config, verb, progress)
    else:
        for line in _lines(error, config, verb):
            sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
    return code


def _lines(error: BaseException, config: str | None, verb: str | None) -> list[str]:
    usage = getattr(error, "usage", None)
    head = [usage.rstrip()] if isinstance(usage, str) else []
    if not isinstance(error, ProblemsError):
        kind = "" if isinstance(error, KeyboardInterrupt) else "error: "
        return [*head, kind + "\n".join(map(printable, _message(error, verb).splitlines()))]
    n = len(error.problems)
    problems = "1 problem" if n == 1 else f"{n} problems"
    place = f" in {printable(config)}" if config else ""
    bullets = [f"  - {printable(str(problem))}" for problem in error.problems]
    return [f"error: {problems}{place}:", *bullets]


def _json(
    error: BaseException,
    code: int,
    config: str | None,
    verb: str | None,
    progress: "Progress | None",
) -> None:
    from anonlib.cli.progress_lines import run_fields, write_json

    run = {} if progress is None else run_fields(progress)
    fields: dict[str, object] = {**run, "error": type(error).__name__, "exit_code": code}
    if isinstance(error, ProblemsError):
        fields["config"] = config
        fields["problems"] = [{"where": p.where, "text": p.text} for p in error.problems]
    else:
        fields["text"] = _message(error, verb)
    write_json(event="error", **fields)


def _message(error: BaseException, verb: str | None) -> str:
    if isinstance(error, KeyboardInterrupt):
        if str(error):  # what the run says of its state
            return str(error)
        return "; ".join(filter(None, [INTERRUPTED, _AFTERWARDS.get(verb or "")]))
    if isinstance(error, AnonlibError):
        return str(error)
    return describe_unexpected(error, "--debug shows it")
