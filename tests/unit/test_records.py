"""The two records: the public one has what is listed and no more, the private one no raw values."""

import json
import sys
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from anonlib.arrays import Ints
from anonlib.auditing import BY_PARTS
from anonlib.config import summary
from anonlib.config.model import Config
from anonlib.config.reading import parse
from anonlib.config.resolve import resolve
from anonlib.config.summary import SOFTWARE, digest_config, digest_hierarchies
from anonlib.content.content_rules import Content
from anonlib.kernels import Kernel
from anonlib.partition.cuts import Cuts
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.run.manifest_persons import counts_rows, read_persons_return
from anonlib.run.manifest_reading import find_least_levels
from anonlib.run.promise import Promise
from anonlib.run.records import format_manifest, format_record
from anonlib.run.result import ReleaseResult
from anonlib.table.block import Block
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Field, Scale

MARKER = "MARKER-of-a-raw-value"
#: As the shortest and the longest text that JSON could give it.
NUMBER = 4.242424242424e7


class OneCell(Kernel):
    """A kernel, so that configs need none of the real ones."""

    type: ClassVar[str] = "one_cell"
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""
    size: int = 1

    def cells(self, block: Block) -> Ints:
        return np.zeros(block.n, np.int64)


class OtherCell(OneCell):
    type: ClassVar[str] = "other_cell"


def config(k: int = 5, **changes: Any) -> Config:
    base = {
        "source": {"format": "parquet", "path": "in"},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "town": {"role": "quasi_identifier", "scale": "nominal"},
            "person": {"role": "identifier"},
        },
        "one_row_per_person": True,
        "privacy": {"models": [{"type": "k_anonymity", "k": k}]},
        "kernel": OneCell(),
        "release": {"path": "out"},
        "seed": 987654,
    }
    return parse({**base, **changes})


@dataclass(frozen=True)
class Report:
    """What the records read of an AuditReport, which comes with Spark."""

    n_rows: int = 1000
    verdicts: tuple[Any, ...] = (
        SimpleNamespace(model="k_anonymity k=5", holds=True, value=6.0, worst=(6, 7), note=""),
    )
    problems: tuple[Any, ...] = ()
    sizes: tuple[Any, ...] = ((6, 100),)
    by_batch: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {"n_rows": self.n_rows, "sizes": [list(pair) for pair in self.sizes]}


@dataclass(frozen=True)
class StagedFigures:
    losses: dict[str, float | None] = field(default_factory=dict)
    n_blocks: int = 17
    digest: Any = field(default_factory=lambda: SimpleNamespace(n_rows=1000))


PROMISE = Promise(
    (KAnonymity(k=5),), {}, {"age": "quasi_identifier centroid"}, "declaration", False, ()
)


def public(
    made: Config, n_rows_in: int = 1000, persons_return: bool = False, **losses: float | None
) -> dict[str, Any]:
    report: Any = Report()
    figures: Any = StagedFigures(losses)
    text = format_manifest(
        made, "run-1", report, figures, n_rows_in, promise=PROMISE, persons_return=persons_return
    )
    found: dict[str, Any] = json.loads(text)
    return found


def test_software_that_nobody_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under spark-submit pyspark is a zip of the cluster's: it has a version, and no metadata."""

    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(summary, "version", none)
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="4.2.0"))
    monkeypatch.delitem(sys.modules, "delta-spark", raising=False)
    found = public(config())["software"]
    assert (found["pyspark"], found["delta-spark"]) == ("4.2.0", "unknown")


def test_manifest_is_an_allow_list() -> None:
    found = public(config(), sse=0.5)
    assert set(found) == {
        *("anonlib_manifest", "run_id", "persons", "promise_sha256", "verdicts", "partition"),
        "persons_kind",
        *("rows_released", "rows_suppressed", "losses", "software", "columns"),
    }
    quasi, usual = (
        {"role": "quasi_identifier", "form": "value"},
        {"texts": ["?", ""], "n_others": 0},
    )
    assert found["columns"] == [  # the identifier is not released
        {"name": "age", "recoder": "centroid", "missing": usual, **quasi},
        {"name": "town", "recoder": "mode", **quasi},
    ]
    assert found["anonlib_manifest"] == 1
    assert found["run_id"] == "run-1"
    assert found["verdicts"] == [{"model": "k_anonymity k=5", "holds": True}]
    assert found["rows_released"] == 1000
    assert set(found["software"]) == {"python", *SOFTWARE}
    text = json.dumps(found)
    assert "987654" not in text  # no seed
    assert "in" not in found.values()


