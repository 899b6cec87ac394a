"""Paths in configs: relative to the folder of the file, after `cwd:` to the working directory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from anonlib.config.dump import format_config
from anonlib.config.model import Config
from anonlib.config.overrides import put
from anonlib.config.paths import PATHS, SWEEP_PATHS, has_scheme, locate, relate
from anonlib.config.policies import list_policies
from anonlib.config.reading import load, load_columns, parse
from anonlib.config.summary import digest_config
from anonlib.config.yaml import split_key
from anonlib.sweeps.file import load_sweep
from tests.unit.test_config_limits import good

#: Where each field of PATHS stands in a config: its dotted key in place of the keys with *.
FIELDS = {path: ".".join(path).replace("measures.*", "measures.0") for path in PATHS}
POPULATION = {"type": "population", "columns": {"age": "age"}, "source": {"format": "csv"}}


def written(folder: Path, path: str) -> Path:
    """A config in a folder, all of whose paths are below `path`."""
    attributes = {"age": {"role": "quasi_identifier", "scale": "nominal"}}
    raw = good(attributes=attributes, source={"format": "csv"}, release={"mode": "append"})
    raw |= {"evaluate": {"measures": [POPULATION]}, "recode": {"nominal": "set"}}
    raw |= {"one_row_per_person": "person", "attributes": attributes}
    attributes["person"] = {"role": "identifier", "pseudonym": True}
    for key in FIELDS.values():
        where = key.replace("*", "age")
        put(raw, where, f"{path}/{'-'.join(split_key(where))}", where, problems := [])
        assert problems == []
    (folder / "a").mkdir(parents=True)
    (folder / "a/attributes-age-hierarchy").write_text("1;*\n2;*\n")  # is read at once
    (folder / "c.yaml").write_text(yaml.safe_dump(raw))
    return folder / "c.yaml"


def paths(config: Config) -> dict[str, str]:
    """By dotted key: the path there."""

    def walk(value: Any, key: str) -> Any:
        for part in key.replace("*", "age").split("."):
            if isinstance(value, tuple):
                value = value[int(part)]
            else:
                value = value[part] if isinstance(value, dict) else getattr(value, part)
        return value

    return {key: walk(config, key) for key in FIELDS.values()}


def ends(config: Config) -> dict[str, str]:
    """By dotted key: the folder of the path there."""
    return {key: str(Path(path).parent) for key, path in paths(config).items()}


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("a/b.csv", "/conf/a/b.csv"),
        ("../a/*.csv", "/a/*.csv"),
        ("./a", "/conf/a"),
        ("/a", "/a"),
        ("cwd:a", "a"),
        ("cwd:../a", "../a"),
        ("cwd:/a", "/a"),
        ("cwd:", "."),
        ("s3a://bucket/a", "s3a://bucket/a"),
        ("file:/a", "file:/a"),
        ("", ""),
    ],
)
def test_where_paths_lead(path: str, place: str) -> None:
    assert locate(path, Path("/conf")) == place


@pytest.mark.parametrize(("path", "place"), [("a", "a"), ("cwd:a", "a"), ("/a", "/a")])
def test_without_a_file_paths_begin_at_the_working_directory(path: str, place: str) -> None:
    assert locate(path, None) == place


@pytest.mark.parametrize(
    ("path", "has_one"),
    [
        *[("s3a://bucket/a", True), ("FILE:/a", True), ("jdbc:h2:a", True)],
        *[("C:/a", False), ("/a:b", False), ("a b:c", False), ("a", False)],
    ],
)
def test_what_a_scheme_is(path: str, has_one: bool) -> None:
    assert has_scheme(path) is has_one


def test_all_fields_begin_at_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From wherever it is called, and whatever its path looks like."""
    file = written(tmp_path / "conf", "a")
    for cwd, name in ((tmp_path, "conf/c.yaml"), (tmp_path / "conf", "c.yaml"), ("/", str(file))):
        monkeypatch.chdir(cwd)
        assert set(ends(load(name)).values()) == {str(tmp_path / "conf/a")}


def test_cwd_in_all_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(ends(load(written(tmp_path, "cwd:a"))).values()) == {"a"}


