"""`anonlib hierarchy`: builds, shows and checks generalization trees."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from anonlib.arrays import Ints
from anonlib.cli.failures import DEBUG_WARNING
from anonlib.cli.shared import open_progress, print_json
from anonlib.config.reading import load_columns
from anonlib.errors import InputError
from anonlib.hierarchy import WRITERS, Hierarchy, read_hierarchy, write_hierarchy
from anonlib.hierarchy import build as hierarchy_build
from anonlib.hierarchy import learn as hierarchy_learn
from anonlib.hierarchy.build import days_between, numbers_between
from anonlib.table.coverage import Coverage, find_coverage
from anonlib.text import printable


def run_hierarchy(args: argparse.Namespace) -> int:
    """Runs an action and returns the exit code. Raises InputError."""
    return ACTIONS[args.action](args)


def _build(args: argparse.Namespace) -> int:
    out = Path(args.out)
    if out.suffix.lower() not in WRITERS:
        raise InputError(f"{out}: the name of a hierarchy ends in {', '.join(WRITERS)}")
    if out.exists() and not args.force:
        raise InputError(f"{out}: is there already; --force replaces it")
    hierarchy = BUILDERS[args.kind](args)
    write_hierarchy(hierarchy, out)
    n_leaves = int(hierarchy.tree.high[-1])
    with open_progress(args) as progress:
        n_groups = len(hierarchy.names) - n_leaves
        text = f"written: {out}, {n_leaves:,} values, {n_groups:,} groups"
        progress.note(f"{text}; review the groups' names before they are published")
    return 0


def _intervals(args: argparse.Namespace) -> Hierarchy:
    values, counts = _values(args)
    if args.parts is not None:
        if args.origin is not None:
            raise InputError("--origin: goes with --widths only")
        return hierarchy_build.equal_frequency(values, counts, args.parts, root=args.root)
    return hierarchy_build.intervals(values, args.widths, args.origin or "0", root=args.root)


def _mask(args: argparse.Namespace) -> Hierarchy:
    values, _ = _values(args)
    return hierarchy_build.mask(values, args.masked, args.pad, root=args.root)


def _dates(args: argparse.Namespace) -> Hierarchy:
    values, _ = _values(args)
    return hierarchy_build.dates(values, args.levels, root=args.root)


def _groups(args: argparse.Namespace) -> Hierarchy:
    order = _lines(args.values) if args.order is None else args.order
    return hierarchy_build.ordered_groups(
        pa.array(order, pa.string()), args.fan_out, root=args.root
    )


def _frequency(args: argparse.Namespace) -> Hierarchy:
    values, counts = _values(args)
    return hierarchy_learn.frequency(values, counts, args.fan_out, root=args.root)


def _target(args: argparse.Namespace) -> Hierarchy:
    (values, classes, counts), _ = _columns(args, args.column, args.target)
    return hierarchy_learn.target_aware(values, classes, counts, args.fan_out, root=args.root)


BUILDERS: dict[str, Callable[[argparse.Namespace], Hierarchy]] = {
    "intervals": _intervals,
    "mask": _mask,
    "dates": _dates,
    "groups": _groups,
    "frequency": _frequency,
    "target": _target,
}


def _values(args: argparse.Namespace) -> tuple[pa.Array, Ints]:
    """The values to build from, and the number of rows of each."""
    if getattr(args, "step", None) is not None and args.range is None:
        raise InputError("--step: goes with --range only")
    if args.conf is not None or args.column is not None:
        (values, counts), _ = _columns(args, args.column)
        return values, counts
    if args.values is not None:
        counted = pa.array(_lines(args.values), pa.string()).value_counts()
        return counted.field("values"), counted.field("counts").to_numpy().astype(np.int64)
    low, high = args.range
    between = days_between if args.kind == "dates" else numbers_between
    values = between(low, high, args.step or "1")
    return values, np.ones(len(values), np.int64)


def _lines(path: str) -> list[str]:
    """The lines of a UTF-8 file, without empty ones."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror or 'I/O error'})") from None
    except ValueError:
        raise InputError(f"{path}: not UTF-8 text") from None
    return [line for line in text.split("\n") if line]


def _columns(
    args: argparse.Namespace, *names: str | None
) -> tuple[list[Any], Sequence[str] | None]:
    """Counts the combinations of values in columns of the source.

    Returns:
        The arrays: for each column its values in the distinct combinations, then
            int64[number of combinations], the rows that have each.
        The texts that mean missing, if the first column is protected; else None.
    """
    columns = [name for name in names if name is not None]
    if args.conf is None or len(columns) < len(names):
        raise InputError("--conf and --column: both are needed")
    config, protected = load_columns(args.conf, columns, args.overrides)
    from anonlib.source.look import count_values

    with open_progress(args) as progress:
        table = count_values(config, columns, progress)
    arrays = [table.column(f"v{i}").combine_chunks() for i in range(len(columns))]
    counts = table.column("count").to_numpy().astype(np.int64)
    tokens = config.privacy.missing_tokens if columns[0] in protected else None
    return [*arrays, counts], tokens


def _show(args: argparse.Namespace) -> int:
    from anonlib.cli.show.hierarchy_tree import print_hierarchy

    print_hierarchy(read_hierarchy(args.file), args.file, args.nodes)
    return 0


def _check(args: argparse.Namespace) -> int:
    hierarchy = read_hierarchy(args.file)
    result = None
    if args.conf is not None or args.column is not None:
        (values, counts), tokens = _columns(args, args.column)
        result = find_coverage(hierarchy, values, counts, tokens)
    if args.format == "json":
        print_json(_figures(hierarchy, result))
    else:
        from anonlib.cli.show.hierarchy_tree import print_coverage

        print_coverage(hierarchy, args.file, result)
    if result is not None and result.n_lacking_values:
        if args.debug and sys.stdout.isatty() and args.format != "json":
            _print_values(result.lacking)
        raise InputError(
            f"hierarchy {args.file}: lacks {result.n_lacking_values:,} of the {result.n_values:,} "
            f"distinct values of column {args.column} ({result.n_lacking_rows:,} rows); add them, "
            "or set the source's options so that they are read as null"
        )
    return 0


def _figures(hierarchy: Hierarchy, coverage: Coverage | None) -> dict[str, Any]:
    """The results of `check`, without values of the data."""
    found: dict[str, Any] = {
        "values": int(hierarchy.tree.high[-1]),
        "nodes_by_height": np.bincount(hierarchy.heights).tolist(),
    }
    if coverage is not None:
        found["column"] = {k: v for k, v in asdict(coverage).items() if k != "lacking"}
    return found


def _print_values(values: Sequence[str]) -> None:
    """Prints values of the data. Only for a terminal: they must not get into a file."""
    lines = [DEBUG_WARNING, *(f"  {printable(value)}" for value in values)]
    sys.stdout.write("\n".join(lines) + "\n")


ACTIONS: dict[str, Callable[[argparse.Namespace], int]] = {
    "build": _build,
    "show": _show,
    "check": _check,
}