def test_how_cells_are_suppressed_is_told() -> None:
    """Losses are counted before the costliest cells are left out."""
    assert "suppress" not in public(config())
    privacy = {"models": [{"type": "k_anonymity", "k": 5}], "suppress": "costliest"}
    found = public(config(privacy={**privacy, "suppression_limit": 0.1}))
    assert found["suppress"] == "costliest"


def test_missing_tokens_that_may_be_values_are_counted_only() -> None:
    models = [{"type": "k_anonymity", "k": 5}]
    privacy = {"models": models, "missing_tokens": ["N/A", "refused", "-999.0"]}
    columns = {column["name"]: column for column in public(config(privacy=privacy))["columns"]}
    assert columns["age"]["missing"] == {"texts": ["N/A", "-999.0"], "n_others": 1}
    assert "missing" not in columns["town"]  # a nominal one keeps them as values
    privacy["missing_tokens"] = []
    assert "missing" not in public(config(privacy=privacy))["columns"][0]


def test_manifest_of_a_table_that_was_appended_to() -> None:
    """Rows released are those of the table; suppressed ones those of the batch."""
    report: Any = Report(n_rows=1000)
    figures: Any = StagedFigures(digest=SimpleNamespace(n_rows=30))
    release = {"path": "out", "mode": "append", "acknowledge_returning": True}
    found = json.loads(
        format_manifest(config(release=release), "run-2", report, figures, 33, promise=PROMISE)
    )
    counts = [found[f"rows_{what}"] for what in ("released", "added", "suppressed")]
    assert counts == [1000, 30, "<5"]
    assert found["of_rows_added"] == ["rows_suppressed", "losses", "partition"]
    assert {*found["of_rows_added"]} <= {*found}
    assert found["audited"] == "the whole table"
    by_parts: Any = SimpleNamespace(model="k_anonymity k=5", holds=True, note=BY_PARTS)
    for apart in (Report(by_batch=True), Report(verdicts=(by_parts,))):
        text = format_manifest(
            config(release=release), "run-2", apart, figures, 33, promise=PROMISE
        )  # type: ignore[arg-type]
        assert json.loads(text)["audited"] == "each batch when it was added"


@pytest.mark.parametrize(
    ("persons", "text"),
    [
        ({"one_row_per_person": "person"}, "one row per person: checked"),
        ({"one_row_per_person": True}, "one row per person: declared, not checked"),
        ({"one_row_per_person": None, "unit": ["person"]}, "counted by unit"),
    ],
)
def test_persons_who_may_be_in_several_batches(persons: dict[str, Any], text: str) -> None:
    """The table's manifest says so, whatever the config of the last run."""
    made = config(**persons)
    once, again = public(made), public(made, persons_return=True)
    assert once["persons"] == text
    head, _, how = text.partition(":")
    every = f"{head} in every batch:{how}" if how else f"{head} in every batch"
    assert again["persons"] == f"{every}; persons may be in several"
    assert again["persons_kind"] == once["persons_kind"]
    assert [read_persons_return(found) for found in (once, again)] == [False, True]
    for each, added, rows in (
        (once, {}, True),
        (again, {}, False),  # a class of the whole table may have several rows of a person
        (again, {"audited": "each batch when it was added"}, True),
    ):
        assert counts_rows({**each, **added}) is (rows and not text.startswith("counted by unit"))
    earlier = {"persons": again["persons"]}  # manifests of earlier versions
    assert read_persons_return(earlier)
    assert not read_persons_return({})


def test_parameters_of_recoders_that_are_public(tmp_path: Path) -> None:
    """Those that are set, and the level that a search has found."""
    file = tmp_path / "town.csv"
    file.write_text("Ayr;Scotland;*\nBath;England;*\n", encoding="utf-8")
    interval = {"type": "interval", "round_to": 5, "bottom": 20, "form": "text"}
    quasi = {"role": "quasi_identifier", "scale": "nominal", "hierarchy": str(file)}
    attributes = {"age": {"role": "quasi_identifier", "scale": "continuous"}, "town": quasi}
    made = config(attributes=attributes, recode={"continuous": interval, "nominal": "lca"})

    def told(levels: dict[str, int] | None) -> list[Any]:
        report, figures = Report(), StagedFigures()
        text = format_manifest(made, "run-1", report, figures, 1000, promise=PROMISE, levels=levels)  # type: ignore[arg-type]
        return [column.get("parameters") for column in json.loads(text)["columns"]]

    assert told(None) == [{"bottom": 20, "round_to": 5}, None]
    assert told({"town": 1}) == [{"bottom": 20, "round_to": 5}, {"level": 1}]
    assert told({"town": 0}) == told(None)

    def said_by(levels: dict[str, int]) -> str:
        report, figures = Report(), StagedFigures()
        return format_manifest(made, "one", report, figures, 1000, promise=PROMISE, levels=levels)  # type: ignore[arg-type]

    one, two = said_by({"town": 1}), said_by({"town": 2})
    for texts, least in (
        ([], 2),
        ([two], 2),
        ([one, two], 1),
        ([two, one], 1),
        ([two, said_by({})], 0),  # a run with another kernel, which kept values as they are
        ([two, ""], 0),
        ([two, "{}"], 0),
    ):
        assert find_least_levels({"town": 2}, texts) == {"town": least}
    assert find_least_levels({}, [one]) == {}


