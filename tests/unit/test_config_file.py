"""Config files, and anything that could be in one: only errors of ours come out."""

import copy
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonlib.config.model import Config
from anonlib.config.reading import load, parse
from anonlib.config.yaml import read_yaml, write_yaml
from anonlib.errors import ConfigError, InputError

GOOD: dict[str, Any] = {
    "source": {"format": "csv", "path": "people.csv"},
    "attributes": {
        "id": {"role": "identifier"},
        "age": {"role": "quasi_identifier", "scale": "continuous"},
        "city": {"role": "quasi_identifier", "scale": "ordinal", "order": ["a", "b"]},
        "label": {"role": "target", "public": True},
    },
    "unit": ["id"],
    "privacy": {"models": [{"type": "k_anonymity", "k": 10}]},
    "recode": {"columns": {"age": {"type": "interval", "form": "text"}}},
    "release": {"path": "out/people"},
}


class TestFile:
    def load(self, tmp_path: Path, text: str | bytes) -> Config:
        path = tmp_path / "conf.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(path)

    def message(self, tmp_path: Path, text: str | bytes) -> str:
        with pytest.raises(InputError) as caught:
            self.load(tmp_path, text)
        assert caught.value.exit_code == 2
        return str(caught.value).replace(str(tmp_path), "")

    def test_good_one(self, tmp_path: Path) -> None:
        text = (
            "source: {format: csv, path: a.csv}\nattributes: {age: {role: quasi_identifier, "
            "scale: continuous}}\none_row_per_person: true\nprivacy: {models: [{type: "
            "k_anonymity, k: 2}]}\nrelease: {path: out}\n"
        )
        assert self.load(tmp_path, "\ufeff" + text) == self.load(tmp_path, text)

    @pytest.mark.parametrize(
        ("text", "part"),
        [
            ("a: 1\na: 2\n", "line 2: key 'a' is given twice"),
            ("a: {b: 1, b: 2}", "key 'b' is given twice"),
            ("a: &x [1]\nb: *x", "line 2: aliases are not allowed"),
            ("1: a", "keys must be text"),
            ("no: a", "line 1: put this key in quotes"),
            ("a: {b: [x, On]}", "line 1: write true or false, or put this text in quotes"),
            ("true: a", "keys must be text; put this one in quotes"),
            ("[a]: b", "keys must be text"),
            ("a: [", "line 1: "),
            ("a: !!python/object:os.system x", "tags are not allowed"),
            ("a: !!set {x}", "tags are not allowed"),
            ("a: !!int x", "can't be read"),
            (
                "a: " + "1" * 5_000,
                "line 1: a number of more than 100 characters; put text in quotes",
            ),
            ("a: !!int " + "1" * 5_000, "a number of more than 100 characters"),
            ("a: " + "[" * 5_000, "nested too deeply"),
            ("a: \x00", "not valid YAML"),
            ("a:\n  b: 1\n c: 2\n", "line 3: this line is not below what it belongs to"),
            ("a:\n  - b\n - c\n", "line 3: this line is not below what it belongs to"),
            ("a: 1\n  b: 2\n", "line 2: a second `: ` in a line, a line that is indented too far"),
            ("a:\n\tb: 1\n", "line 2: a tab, or a sign that can begin no value"),
            ("a: 'it's'", "line 1: a text goes on after its closing quote"),
            ('a: "\\q"', "a backslash is written twice"),
            ("a: {b: 1\nc: 2\n", "lacks a comma, or its closing bracket"),
            ("a: 'b\n", "a text in quotes is not closed"),
            ("a: 1\n---\nb: 2\n", "a second document begins; a file has one"),
            ("a: - b\n", "a list begins on a line of its own"),
            (b"a: \xff", "not UTF-8 text"),
            (b"#" * 1_000_001, "larger than 1,000,000 bytes"),
        ],
    )
    def test_bad_yaml(self, tmp_path: Path, text: str | bytes, part: str) -> None:
        assert part in self.message(tmp_path, text)

    @pytest.mark.parametrize(
        "written", ["010", "08", "1:30", "12:30:45", "1_0", "1_0e-2", "0x10", "0b1", "0o7", "-007"]
    )
    def test_a_number_is_a_plain_decimal(self, tmp_path: Path, written: str) -> None:
        """YAML 1.1 has 8 for 010, and 90 for 1:30."""
        for text in (f"seed: {written}", f"a: {{order: [a, {written}]}}", f"{written}: a"):
            assert "line 1: a number is a plain decimal, such as 10" in self.message(tmp_path, text)
        assert read_yaml(f"a: '{written}'") == {"a": written}
        assert read_yaml(write_yaml({"a": written})) == {"a": written}

    def test_decimals(self) -> None:
        for text in ("0", "-12", "0.5", "-.5", "5.", "1e3", "1.5E-3", "1e+2", "1e-05"):
            assert read_yaml(f"a: {text}") == {"a": float(text)}
            assert read_yaml(write_yaml({"a": text})) == {"a": text}
            assert read_yaml(write_yaml({"a": float(text)})) == {"a": float(text)}
        for text in ("2020-01-01", "1.2.3", "10.0.0.1", "12:99", "1a", "."):
            assert read_yaml(f"a: {text}") == {"a": text}

    def test_errors_do_not_show_values(self, tmp_path: Path) -> None:
        for text in ("a: !!int hush", "a: 'hush\nb: 1", "a: !!bool hush", "hush"):
            with pytest.raises((InputError, ConfigError)) as caught:
                self.load(tmp_path, text)
            assert "hush" not in str(caught.value)

    def test_dates_are_text(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            self.load(tmp_path, "source: {format: csv, path: 2020-01-01}\nseed: 2020-01-01")
        assert "source.path" not in {problem.where for problem in caught.value.problems}

    def test_no_file(self, tmp_path: Path) -> None:
        for path in (tmp_path / "nope.yaml", tmp_path):
            with pytest.raises(InputError, match="can't be read"):
                load(path)

    @pytest.mark.parametrize(
        "name", ["people.csv", "people.tsv.gz", "people.parquet", "people.json"]
    )
    def test_a_table_is_no_config(self, tmp_path: Path, name: str) -> None:
        """Short ones, which YAML reads as a text or a list, and those that it can't read."""
        for content in (b"age,zip\n31,1000\n", b"\xff\x00", b'[{"age": 31}]', b"a" * 200_000):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(InputError, match=r"this is a table; `anonlib init .*` drafts"):
                load(tmp_path / name)

    def test_a_config_may_be_json(self, tmp_path: Path) -> None:
        (tmp_path / "c.json").write_text(json.dumps(GOOD))
        assert load(tmp_path / "c.json").k == 10

    def test_configs_of_the_project(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANONLIB_DATA", "/data")
        for path in sorted((Path(__file__).parents[2] / "conf").glob("*.yaml")):
            assert load(path).k >= 2


WORDS = st.sampled_from(
    re.findall(
        r"\S+",
        "source attributes privacy models type k l role scale quasi_identifier continuous nominal "
        "k_anonymity l_diversity mdav kernel recode columns partition steps kmeans release path "
        "out format csv generator rows unit one_row_per_person order target public pseudonyms "
        "key_env spark conf options age a.b ${HOME} ${NOPE_X:-} ${NOPE_X}",
    )
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=5)
    | WORDS
    | st.binary(max_size=2)
    | st.dates()
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def nearly_good(draw: st.DrawFn) -> Any:
    """GOOD with some places replaced by anything."""
    config: Any = copy.deepcopy(GOOD)
    for _ in range(draw(st.integers(1, 4))):
        node = config
        while True:
            keys = range(len(node)) if isinstance(node, list) else sorted(node)
            key = draw(st.sampled_from([*keys, "extra"])) if isinstance(node, dict) else None
            key = draw(st.sampled_from(list(keys))) if isinstance(node, list) else key
            below = node.get(key) if isinstance(node, dict) else node[key]
            if not (isinstance(below, dict | list) and below and draw(st.booleans())):
                node[key] = draw(TREES)
                break
            node = below
    return config


@given(TREES | st.dictionaries(st.one_of(WORDS, st.integers()), TREES))
def test_only_config_errors_come_out_of_anything(raw: Any) -> None:
    with pytest.raises(ConfigError):
        parse(raw)


@given(nearly_good(), st.lists(st.text(max_size=12) | st.just("a.0=b"), max_size=2))
@example({**GOOD, "attributes": {"\ud800": {"role": "drop"}}}, [])
def test_only_config_errors_come_out_of_nearly_good_ones(raw: Any, overrides: list[str]) -> None:
    with suppress(ConfigError):
        parse(raw, overrides)


@given(st.text())
def test_only_our_errors_come_out_of_any_text(tmp_path: Path, text: str) -> None:
    path = tmp_path / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises((ConfigError, InputError)):
        load(path)
