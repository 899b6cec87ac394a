"""Targets of fuzzing that need no Spark: configs, overrides, hierarchies, sweep files."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from fuzz_inputs import MARK, dumped, objects, texts, trees
from hypothesis import strategies as st

from anonlib.config.reading import load, parse
from anonlib.hierarchy import read_hierarchy, write_hierarchy
from anonlib.sweeps.file import load_sweep


@dataclass(frozen=True)
class Target:
    """Something to fuzz. `attempt` gets one of the inputs, a file's bytes or a value, and a folder
    to write to; it may end with a user error, and nothing else."""

    name: str
    inputs: st.SearchStrategy[Any]
    attempt: Callable[[Any, Path], None]
    suffix: str = ".txt"
    #: What a try may take: of the processor, and of the clock.
    cpu_seconds: float = 20.0
    seconds: float = 120.0
    spark: bool = False

    @property
    def shrinks(self) -> bool:
        """Whether failing inputs are made smaller; with Spark that would take hours."""
        return not self.spark


def plain_targets(conf: Path) -> list[Target]:
    """The targets, on a copy of the project's conf/ that tries may write to."""
    configs = [path.read_bytes() for path in sorted(conf.glob("*.yaml"))]
    sweeps = [path.read_bytes() for path in sorted(conf.glob("papers/*.yaml"))]
    small = [_small(yaml.safe_load(text)) for text in sweeps]
    loaded = [yaml.safe_load(text) for text in configs]
    hierarchies = {
        suffix: [_marked(path) for path in sorted(conf.glob(f"hierarchies/*{suffix}"))]
        for suffix in (".csv", ".yaml")
    }
    csv = [*hierarchies[".csv"], _as_csv(conf)]
    base = conf / "quickstart.yaml"
    return [
        Target("config", _files(loaded, configs), _in_file(conf / "try.yaml", load), ".yaml"),
        Target("mapping", trees(loaded, objects), lambda tree, _: _parsed(tree)),
        Target("overrides", _overrides(loaded), lambda lines, _: _overridden(base, lines)),
        Target("sweep", _files(small, [*map(dumped, small)]), _sweep(conf), ".yaml"),
        Target("hierarchy-csv", texts(csv), _hierarchy(".csv"), ".csv"),
        Target("hierarchy-yaml", texts(hierarchies[".yaml"]), _hierarchy(".yaml"), ".yaml"),
    ]


def _files(seeds: Sequence[Any], texts_: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    return trees(seeds).map(dumped) | texts(texts_)


def _in_file(path: Path, use: Callable[[Path], Any]) -> Callable[[bytes, Path], None]:
    def attempt(data: bytes, _: Path) -> None:
        path.write_bytes(data)
        use(path)

    return attempt


def _parsed(tree: Any) -> None:
    if isinstance(tree, Mapping):
        parse(tree)


def _overridden(base: Path, lines: Sequence[str]) -> None:
    load(base, lines)


def _overrides(seeds: Sequence[Any]) -> st.SearchStrategy[list[str]]:
    from fuzz_inputs import places, values

    keys = [".".join(map(str, path)) for seed in seeds for path in places(seed)]
    key = st.sampled_from(keys) | st.text(max_size=12)
    value = values.map(lambda v: yaml.safe_dump(v, default_flow_style=True)) | st.text(max_size=12)
    line = st.builds(
        lambda k, equals, v: f"{k}{equals}{v}", key, st.sampled_from(["=", "=", ""]), value
    )
    return st.lists(line, min_size=1, max_size=4)


def _sweep(conf: Path) -> Callable[[bytes, Path], None]:
    return _in_file(conf / "papers" / "try.yaml", load_sweep)


def _small(tree: Any) -> Any:
    """The sweep with two values of each list of its grids, so that tries are quick."""
    for case in [tree, *tree["cases"].values()]:
        grids = case.get("grid")
        for grid in grids if isinstance(grids, list) else [grids or {}]:
            for key, found in grid.items():
                grid[key] = found[:2]
    tree["cases"] = dict([*tree["cases"].items()][:2])
    return tree


def _marked(path: Path) -> bytes:
    """A hierarchy with the mark in every name that is a word."""
    return re.sub(r"[A-Za-z][\w-]*", rf"{MARK}\g<0>", path.read_text("utf-8")).encode()


def _as_csv(conf: Path) -> bytes:
    from anonlib.hierarchy.files import parse_yaml, to_csv

    text = to_csv(parse_yaml((conf / "hierarchies" / "education.yaml").read_text("utf-8")))
    return re.sub(r"[A-Za-z][\w-]*", rf"{MARK}\g<0>", text).encode()


def _hierarchy(suffix: str) -> Callable[[bytes, Path], None]:
    """Reads a hierarchy, writes it, and reads it again: it must be the same."""

    def attempt(data: bytes, folder: Path) -> None:
        path = folder / f"hierarchy{suffix}"
        path.write_bytes(data)
        found = read_hierarchy(path)
        write_hierarchy(found, path)
        if read_hierarchy(path).names != found.names:
            raise AssertionError("another hierarchy after it was written")
        found.folded()

    return attempt