def test_a_config_is_one_wherever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run ids are bound to the digest."""
    file = written(tmp_path / "conf", "a")
    monkeypatch.chdir(tmp_path)
    assert digest_config(load("conf/c.yaml")) == digest_config(load(file))


def test_overrides_are_of_the_shell(tmp_path: Path) -> None:
    file = written(tmp_path, "a")
    config = load(
        file, ["release.path=x", "source={format: csv, path: y}", "release.record=s3a://b/r"]
    )
    assert (config.release.path, config.source.path) == ("x", "y")
    assert config.release.record == "s3a://b/r"
    assert config.accountability.runs == str(tmp_path / "a/accountability-runs")


def test_values_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is judged after they are filled in."""
    monkeypatch.setenv("DATA", "/data")
    monkeypatch.setenv("NAME", "people")
    file = tmp_path / "c.yaml"
    for path, place in (
        ("${DATA}/a", "/data/a"),
        ("cwd:${DATA}/a", "/data/a"),
        ("${NOT_SET:-cwd:data}/a", "data/a"),
        ("${NAME}/a", str(tmp_path / "people/a")),
        ("cwd:${NAME}/a", "people/a"),
    ):
        file.write_text(yaml.safe_dump(good(source={"format": "csv", "path": path})))
        assert load(file).source.path == place


def test_columns_of_a_config_are_read_from_its_source(tmp_path: Path) -> None:
    assert load_columns(written(tmp_path, "a"), ["age"])[0].source.path == str(
        tmp_path / "a/source-path"
    )


def test_a_policy_lies_beside_its_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conf").mkdir()
    text = list_policies()["k-strict"].replace("name: k-strict", "name: ours")
    text = text[: text.index("  - id: sensitive-values")]
    k = {"models": [{"type": "k_anonymity", "k": 20}]}
    (tmp_path / "conf/ours.yaml").write_text(text)
    file = tmp_path / "conf/c.yaml"
    for path in ("ours.yaml", "cwd:conf/ours.yaml"):
        file.write_text(yaml.safe_dump(good(policy=path, privacy=k)))
        monkeypatch.chdir(tmp_path)
        policy = load(file).policy
        assert policy is not None
        assert policy.name == "ours"


def test_sweeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of its results and its configs are relative to the sweep's file; paths in the
    configs to theirs."""
    monkeypatch.chdir("/")
    for name in ("conf", "sweeps"):
        (tmp_path / name).mkdir()
    config = good(source={"format": "csv", "path": "a/people.csv"})
    (tmp_path / "conf/c.yaml").write_text(yaml.safe_dump(config))
    sweep = {"out": "../out", "cases": {"people": {"config": "../conf/c.yaml"}}}
    (tmp_path / "sweeps/s.yaml").write_text(yaml.safe_dump(sweep))
    read = load_sweep(tmp_path / "sweeps/s.yaml")
    assert read.file.out == str(tmp_path / "out")
    assert {p.config.source.path for p in read.points} == {str(tmp_path / "conf/a/people.csv")}
    assert load_sweep(tmp_path / "sweeps/s.yaml", ["out=mine"]).file.out == "mine"


@pytest.mark.parametrize("path", ["a/b", "../a", "/a", "s3a://b/a"])
def test_a_path_for_a_file_elsewhere(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    there = locate(relate(path, Path("conf/deep")), Path("/tmp/conf/deep"))
    assert there == locate(path, Path("/tmp"))


def fields(model: type[BaseModel], keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of all texts of a model; * for each key of a mapping and each index."""

    def walk(kind: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from fields(kind, keys)
            return
        inner = get_args(kind)
        if kind is str or (str in inner and not isinstance(kind, type)):
            yield keys
        collected = getattr(kind, "__origin__", None) in (dict, tuple)
        for each in inner:
            yield from walk(each, (*keys, "*") if collected else keys)

    for name, info in model.model_fields.items():
        yield from walk(info.annotation, (*keys, name))


def test_no_field_is_forgotten() -> None:
    """A field of configs whose last key is one of a path is a path."""
    names = {path[-1] for path in (*PATHS, *SWEEP_PATHS)}
    texts = {keys for keys in fields(Config) if keys[-1] in names}
    assert texts == {path for path in PATHS if "measures" not in path}


def test_measures_with_a_source_are_known() -> None:
    from anonlib import registry

    measures = registry.plugins("measure").values()
    assert {cls.type for cls in measures if "source" in cls.model_fields} == {
        "differencing",
        "population",
    }
    assert parse(good()).release.path == good()["release"]["path"]


def test_a_config_in_hand_can_be_saved_anywhere(tmp_path: Path) -> None:
    """Its relative paths are of the working directory, whatever folder its file comes to lie in."""
    config = parse(good())
    (tmp_path / "c.yaml").write_text(format_config(config))
    assert load(tmp_path / "c.yaml") == config
    file = written(tmp_path / "conf", "a")
    (tmp_path / "d.yaml").write_text(format_config(load(file)))
    assert load(tmp_path / "d.yaml") == load(file)
