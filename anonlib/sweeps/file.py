"""Reads a sweep file. Checks all points of its grid and reports all problems at once."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from anonlib.config.checks.spark_section import check_spark
from anonlib.config.environment import find_secret_variables, interpolate
from anonlib.config.model import Attribute, Config, PartitionSection, PrivacySection
from anonlib.config.overrides import apply_override, put
from anonlib.config.paths import CWD, locate
from anonlib.config.reading import build_config, build_plugin, copy_tree, read_raw
from anonlib.config.summary import digest_hierarchies
from anonlib.config.yaml import split_key
from anonlib.errors import ConfigError, InputError, Problem, problems_of
from anonlib.partition.controller import Controller
from anonlib.sweeps.settings import Point, PointSettings, Sweep, SweepCase, SweepFile
from anonlib.table.schema import Role
from anonlib.text import write_canonical

#: Most points of a sweep.
MAX_POINTS = 100_000
#: Fields that may hold data or secrets. Grids may not vary them, since results show the grid.
_HIDDEN = (
    *(("source", "where"), ("source", "options"), ("source", "secrets")),
    *(("attributes", "*", "order"), ("privacy", "missing_tokens")),
)
_SHOWN = "its values may be data or secrets, and results show the grid; vary it by `set` of cases"
_TWICE = "has a value twice, whose results would count as those of two seeds; leave one out"
#: Sections of configs that sweeps ignore, since they publish nothing.
_IDLE = ("release", "evaluate", "gates", "pseudonyms", "spark")
_POINT_KEYS = tuple(PointSettings.model_fields)
#: Keys that `learn.version.set` may set. Neither the columns nor the rows depend on them.
_VERSION = (("partition",), ("privacy", "models"), ("kernel",), ("recode",))


def load_sweep(path: str | Path, overrides: Sequence[str] = ()) -> Sweep:
    """Loads a sweep from a YAML file.

    Args:
        path: The file.
        overrides: `key=value` each, with dotted keys and YAML values.

    Raises:
        InputError: A file can't be read, or is not YAML.
        ConfigError: All problems of the file and of all points of its grid.
    """
    return parse_sweep(read_raw(path, "sweep"), overrides, Path(path).parent)


def as_sweep(sweep: Sweep | Mapping[str, Any] | str | Path) -> Sweep:
    """Turns the argument of a verb into a Sweep: a Sweep, a dict, or the path of a YAML file.
    Raises as `load_sweep`."""
    if isinstance(sweep, Sweep):
        return sweep
    return load_sweep(sweep) if isinstance(sweep, str | Path) else parse_sweep(sweep)


def parse_sweep(raw: Any, overrides: Sequence[str] = (), folder: Path | None = None) -> Sweep:
    """Makes a sweep from a mapping.

    Args:
        raw: The mapping, as read from YAML.
        overrides: As in `load_sweep`.
        folder: The folder that paths are relative to; by default the working directory.

    Raises:
        InputError: As in `load_sweep`.
        ConfigError: As in `load_sweep`.
    """
    if not isinstance(raw, Mapping):
        raise ConfigError([Problem("", "a sweep is a mapping with `cases`, `grid` and `out`")])
    if "cases" not in raw and {"source", "attributes"} & {*raw}:
        raise ConfigError(
            [Problem("", "this is a config, not a sweep; a sweep lists configs under `cases`")]
        )
    problems: list[Problem] = []
    tree = copy_tree(raw, "", problems)
    for override in overrides:
        apply_override(tree, override, problems)
    files = _config_files(tree, folder, problems)
    # A variable that is secret in one case may not be a value of another case or of the grid.
    secret = frozenset[str]().union(*map(find_secret_variables, [tree, *files.values()]))
    tree = interpolate(tree, problems, secret=secret)
    if isinstance(out := tree.get("out"), str):
        tree["out"] = locate(out, folder)
    configs = {
        name: interpolate(copy_tree(raw, "", problems), problems, f"cases.{name}.config", secret)
        for name, raw in files.items()
    }
    try:
        file = SweepFile.model_validate(tree)
    except ValidationError as error:
        raise ConfigError([*problems, *problems_of(error, SweepFile)]) from None
    problems += check_spark(file.spark)
    cases = [
        _Expansion(file, name, case, folder, configs.get(name, case.config), problems)
        for name, case in file.cases.items()
        if name in configs or not isinstance(case.config, str)  # else its file has problems
    ]
    n = sum(count_points(case.grid()) for case in cases) * file.seeds
    if n > MAX_POINTS:
        raise ConfigError(
            [*problems, Problem("grid", f"{n:,} points with all seeds, at most {MAX_POINTS:,}")]
        )
    points = [point for case in cases for point in case.points()]
    problems += _picks(file, points)
    if problems:
        raise ConfigError(problems)
    tried = tuple(_with_seed(p, seed) for seed in range(file.seeds) for p in points)
    return Sweep(file, tried, {case.name: case.whole() for case in cases})


def _config_files(
    tree: dict[str, Any], folder: Path | None, problems: list[Problem]
) -> dict[str, Any]:
    """By case: the content of its config file. Files with problems are left out."""
    cases, secret, files = tree.get("cases"), find_secret_variables(tree), {}
    for name, case in cases.items() if isinstance(cases, dict) else ():
        given = case.get("config") if isinstance(case, dict) else None
        if isinstance(given, str):
            wrong: list[Problem] = []
            named = interpolate({"config": given}, wrong, f"cases.{name}", secret)
            try:
                if not wrong:
                    files[name] = read_raw(locate(named["config"], folder))
            except InputError as error:
                wrong.append(Problem(f"cases.{name}.config", str(error)))
            problems += wrong
    return files


def expand_grid(grid: Any, where: str, problems: list[Problem]) -> list[dict[str, Any]]:
    """The combinations of values in a grid, or in several grids, one after the other.

    The last key varies fastest. An empty grid has one combination, which is empty. A combination
    that several grids have comes once, where the first one has it.

    Args:
        grid: A mapping of keys to lists of values, or a list of such mappings.
        where: Its place in the file, for problems.
        problems: Problems are added here.
    """
    if isinstance(grid, list):
        each = [expand_grid(g, f"{where}.{i}", problems) for i, g in enumerate(grid)]
        found: dict[str, dict[str, Any]] = {}
        for point in (point for points in each for point in points):
            found.setdefault(write_canonical([*point.items()]), point)  # the order of keys matters
        return [*found.values()]
    if not isinstance(grid, dict):
        problems.append(Problem(where, "a mapping of keys to lists of values, or a list of such"))
        return []
    wrong = [key for key, values in grid.items() if not isinstance(values, list) or not values]
    problems += [
        Problem(f"{where}.{key}", "a list of one value or more is needed") for key in wrong
    ]
    twice = [
        key
        for key, values in grid.items()
        if key not in wrong and len({*map(write_canonical, values)}) < len(values)
    ]
    problems += [Problem(f"{where}.{key}", _TWICE) for key in twice]
    hidden = [key for key, values in grid.items() if _is_hidden(key) or _hides(key, values)]
    problems += [Problem(f"{where}.{key}", _SHOWN) for key in hidden]
    if "seed" in grid:
        problems.append(Problem(f"{where}.seed", "give `seeds`, how many there are, instead"))
    if wrong or twice or hidden:
        return []
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def _is_hidden(key: str) -> bool:
    """Whether a key is a field of `_HIDDEN`, is below such a field, or contains one."""
    parts = split_key(key)
    return bool(parts) and any(
        all(part == own or own == "*" for part, own in zip(parts, path, strict=False))
        for path in _HIDDEN
    )


def _hides(key: str, values: Any) -> bool:
    """Whether a key below `learn`, or a key in its values, sets a hidden field."""
    first, *rest = [*split_key(key), ""]
    return first == "learn" and any(map(_is_hidden, (*rest, *_keys(values))))


def _keys(value: Any) -> Iterator[str]:
    """The keys of all mappings in a value."""
    if isinstance(value, Mapping):
        yield from map(str, value)
    if isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _keys(part)


def count_points(grid: Any) -> int:
    """The number of combinations that `expand_grid` gives, without making them."""
    if isinstance(grid, list):
        return sum(map(count_points, grid))
    each = grid.values() if isinstance(grid, dict) else ()
    return prod(len(values) for values in each if isinstance(values, list))


@dataclass
class _Expansion:
    """Expands one case into its points. Equal configs are parsed once.

    Attributes:
        file: The sweep file.
        name: The name of the case.
        case: The case.
        folder: The folder of the sweep file; None without one.
        config: The config, from its file or from the case, with environment variables applied.
        problems: Problems are added here.
    """

    file: SweepFile
    name: str
    case: SweepCase
    folder: Path | None
    config: Any
    problems: list[Problem]
    _configs: dict[str, Config] = field(default_factory=dict)
    _old_problems: set[Problem] = field(default_factory=set)

    def points(self) -> list[Point]:
        where = f"cases.{self.name}"
        tree, home = self._base(where)
        if tree is None:
            return []
        common = self.file.model_dump(include={*_POINT_KEYS}, exclude_none=True)
        tree = {**common, **tree, "release": {"path": f"{CWD}{self.file.out}"}}
        for key, value in self.case.set.items():
            put(tree, key, value, f"{where}.set.{key}", self.problems)
        found = []
        place = "grid" if self.case.grid is None else f"{where}.grid"
        for parameters in expand_grid(self.grid(), place, self.problems):
            point = self._point(tree, parameters, home)
            found += [] if point is None else [point]
        return found

    def whole(self) -> dict[str, Any]:
        """The config of a case without problems, with `set`."""
        tree: dict[str, Any] = copy_tree(self.config, "", [])
        for key, value in self.case.set.items():
            put(tree, key, copy_tree(value, key, []), key, [])
        return {key: value for key, value in tree.items() if key not in _POINT_KEYS}

    def grid(self) -> Any:
        """The grid of the case, or a list of grids."""
        own, common = self.case.grid, self.file.grid
        if isinstance(own, dict):
            each = common if isinstance(common, list) else [common]
            return [{**grid, **own} if isinstance(grid, dict) else grid for grid in each]
        return common if own is None else own

    def _base(self, where: str) -> tuple[dict[str, Any] | None, Path | None]:
        """The config of the case (None if it is not a mapping), and the folder of its paths."""
        file = self.case.config
        home = Path(locate(file, self.folder)).parent if isinstance(file, str) else self.folder
        if not isinstance(self.config, Mapping):
            self.problems.append(Problem(f"{where}.config", "a config is a mapping of sections"))
            return None, home
        return {key: value for key, value in self.config.items() if key not in _IDLE}, home

    def _point(
        self, tree: dict[str, Any], parameters: dict[str, Any], home: Path | None
    ) -> Point | None:
        problems: list[Problem] = []
        tree = copy_tree(tree, "", problems)
        for key, value in parameters.items():
            put(tree, key, copy_tree(value, key, problems), key, problems)
        settings = _read_settings(
            {key: tree.pop(key) for key in _POINT_KEYS if key in tree}, problems
        )
        config = None if problems else self._parse(tree, home, problems)
        changed, version = None, None
        if settings is not None and config is not None:
            problems += [
                *_untried_settings(settings, config.partition, config.privacy),
                *_unfit(settings, config.attributes, config.unit),
            ]
            changed = _version_tree(tree, settings, problems)
            if changed is not None and not problems:
                version = self._version(changed, settings, home, problems)
        self._tell(problems, parameters)
        if problems or settings is None or config is None:
            return None
        text = _identity(tree, changed, settings, config.attributes)
        return Point(self.name, parameters, config, settings, text, version)

    def _parse(
        self, tree: dict[str, Any], home: Path | None, problems: list[Problem]
    ) -> Config | None:
        text = json.dumps(tree, sort_keys=True, default=str)
        if text not in self._configs:
            found: list[Problem] = []
            try:
                self._configs[text] = build_config(copy_tree(tree, "", found), home, found)
            except ConfigError as error:
                problems += error.problems
        return self._configs.get(text)

    def _version(
        self,
        tree: dict[str, Any],
        settings: PointSettings,
        home: Path | None,
        problems: list[Problem],
    ) -> Config | None:
        found: list[Problem] = []
        config = self._parse(tree, home, found)
        if config is not None:
            found += _untried_settings(settings, config.partition, config.privacy)
        problems += [Problem(f"learn.version.set: {p.where}", p.text) for p in found]
        return config

    def _tell(self, problems: Sequence[Problem], parameters: Mapping[str, Any]) -> None:
        """Adds the problems that no earlier point had."""
        at = ", ".join(f"{key} = {shorten(value)}" for key, value in parameters.items())
        for problem in sorted({*problems} - self._old_problems):
            self._old_problems.add(problem)
            where = f"cases.{self.name}{f' at {at}' if at else ''}: {problem.where}"
            self.problems.append(Problem(where, problem.text))


def shorten(value: Any) -> str:
    """A value of a grid as a short text. A plug-in becomes its type and its parameters. Numbers
    have as many digits as they need, but no noise of binary fractions."""
    if isinstance(value, Mapping):
        rest = [f"{key}={shorten(each)}" for key, each in value.items() if key != "type"]
        return " ".join([*([str(value["type"])] if "type" in value else []), *rest])
    if isinstance(value, list):
        return ", ".join(map(shorten, value))
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _read_settings(tree: dict[str, Any], problems: list[Problem]) -> PointSettings | None:
    if isinstance(learn := tree.get("learn"), dict):
        learn["model"] = build_plugin("learner", learn.get("model"), "learn.model", problems)
    try:
        return PointSettings.model_validate(tree)
    except ValidationError as error:
        problems += problems_of(error, PointSettings)
        return None


def _version_tree(
    tree: dict[str, Any], settings: PointSettings, problems: list[Problem]
) -> dict[str, Any] | None:
    """The config of `learn.version`, as a tree; None without one."""
    if settings.learn is None or settings.learn.version is None:
        return None
    tree = copy_tree(tree, "", problems)
    for key, value in settings.learn.version.set.items():
        where = f"learn.version.set: {key}"
        if any(split_key(key)[: len(part)] == [*part] for part in _VERSION):
            put(tree, key, copy_tree(value, where, problems), where, problems)
        else:
            allowed = ", ".join(map(".".join, _VERSION))
            problems.append(Problem(where, f"must be one of these, or below: {allowed}"))
    return tree


def _untried_settings(
    settings: PointSettings, partition: PartitionSection, privacy: PrivacySection
) -> Iterator[Problem]:
    """Problems: settings that sweeps don't support."""
    if any(isinstance(step, Controller) for step in partition.steps):
        yield Problem(
            "partition.steps",
            "remove the step controller; a sweep's `controllers: N` deals rows to N controllers",
        )
    if settings.controllers > 1 and partition.by_tuples:
        yield Problem("controllers", "must be 1 with tuples, which searches all rows at once")
    if privacy.suppress != "needed":
        yield Problem("privacy.suppress", "costliest is for releases; use needed")


