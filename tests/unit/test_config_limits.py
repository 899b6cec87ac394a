"""What configs, sweep files and hierarchies can't be: too large, or longer than the environment may
make them; and what the environment can't reach through them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from anonlib.config.keys import MAX_BYTES, derive_ledger_key
from anonlib.config.reading import load, parse
from anonlib.config.yaml import MAX_DEPTH, MAX_ITEMS, MAX_KEY, MAX_TEXT, read_yaml
from anonlib.errors import ConfigError, InputError
from anonlib.hierarchy import files as hierarchy_file
from anonlib.hierarchy import read_hierarchy
from anonlib.sweeps.file import parse_sweep


def good(**changes: Any) -> dict[str, Any]:
    return {
        "source": {"format": "csv", "path": "people.csv"},
        "attributes": {"age": {"role": "quasi_identifier", "scale": "continuous"}},
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": 10}]},
        "release": {"path": "out/people"},
        **changes,
    }


def refused(raw: Any, *overrides: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        parse(raw, overrides)
    return {problem.where: problem.text for problem in caught.value.problems}


class TestSize:
    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("[" * 900_000, "nested too deeply; at most 30 levels"),
            ("{a: " * 200_000, "nested too deeply; at most 30 levels"),
            ("- " * 400_000, "nested too deeply; at most 30 levels"),
            ("? " * 400_000, "nested too deeply; at most 30 levels"),
            ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "aliases are not allowed"),
            ("a: 1" + ":1" * 400_000, "a number of more than 100 characters"),
            ("a: 0x" + "f" * 900_000, "a number of more than 100 characters"),
            ("a: 1." + "0" * 900_000, "a number of more than 100 characters"),
            ("a: '" + "x" * 900_000 + "'", "a text of more than 100,000 characters"),
            ("? '" + "x" * 1_001 + "'\n: 1", "a key of more than 1,000 characters"),
            ("a: {<<: {b: 1}}\nb: !!merge x", "tags are not allowed"),
        ],
    )
    def test_yaml(self, tmp_path: Path, text: str, part: str) -> None:
        path = tmp_path / "conf.yaml"
        path.write_text(text)
        with pytest.raises(InputError, match=part) as caught:
            load(path)
        assert len(str(caught.value)) < 500

    @pytest.mark.parametrize(
        "text", ["a: [1, 2, 3, 4]", "{a: 1, b: 2, c: 3}", "[[], [], [[]], []]"]
    )
    def test_keys_and_values(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.setattr("anonlib.config.yaml.MAX_NODES", 7)
        assert read_yaml(text)
        monkeypatch.setattr("anonlib.config.yaml.MAX_NODES", 5)
        with pytest.raises(yaml.YAMLError, match="more than 5 keys and values"):
            read_yaml(text)

    def test_limits_are_reached(self) -> None:
        assert read_yaml("[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH)
        assert len(read_yaml("[" + "a," * 1_000 + "]")) == 1_000
        assert len(read_yaml(f"a: '{'x' * MAX_TEXT}'")["a"]) == MAX_TEXT
        assert [*read_yaml(f"? {'x' * MAX_KEY}\n: 1")] == ["x" * MAX_KEY]

    def test_merge_keys_merge_nothing(self) -> None:
        assert read_yaml("{<<: {b: 1}}") == {"<<": {"b": 1}}

    @pytest.mark.parametrize("where", MAX_ITEMS)
    def test_lists(self, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
        section, _, field = where.partition(".")
        raw, n = good(), MAX_ITEMS[where] + 1
        mapping = where in ("attributes", "source.options", "spark.conf")
        items: Any = {f"x{i}": {} for i in range(n)} if mapping else ["x"] * n
        raw[section] = {**raw.get(section, {}), field: items} if field else items
        assert refused(raw) == {where: f"has {n:,} items; at most {MAX_ITEMS[where]:,} are allowed"}

    def test_overrides(self) -> None:
        assert "at most 30 levels" in next(iter(refused(good(), "a." * 5_000 + "b=1").values()))
        deep = refused(good(), "source.options=" + "[" * 50_000)
        assert deep == {
            "--set source.options": "the value is not valid YAML: nested too deeply; at most 30 "
            "levels are allowed"
        }

    def test_sweeps(self) -> None:
        values = [*range(100)]
        grid: dict[str, Any] = {f"source.options.x{i}": values for i in range(20)}
        case = {"config": good()}
        for cases, given in (
            ({"a": case}, grid),
            ({"a": {**case, "grid": [{"seeds": values}, grid]}}, {}),
            ({f"c{i}": case for i in range(50)}, [{f"x{i}": values for i in range(2)}]),
        ):
            with pytest.raises(ConfigError, match=r"points .*, at most 100,000"):
                parse_sweep({"cases": cases, "grid": given, "out": "out"})

    @pytest.mark.parametrize("part", ["a", "/", ":", "://", "://:", ":thin:", "a=", "{", "*", "@"])
    def test_texts_that_are_looked_into(self, part: str) -> None:
        """A secret is found at the end of them, and none where there is none."""
        text = f"jdbc:://{part * (90_000 // len(part))}"
        if part == "@":  # whatever it parts, before it is a user
            assert {*refused(self.url(text))} == {"source.options.url"}
        else:
            assert parse(self.url(text)).source.options["url"] == text
        assert parse(self.path(text)).source.path == text
        secret = f"{text}://user:pw@host"
        assert {*refused(self.url(secret))} == {"source.options.url", "spark.conf"}
        assert {*refused(self.path(secret))} == {"source.path", "events"}

    def url(self, text: str) -> dict[str, Any]:
        options = {"url": text, "dbtable": "people", text[-500:]: "x"}
        return good(source={"format": "jdbc", "options": options}, spark={"conf": {"x": text}})

    def path(self, text: str) -> dict[str, Any]:
        return good(source={"format": "csv", "path": text}, events=f"./{text}")

    def test_keys(self) -> None:
        ledger = {"key_file": "/dev/zero"}
        raw = good(release={"path": "out", "ledger": ledger}, one_row_per_person="id")
        raw["attributes"]["id"] = {"role": "identifier"}
        made = parse(raw)
        with pytest.raises(ConfigError, match=f"longer than {MAX_BYTES:,} bytes"):
            derive_ledger_key(made.attributes, made.pseudonyms, made.release)


class TestHierarchies:
    def refused(self, path: Path, text: str) -> str:
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_hierarchy(path)
        assert len(str(caught.value)) < 500
        return str(caught.value)

    def test_bytes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        text = '"*": [' + "x, " * 2_000_000 + "]"
        said = self.refused(tmp_path / "h.yaml", text)
        assert said.endswith("larger than 5,000,000 bytes; write it as CSV")
        monkeypatch.setattr("anonlib.hierarchy.MAX_BYTES", 10)
        assert self.refused(tmp_path / "h.csv", "abcdefgh;*\n").endswith("larger than 10 bytes")

    def test_nodes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hierarchy_file, "MAX_NODES", 4)
        assert len(read_hierarchy(self.written(tmp_path, "a;*\nb;*\nc;*\n")).names) == 4
        for name, text in (("h.csv", "a;*\nb;*\nc;*\nd;*\n"), ("h.yaml", '"*": [a, b, c, d]')):
            assert "has more than 4 values and groups" in self.refused(tmp_path / name, text)

    def written(self, folder: Path, text: str) -> Path:
        path = folder / "good.csv"
        path.write_text(text)
        return path

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("h.csv", ";".join(f"g{i}" for i in range(3_000))),
            ("h.yaml", "".join(f"{{g{i}: " for i in range(500_000))),
            ("h.yml", "".join(f"{' ' * i}g{i}:\n" for i in range(3_000))),
        ],
    )
    def test_depth(self, tmp_path: Path, name: str, text: str) -> None:
        assert "more than 2,000 groups within each other" in self.refused(tmp_path / name, text)

    def test_fields(self, tmp_path: Path) -> None:
        said = self.refused(tmp_path / "h.csv", "x" * 200_000 + ";*\n")
        assert said.endswith("not CSV, or a name of more than 131,072 characters")

    def test_devices(self) -> None:
        with pytest.raises(InputError, match="can't be read \\(not a regular file\\)"):
            read_hierarchy("/dev/zero")


class TestEnvironment:
    """A value stays a text, and in places and SQL it names no more than was left open."""

    @pytest.fixture
    def given(self, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
        monkeypatch.setenv("ROOT", "/data")
        monkeypatch.setenv("KEY", "a key of more than sixteen bytes")
        return monkeypatch

    def path(self, template: str) -> str | None:
        return parse(good(source={"format": "csv", "path": template})).source.path

    @pytest.mark.parametrize(
        "value", ["a: b", "- x", "&a *a", "[1, 2]", "{a: 1}", "# x", "!!int 1"]
    )
    def test_yaml_stays_text(self, given: pytest.MonkeyPatch, value: str) -> None:
        given.setenv("VALUE", value)
        raw = good()
        raw["attributes"]["city"] = {
            **raw["attributes"]["age"],
            "scale": "ordinal",
            "order": ["${VALUE}", "x"],
        }
        assert parse(raw).attributes["city"].order == (value, "x")

    @pytest.mark.parametrize(
        "value", ["..", "a/../..", "*", "{a,..}", "[a-z]", "a?", "~\\x", "a:b"]
    )
    def test_names_within_a_path(self, given: pytest.MonkeyPatch, value: str) -> None:
        given.setenv("DAY", value)
        for field, raw in (
            ("source.path", good(source={"format": "csv", "path": "${ROOT}/${DAY}/x"})),
            ("release.path", good(release={"path": "out/${DAY}"})),
            ("release.record", good(release={"path": "out", "record": "${ROOT}/${DAY}"})),
        ):
            ((where, said),) = refused(raw).items()
            assert where == field
            assert "DAY" in said or ".." in said
            assert value == ".." or value not in said

    def test_ways_up_of_several_parts(self, given: pytest.MonkeyPatch) -> None:
        given.setenv("DOT", ".")
        assert "source.path" in refused(good(source={"format": "csv", "path": "a/${DOT}${DOT}/b"}))

    def test_places_that_the_config_leaves_open(self, given: pytest.MonkeyPatch) -> None:
        given.setenv("DAY", "2024/day=2024-01-31")
        assert self.path("${ROOT}/../${DAY}.csv") == "/data/../2024/day=2024-01-31.csv"
        given.setenv("ROOT", "../elsewhere*")
        assert self.path("${ROOT}/x") == "../elsewhere*/x"
        assert self.path("a/${NO_SUCH:-..}/b*") == "a/../b*"

    @pytest.mark.parametrize(
        "value", ["' or 'a' = 'a", "1 -- ", "f(x)", "`a`", "a; b", 'a"', "a\\"]
    )
    def test_sql(self, given: pytest.MonkeyPatch, value: str) -> None:
        given.setenv("DAY", value)
        jdbc = {"format": "jdbc", "options": {"dbTable": "t${DAY}", "user": "${DAY}"}}
        for field, source in (
            ("source.where", {**good()["source"], "where": "day = '${DAY}'"}),
            ("source.table", {"format": "table", "table": "${DAY}"}),
            ("source.options.dbTable", jdbc),
        ):
            ((where, said),) = refused(good(source=source)).items()
            assert where == field
            assert value not in said

    @pytest.mark.parametrize("text", ["${env:KEY}", "${ROOT", "${ROOT-x}", "${spark.x}"])
    def test_other_forms(self, text: str) -> None:
        """Spark would take some of them for its own."""
        source = {"format": "csv", "path": f"a/{text}", "where": f"a = '{text}'"}
        found = refused(good(source=source))
        assert {*found} == {"source.path", "source.where"}
        assert all("${NAME} or ${NAME:-default}" in said for said in found.values())

    def test_comments_of_several_parts(self, given: pytest.MonkeyPatch) -> None:
        given.setenv("LOW", "-5")
        source = {**good()["source"], "where": "age > ${LOW} and consent"}
        assert parse(good(source=source)).source.where == "age > -5 and consent"
        source["where"] = "age > -${LOW} and consent"
        assert "a comment (--)" in refused(good(source=source))["source.where"]
        source["where"] = "age > ${NO_SUCH:--}${LOW} and consent"
        assert parse(good(source=source)).source.where == "age > '-'-5 and consent"

    def test_columns_are_no_fields(self, given: pytest.MonkeyPatch) -> None:
        given.setenv("VALUE", "it's")
        raw = good()
        raw["attributes"]["where"] = {
            **raw["attributes"]["age"],
            "scale": "ordinal",
            "order": ["${VALUE}", "x"],
        }
        assert parse(raw).attributes["where"].order == ("it's", "x")

    def test_sql_words(self, given: pytest.MonkeyPatch) -> None:
        given.setenv("DAY", "2024-01-31 12:00")
        source = {**good()["source"], "where": "day = '${DAY}'"}
        assert parse(good(source=source)).source.where == "day = '2024-01-31 12:00'"

    @pytest.mark.parametrize("value", ["a\nb", "a\x00", "\x1b[2J"])
    def test_control_characters(self, given: pytest.MonkeyPatch, value: str) -> None:
        given.setattr("os.environ", {"VALUE": value})  # a NUL can't be set otherwise
        found = refused(good(source={"format": "csv", "path": "${VALUE}"}))
        assert "has control characters" in found["source.path"]

    def test_keys_are_in_no_config(self, given: pytest.MonkeyPatch) -> None:
        given.setenv("NAME", "MASTER")  # whose own name says nothing
        given.setenv("MASTER", "a key of more than sixteen bytes")
        for name in ("MASTER", "${NAME}", "${NO_SUCH:-MASTER}"):
            ledger = {"key_env": name}
            release = {"path": "out/${MASTER}", "run_id": "${MASTER:-x}", "ledger": ledger}
            found = refused(good(release=release))
            for field in ("release.path", "release.run_id"):
                assert "holds a secret" in found[field]

    def test_long_values(self, given: pytest.MonkeyPatch) -> None:
        given.setenv("LONG", "x" * 60_000)
        assert "too long" in refused(good(seed="${LONG}${LONG}"))["seed"]
        tokens = {**good()["privacy"], "missing_tokens": ["${LONG}"] * 900}
        assert "too long" in refused(good(privacy=tokens))["privacy.missing_tokens.899"]


@pytest.mark.parametrize(
    "name",
    [
        "spark.anonlib.minimumK",
        "spark.anonlib.disksEncrypted",
        "SPARK.Anonlib.x",
        "spark.redaction.regex",
        "spark.io.encryption.enabled",
    ],
)
def test_settings_that_are_not_for_configs(name: str) -> None:
    wrong = {f"spark.conf.{name}": "a config may not set this; remove it"}
    assert refused(good(spark={"conf": {name: "1"}})) == wrong
    with pytest.raises(ConfigError, match="a config may not set this"):
        parse_sweep(
            {"cases": {"a": {"config": good()}}, "out": "o", "spark": {"conf": {name: "1"}}}
        )