def test_hierarchies_of_released_nodes_are_public(tmp_path: Path) -> None:
    """Names of what is released, and of what is above; parents as in the file: of columns that are
    released as nodes, and of no other."""
    file = tmp_path / "town.csv"
    file.write_text("Ayr;Scotland;*\nBath;England;*\nWick;Scotland;*\n", encoding="utf-8")
    fields = [
        Field("age", "double", pa.float64()),
        Field("town", "string", pa.string()),
        Field("person", "string", pa.string()),
    ]
    report: Any = Report()
    figures: Any = StagedFigures()
    for recoder in ("lca", "proportional", "mode", "suppress", "set"):
        quasi = {"role": "quasi_identifier", "scale": "nominal", "hierarchy": str(file)}
        attributes = {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "town": quasi,
            "person": {"role": "identifier"},
        }
        made = config(attributes=attributes, recode={"nominal": recoder})
        trees = {name: (tree, {0, 3}) for name, tree in resolve(made, fields).hierarchies.items()}
        found = json.loads(
            format_manifest(made, "run-1", report, figures, 1000, (), trees, promise=PROMISE)
        )
        if recoder in ("lca", "proportional"):
            assert found["hierarchies"] == {
                "town": {
                    "names": ["Ayr", None, None, "England", "Scotland", "*"],
                    "parents": [4, 4, 3, 5, 5, 5],
                }
            }
        else:
            assert "hierarchies" not in found


@pytest.mark.parametrize(
    ("suppressed", "shown"), [(0, "0"), (1, "<5"), (4, "<5"), (5, "5"), (123, "123")]
)
def test_few_suppressed_rows_are_not_counted(suppressed: int, shown: str) -> None:
    assert public(config(), 1000 + suppressed)["rows_suppressed"] == shown


@pytest.mark.parametrize("suppress", ["needed", "costliest"])
def test_losses_do_not_tell_of_few_suppressed_rows(suppress: str) -> None:
    """Suppressed rows are among them."""
    models = [{"type": "k_anonymity", "k": 5}]
    privacy = {"models": models, "suppression_limit": 0.1, "suppress": suppress}
    own = config(privacy=privacy)
    for suppressed, losses in ((0, {"sse": 0.5}), (4, {}), (5, {"sse": 0.5})):
        assert public(own, 1000 + suppressed, sse=0.5)["losses"] == losses


def test_losses_have_three_digits() -> None:
    found = public(config(), a=0.123456, b=98765.4321, c=1.0, d=None, e=1.23456e-7, f=0.0)
    expected = {"a": 0.123, "b": 98800.0, "c": 1.0, "d": None, "e": 1.23e-7, "f": 0.0}
    assert found["losses"] == expected


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "declared, not checked"),
        ({"one_row_per_person": "person"}, "checked"),
        ({"one_row_per_person": False, "unit": ["person"]}, "by unit"),
    ],
)
def test_manifest_says_how_persons_are_counted(changes: dict[str, Any], words: str) -> None:
    text = public(config(**changes))["persons"]
    assert text.endswith(words)
    assert ("not" in text) == ("declared" in text)
    assert "person]" not in text


def private(made: Config, n_missing: int = 14) -> tuple[str, dict[str, Any]]:
    """A private record of columns whose categories and ends are markers."""
    fields = [
        Field("age", "double", pa.float64()),
        Field("town", "string", pa.string()),
        Field("person", "string", pa.string()),
    ]
    encodings = (
        Encoding("c0", Scale.CONTINUOUS, True, 30.5, 12.25, -NUMBER, NUMBER),
        Encoding("c1", Scale.NOMINAL, False, categories=pa.array([MARKER, f"{MARKER}2"])),
    )
    source: Any = SimpleNamespace(version=3, schema=resolve(made, fields), summarize_files=dict)
    sample = pa.table({"c0": [NUMBER], "c1": [MARKER]})
    hashes = {"c1": np.array([55555555555, 66666666666])}
    scan: Any = SimpleNamespace(
        content=Content(1.0, {}, (), {}),
        encodings=encodings,
        n_missing={"c0": n_missing, "c1": 0},
        sample=sample,
        hashes=hashes,
        n_rows=1003,
    )
    ends = np.array([-1], np.int32), np.array([-2], np.int32), np.zeros(1, np.int32)
    cuts = Cuts(np.ones((1, 1)), np.zeros(1), *ends)
    plan: Any = SimpleNamespace(to_dict=lambda: {"cuts": cuts.to_dict(), "n_blocks": 2})
    audit: Any = Report()
    result = ReleaseResult("run-1", False, n_rows_in=1003, n_rows_out=1000, audit=audit)
    text = format_record(made, result, source, scan, plan, PROMISE)
    return text, json.loads(text)


