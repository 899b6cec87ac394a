"""What the command line's verbs share: how they read the config, show progress, write results."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anonlib.errors import InputError

if TYPE_CHECKING:
    from anonlib.cli.progress_lines import ShownProgress
    from anonlib.config.model import Config


def config_of(args: argparse.Namespace, more: Sequence[str] = ()) -> "Config":
    """The config, before Spark is imported: what is wrong in it is said at once."""
    from anonlib.config.reading import load

    return load(args.conf, [*args.overrides, *more])


def progress_of(args: argparse.Namespace) -> "ShownProgress":
    """How this run shows its progress. It stays with the arguments, for who reports an error."""
    from anonlib.cli.progress_lines import make_progress

    args.progress = make_progress(args.log_format, quiet=args.quiet)
    progress: ShownProgress = args.progress
    return progress


def write_text(path: Path, text: str) -> None:
    """Writes a file. Raises InputError where that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: can't be written ({error.strerror or 'I/O error'})") from None


def print_json(value: object) -> None:
    """Prints a result on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
