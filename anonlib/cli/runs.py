"""The verb `runs`: lists past runs, or the runs that released a person."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from anonlib.cli.shared import load_config, open_progress, print_json
from anonlib.errors import InputError

if TYPE_CHECKING:
    from anonlib.config.model import Config

MAX_BYTES = 100_000
#: How a person is named.
_PERSON = (
    'it is a file with a JSON object such as {"person_id": "12345"}, or - for the same on stdin; '
    "values themselves are no arguments, since others see and shells keep these"
)


def run_runs(args: argparse.Namespace) -> int:
    """Lists past runs, or those that released a person, and returns the exit code.

    Raises InputError.
    """
    args.conf = args.place if _names_a_config(args.place) else None
    config = None if args.conf is None else load_config(args)
    if args.person is not None:
        _person(args, config)
        return 0
    from anonlib.run.account import find_runs_path
    from anonlib.run.run_table import list_past_runs

    with open_progress(args) as progress, progress.stage("look"):
        place = (
            args.place
            if config is None
            else find_runs_path(config.runs_folder, config.release.path)
        )
        runs = list_past_runs(place, args.since, args.target)
    if args.format == "json":
        print_json(runs)
    else:
        from anonlib.cli.show.run_list import print_runs

        print_runs(runs)
    return 0


def _names_a_config(place: str) -> bool:
    return Path(place).suffix in (".yaml", ".yml") or Path(place).is_file()


def _person(args: argparse.Namespace, config: "Config | None") -> None:
    if config is None:
        raise InputError("--person: needs a config, whose ledger knows who was released")
    person = _read_person(args.person)
    from anonlib.run.run_table import find_runs_of_person

    with open_progress(args) as progress, progress.stage("look"):
        found = find_runs_of_person(config, person)
    if args.format == "json":
        print_json(found)
    else:
        from anonlib.cli.show.run_list import print_person

        print_person(found)


def _read_person(path: str) -> dict[str, str]:
    """The identifying values of a person, by column, from a JSON file or stdin (`-`). They are no
    arguments, since other users of the machine see arguments, and shells keep them."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_BYTES)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MAX_BYTES)
        found = json.loads(data)
    except OSError as error:
        reason = error.strerror or "I/O error"
        raise InputError(f"--person: can't be read ({reason}); {_PERSON}") from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found or not all(map(_is_value, found.values())):
        raise InputError(f"--person: {_PERSON}")
    return {name: str(value) for name, value in found.items()}


def _is_value(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)