def _unfit(
    settings: PointSettings, attributes: Mapping[str, Attribute], unit: Sequence[str]
) -> Iterator[Problem]:
    """Problems: settings of a point that do not fit the columns or each other."""
    roles = {name: attribute.role for name, attribute in attributes.items()}
    columns = {n for n, role in roles.items() if role not in (Role.DROP, Role.IDENTIFIER)}
    columns |= {*unit}
    if settings.sample is not None and settings.sample.by not in {None, *columns}:
        yield Problem("sample.by", "no such column among those that are released")
    nodes = [n for n, a in attributes.items() if a.hierarchy is not None]
    if nodes and settings.cluster is not None and settings.cluster.nominal == "codes":
        yield Problem(
            "cluster.nominal",
            (f"codes needs columns without a hierarchy; for {', '.join(nodes)} use indicators"),
        )
    learn = settings.learn
    if learn is None:
        return
    if learn.by not in {None, *columns}:
        yield Problem("learn.by", "no such column among those that are released")
    may = {name: role for name, role in roles.items() if role in (Role.TARGET, Role.SENSITIVE)}
    target = learn_target(settings, attributes)
    if target is None:
        yield Problem(
            "learn.target",
            f"name the column to learn: {', '.join(may) or 'give one the role target'}",
        )
    elif target not in may:
        yield Problem(
            "learn.target",
            (f"must be the target or a sensitive column: {', '.join(may) or 'there is none'}"),
        )
    if learn.folds and learn.split == "after":
        yield Problem("learn.folds", "cross-validation is for `split: before`; 0 here")
    if learn.folds and learn.train == "raw":
        yield Problem("learn.folds", "cross-validation is of what learns from a release; 0 here")
    if learn.version is not None and (learn.split, learn.train) != ("after", "released"):
        yield Problem("learn.version", "is for `split: after` and `train: released`")