def test_private_record_has_no_raw_values() -> None:
    text, found = private(config())
    assert MARKER not in text
    assert "4242" not in text
    assert "55555555555" not in text
    assert found["moments"] == {"age": {"mean": 30.5, "sd": 12.25, "form": "number"}}
    assert found["missing"] == {"age": 14, "town": 0}
    assert found["categories"] == {"town": 2}  # how many, not which


def test_few_values_are_not_told() -> None:
    made = config()
    assert private(made, made.k - 1)[1]["missing"]["age"] == f"<{made.k}"
    found = private(made, 1003 - made.k + 1)[1]
    assert found["moments"] == {}


def test_private_record_has_no_secrets_of_paths() -> None:
    result = ReleaseResult("run-1", "published", table="s3a://Sesame@bucket/t")
    source: Any = SimpleNamespace(version=None, schema=None, summarize_files=dict)
    scan: Any = SimpleNamespace(
        encodings=(), n_missing={}, n_rows=0, content=Content(1.0, {}, (), {})
    )
    found = json.loads(format_record(config(), result, source, scan, None, PROMISE))
    assert found["table"] == "s3a://…@bucket/t"


def test_private_record_has_the_figures() -> None:
    made = config()
    _, found = private(made)
    assert found["anonlib_record"] == 1
    assert found["seed"] == 987654
    assert found["source_version"] == 3
    assert found["config_sha256"] == digest_config(made)
    assert found["plan"]["n_blocks"] == 2
    assert found["settings"]["columns"]["town"]["role"] == "quasi_identifier"
    assert found["n_rows_in"] - found["n_rows_out"] == 3  # exact here
    assert found["audit"]["n_rows"] == 1000
    assert found["software"]["python"]


def test_config_digest_is_of_all_of_it() -> None:
    same = [digest_config(config()), digest_config(config())]
    assert same[0] == same[1]
    others = [
        config(k=6),
        config(seed=1),
        config(kernel=OtherCell()),
        config(kernel=OneCell(size=2)),
        config(partition={"steps": [{"type": "single"}]}),
        config(partition={"steps": [{"type": "single", "limit": 7}]}),
        config(recode={"continuous": "median"}),
        config(recode={"continuous": {"type": "centroid", "keep_type": False}}),
        config(recode={"columns": {"town": "set"}}),
        config(one_row_per_person="person"),
        config(release={"path": "elsewhere"}),
        config(source={"format": "parquet", "path": "in", "where": "age > 3"}),
    ]
    digests = {digest_config(other) for other in others}
    assert len(digests | set(same)) == len(others) + 1


def test_config_digest_is_of_hierarchies_too(tmp_path: Path) -> None:
    path = tmp_path / "city.csv"
    path.write_text("a;*\nb;*\n")
    nominal = {"role": "quasi_identifier", "scale": "nominal", "hierarchy": str(path)}
    made = config(attributes={"city": nominal}, recode={"nominal": "mode"})
    before = digest_config(made)
    assert digest_hierarchies(made.attributes) == {"city": sha256(b"a;*\nb;*\n").hexdigest()}
    path.write_text("a;*\nb;*\nc;*\n")
    changed = digest_config(made)
    assert changed != before
    path.write_text("a;*\nb;*\n")
    assert digest_config(made) == before
    path.unlink()  # a run that has read it ends with a record
    assert digest_hierarchies(made.attributes) == {"city": None}
    assert digest_config(made) not in (before, changed)


def test_paths_of_a_result_as_python_takes_them() -> None:
    """Spark qualifies those of this machine's disks."""
    result = ReleaseResult(
        "r1", "published", table="file:/a b/t", manifest="file:///m", record="s3a://b/r"
    ).with_plain_paths()
    places = (result.table, result.manifest, result.record, result.report)
    assert places == ("/a b/t", "/m", "s3a://b/r", "")
