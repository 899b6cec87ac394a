"""What all verbs share: they read the config, show progress and write results."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anonlib.errors import refuse_to_write

if TYPE_CHECKING:
    from anonlib.cli.progress_lines import ShownProgress
    from anonlib.config.model import Config


def load_config(args: argparse.Namespace, more: Sequence[str] = ()) -> "Config":
    """Reads the config of the arguments.

    Called before Spark is imported, so that problems are reported at once.

    Args:
        args: The parsed arguments.
        more: Further overrides, which win over those of `--set`.

    Raises:
        InputError: The file can't be read.
        ConfigError: The config is not valid.
    """
    from anonlib.config.reading import load

    return load(args.conf, [*args.overrides, *more])


def open_progress(args: argparse.Namespace) -> "ShownProgress":
    """The progress for the flags. It is kept as `args.progress`, for the report of an error."""
    from anonlib.cli.progress_lines import make_progress

    output = getattr(args, "format", None) or "text"
    args.progress = make_progress(args.log_format, quiet=args.quiet, output=output)
    progress: ShownProgress = args.progress
    return progress


def write_text(path: Path, text: str) -> None:
    """Writes a text file. Raises InputError if that fails."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise refuse_to_write(path, error) from None


def print_json(value: object) -> None:
    """Prints a value as JSON on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