def learn_target(settings: PointSettings, attributes: Mapping[str, Attribute]) -> str | None:
    """The column to learn; None if there is none, or nothing is learned."""
    targets = [n for n, a in attributes.items() if a.role is Role.TARGET]
    if settings.learn is None:
        return None
    return settings.learn.target or next(iter(targets), None)


def _identity(
    tree: Mapping[str, Any],
    version: Mapping[str, Any] | None,
    settings: PointSettings,
    attributes: Mapping[str, Attribute],
) -> str:
    """All that a point depends on except seed, rows and code, as JSON.

    Args:
        tree: The config, as a tree.
        version: The config of `learn.version`, as a tree; None without one.
        settings: The settings besides the config.
        attributes: The attributes of the config, whose hierarchies are files.
    """
    spelled = settings.model_dump(mode="json", serialize_as_any=True, exclude_defaults=True)
    if settings.learn is not None:
        spelled["learn"]["model"]["type"] = settings.learn.model.type
    identity = {
        "config": _without_places(tree),
        "trial": spelled,  # its old name: results on disk are found by this text
        "hierarchies": digest_hierarchies(attributes),
    }
    if version is not None:
        spelled["learn"]["version"].pop("set", None)  # the order of its keys matters
        identity["version"] = _without_places(version)
    return json.dumps(identity, sort_keys=True, default=str)


def _without_places(tree: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tree.items() if key not in ("source", "release", "seed")}


def _with_seed(point: Point, seed: int) -> Point:
    text = f"{seed} {point.text}"
    config, version = point.config.model_copy(update={"seed": seed}), point.version
    if version is not None:
        version = version.model_copy(update={"seed": seed})
    return replace(point, config=config, version=version, text=text)


def _picks(file: SweepFile, points: Sequence[Point]) -> Iterator[Problem]:
    if file.pick is None:
        return
    keys = {key for point in points for key in point.parameters}
    for i, key in enumerate(file.pick.parameters):
        if points and key not in keys:
            yield Problem(
                f"pick.parameters.{i}",
                f"no key of the grid; it has: {', '.join(sorted(keys)) or 'none'}",
            )
