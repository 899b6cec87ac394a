"""The verb `suggest`: tries settings on a sample of a config's source, or of a table, for which it
drafts a config."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anonlib import registry
from anonlib.cli.init import describe_source, draft_table, require_free
from anonlib.cli.shared import load_config, open_progress, print_json, write_text
from anonlib.config.extension import guess_format
from anonlib.config.paths import name_file
from anonlib.config.reading import read_raw
from anonlib.errors import InputError

if TYPE_CHECKING:
    from anonlib.config.model import Config
    from anonlib.guesses.draft import Draft
    from anonlib.in_hand.suggestion import Suggestion
    from anonlib.progress import Progress

#: What is compared with the partitioner of a draft, where its table has several blocks.
PARTITIONERS = ("mondrian",)
#: How the names of configs end. JSON is YAML; a table of JSON is named with `--format`.
CONFIGS = (".yaml", ".yml", ".json")


def run_suggest(args: argparse.Namespace) -> int:
    """Tries settings, prints the best, and returns the exit code. For a table it writes a draft
    that has them.

    Raises:
        ConfigError: The config or an argument is not valid.
        InputError: The argument is neither a config nor a table, can't be read, or the output is
            there already.
        InfeasibleError: The values rule out the config. The draft of a table is written then.
    """
    for family, names in (("kernel", args.kernels), ("partitioner", args.partitioners)):
        for name in names:
            registry.plugin(family, name, f"--{family}s")
    if args.page is not None:
        from anonlib.pages.output import require_new_page

        require_new_page(args.page)
    is_table = _is_table(args)
    found = _suggest_for_table(args) if is_table else _suggest_for_config(args)
    if args.json:
        print_json(found.to_dict() | ({"draft": args.conf} if is_table else {}))
    else:
        from anonlib.cli.show.suggestions import print_suggestion

        own = found.choices[0].config if is_table and found.choices else found.config
        print_suggestion(found, args.conf, own, args.overrides, args.page)
    return 0


def _is_table(args: argparse.Namespace) -> bool:
    """Whether the argument is a table, by its flags or its name; a folder is one."""
    is_json = args.conf.lower().endswith(".json")
    named = guess_format(args.conf) is not None and not is_json
    return args.format is not None or named or Path(args.conf).is_dir()


def _suggest_for_config(args: argparse.Namespace) -> "Suggestion":
    flags = {"--out": args.out, "--option": args.options, "--secret": args.secrets}
    if given := [flag for flag, value in flags.items() if value]:
        raise InputError(
            f"{', '.join(given)}: only for a table, and {args.conf} is taken as a config; for a "
            "table whose name does not tell its format, add --format"
        )
    _require_config(args.conf)
    config = load_config(args)
    with open_progress(args) as progress:
        return _try(args, config, args.partitioners, progress)


def _require_config(path: str) -> None:
    """Raises InputError for a file that is neither a config nor a table."""
    if path.lower().endswith(CONFIGS) or not Path(path).is_file():
        return  # `load` says what is wrong
    try:
        is_config = isinstance(read_raw(path), Mapping)
    except InputError:
        is_config = False
    if not is_config:
        raise InputError(
            f"{path}: is neither a config (a YAML file) nor a table (.csv, .tsv, .parquet, .orc, "
            ".jsonl or a folder); name the format of a table with --format"
        )


def _suggest_for_table(args: argparse.Namespace) -> "Suggestion":
    """Drafts a config, tries it, and writes the draft again with what is best. `args.conf` becomes
    its file."""
    if args.overrides:
        raise InputError(
            f"--set: changes a config, and {args.conf} is a table; draft its config with `anonlib "
            "init`, then call `anonlib suggest` with that"
        )
    table, source = args.conf, describe_source(args, args.conf)
    out = Path(args.out or f"{name_file(table)}.yaml")
    require_free(out)
    from anonlib.guesses.draft import format_draft

    with open_progress(args) as progress:
        draft = draft_table(table, args.format, source, progress)
        write_text(out, format_draft(draft, out.parent))
        progress.note(f"written: {out}, a draft as `anonlib init` makes it")
        args.conf = str(out)
        config = load_config(args)
        is_cut = draft.profile.n_rows > config.partition.max_rows
        others = args.partitioners or (PARTITIONERS if is_cut else ())
        found = _try(args, config, others, progress)
        if found.choices:
            write_text(out, format_draft(_choose(draft, found), out.parent))
            progress.note(f"written: {out}, with the first choice; review its guesses")
    return found


def _choose(draft: "Draft", suggestion: "Suggestion") -> "Draft":
    """The draft with the first choice."""
    best = suggestion.choices[0]
    return replace(
        draft,
        kernel=best.config.kernel.type,
        partitioner=best.config.partition.steps[0].type,
        evidence=f"The least loss by `anonlib suggest` ({suggestion.notes[0]}): {best.reason}",
    )


def _try(
    args: argparse.Namespace, config: "Config", partitioners: Sequence[str], progress: "Progress"
) -> "Suggestion":
    from anonlib.in_hand.anonymization import suggest_for_source
    from anonlib.in_hand.suggestion import SuggestOptions
    from anonlib.pages.output import write_page

    options = SuggestOptions(args.seconds, args.rows, args.k, args.kernels, partitioners)
    found = suggest_for_source(config, options, progress)
    if args.page is not None:
        write_page(args.page, found.report())
    return found
