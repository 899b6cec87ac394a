"""Releases with hostile column names, pseudonyms, a ledger, a backlog, controllers and measures, in
a process of its own that has no umask, with Spark's event log and UI on: no key, secret or raw
value is in anything that Spark or anonlib tells of them, names are names, and files are private."""

import html
import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.quick import quick
from tests.spark.support import ROOT, TIMEOUT, holding, write_config
from tests.spark.ui import SHOWN

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

#: Marks: of identifiers, a rare city, a rare illness, a rare wage; of a text in the condition, and
#: of one in `missing_tokens`.
IDENTIFIER, RARE, SICK, WAGE = "CANARYNAME", "CANARYRARE", "CANARYSICK", "98765000321"
CONDITION, TOKEN = "CANARYCONDITION", "CANARYTOKEN"
RAW = (IDENTIFIER, RARE, SICK, WAGE, CONDITION, TOKEN)
KEYS = {
    "ANONLIB_SECURITY_KEY": "CANARYKEY-0123456789abcdef",
    "ANONLIB_SECURITY_LEDGER": "CANARYLEDGER-0123456789abcdef",
}
#: Settings of Spark as somebody may have them in a config, with their values marked.
SECRETS = {
    name: f"CANARYSECRET{i}"
    for i, name in enumerate(
        (
            "spark.hadoop.fs.s3a.secret.key",
            "spark.hadoop.fs.s3a.access.key",
            "spark.hadoop.fs.azure.account.key.store.blob.core.windows.net",
            "spark.some.jdbc.password",
            "spark.ssl.keyPassword",
        )
    )
}
N = 200
NAME, PAY, PLACE, ILL, LEVEL, PART, STATE = (
    "na`me",
    'x\'; drop table "people" -- ',
    "a.b.{c} ' \"`",
    "<script>alert(1)</script>",
    "line\nbreak & <b>${HOME}",
    "\u202eright, to = left;",
    "in. `state`; select 1",
)


@dataclass(frozen=True)
class Ran:
    """What the run left below `folder`."""

    folder: Path
    out: str
    err: str

    @property
    def table(self) -> pd.DataFrame:
        paths = (self.folder / "out" / "table").rglob("*.parquet")
        return pd.concat([pq.ParquetFile(path).read().to_pandas() for path in paths])


def patients() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            NAME: [f"{IDENTIFIER}-{i}" for i in range(N)],
            PAY: [2000 + 17 * i % 400 for i in range(N)],
            PLACE: ["east" if i * i % 7 < 4 else "west" for i in range(N)],
            ILL: [f"illness-{i % 6}" for i in range(N)],
            LEVEL: [("low", "mid", "high")[i % 3] for i in range(N)],
            PART: [f"p/{i // 2 % 2}='x'" for i in range(N)],
            STATE: ["in"] * N,
        }
    )
    frame.loc[10, PLACE], frame.loc[20, ILL], frame.loc[30, PAY] = RARE, SICK, int(WAGE)
    frame.loc[40, STATE] = CONDITION
    return frame


def config(folder: Path) -> dict[str, Any]:
    quasi = {"role": "quasi_identifier"}
    return {
        "source": {
            "format": "parquet",
            "path": str(folder / "people.parquet"),
            "where": f"`{STATE.replace('`', '``')}` <> '{CONDITION}'",
        },
        "attributes": {
            NAME: {"role": "identifier", "pseudonym": True},
            PAY: {**quasi, "scale": "continuous"},
            PLACE: {**quasi, "scale": "nominal", "hierarchy": "places.csv"},
            ILL: {"role": "sensitive"},
            LEVEL: {**quasi, "scale": "ordinal", "order": ["low", "mid", "high"]},
            PART: {**quasi, "scale": "nominal"},
            STATE: {"role": "drop"},
        },
        "one_row_per_person": NAME,
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 4},
                {"type": "l_diversity", "l": 2, "attribute": ILL},
            ],
            "missing_tokens": ["?", TOKEN],
        },
        "partition": {"steps": [{"type": "mondrian"}], "max_rows": 100},
        "recode": {"columns": {PLACE: "lca"}},
        "pseudonyms": {"key_env": "ANONLIB_SECURITY_KEY"},
        "evaluate": {
            "measures": ["marginals", "reidentification", "uniqueness", "linkage", "disclosure"]
        },
        "release": {
            "path": str(folder / "out" / "table"),
            "run_id": "run-1",
            "partition_by": [PART],
            "ledger": {"key_env": "ANONLIB_SECURITY_LEDGER"},
            "backlog": {"key_env": "ANONLIB_SECURITY_LEDGER"},
        },
        "seed": 7,
    }


def command_lines(folder: Path) -> list[list[str]]:
    """A release, its audit and measures; a config that may not be; a batch that has to wait; and
    a release by controllers, one of them rare."""
    path, table = write_config(folder, config(folder)), folder / "out" / "table"

    def release(run: str, **changes: Any) -> list[str]:
        given = {"release.run_id": run, **{k.replace("__", "."): v for k, v in changes.items()}}
        texts = [f"{name}={json.dumps(value)}" for name, value in given.items()]
        return ["release", path, *[part for text in texts for part in ("--set", text)]]

    steps = [{"type": "controller", "column": PLACE, "merge": True}, {"type": "target_clusters"}]
    append = {"release__mode": "append", "source__path": str(folder / "few.parquet")}
    return [
        release("run-1"),
        ["audit", str(table), "--conf", path],
        ["evaluate", path],
        ["check", path, "--set", "privacy.models.0.k=3"],
        release("run-2", **append),
        release("run-3", release__path=f"{table}-3", partition__steps=steps),
    ]


def spark_settings(folder: Path) -> dict[str, str]:
    return {
        **SECRETS,
        **quick(folder),
        **SHOWN,
        "spark.anonlib.minimumK": "4",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("security")
    for name in ("local", "temporary", "events", "cwd"):
        (folder / name).mkdir()
    patients().to_parquet(folder / "people.parquet", index=False)
    (folder / "places.csv").write_text(f"east;land;*\nwest;land;*\n{RARE};*\n")
    few = patients().loc[[10, 30]]
    few.assign(**{NAME: few[NAME] + "-new"}).to_parquet(folder / "few.parquet", index=False)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.watched", str(folder)],
        input=json.dumps([spark_settings(folder), command_lines(folder)]),
        env={**os.environ, **KEYS, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "temporary")},
        cwd=folder / "cwd",
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    codes = (folder / "codes").read_text().split()
    assert codes == ["0", "0", "0", "2", "0", "0"], done.stderr
    assert "rows wait in the backlog" in done.stdout
    assert "Traceback" not in done.stderr
    return Ran(folder, done.stdout, done.stderr)


def test_what_is_looked_at(ran: Ran) -> None:
    """The pages, the log and the files are there: what is not found in them is not in them."""
    seen = ran.folder / "seen"
    (log,) = (ran.folder / "events").iterdir()
    assert log.read_text().count("SparkListenerSQLExecutionStart") > 20
    assert int((seen / "n_queries").read_text()) > 20
    for text in (log.read_text(), (seen / "answer-environment").read_text()):
        assert all(re.search(rf'"{re.escape(n)}"[ ,:]+"\*+\(redacted\)"', text) for n in SECRETS)
    assert "--conf spark.sql.warehouse.dir=" in (seen / "commands").read_text()
    assert list((seen / "local").rglob("shuffle_*"))
    assert list((seen / "_table.anonlib").rglob("staging/*.parquet"))


@pytest.mark.parametrize("mark", [*KEYS.values(), *SECRETS.values()])
def test_keys_and_secrets_are_nowhere(ran: Ran, mark: str) -> None:
    assert holding(mark, ran.folder) == []
    assert mark not in ran.out + ran.err


@pytest.mark.parametrize("mark", RAW)
def test_raw_values_are_in_nothing_that_is_told(ran: Ran, mark: str) -> None:
    assert mark not in ran.out + ran.err
    given = {"people.parquet", "few.parquet", "places.csv", "config.yaml"}
    found = {name for name in holding(mark, ran.folder) if name not in given}
    if mark == SICK:  # published as it is
        published = r"out/table(-3)?/|seen/_table(-3)?\.anonlib/staging/"
        found = {name for name in found if not re.match(published, name)}
        for table in ("table", "table-3"):
            assert not holding(mark, ran.folder / "out" / table / "_anonlib")
    if mark in (CONDITION, TOKEN):  # constants of the config: the graphs of Spark's plans have them
        found = {n for n in found if not re.match(r"events/|seen/(query-|answer-sql)", n)}
    assert found == set()


def test_names_are_names(ran: Ran) -> None:
    """The released table has the columns of the config, under their very names."""
    log = ran.folder / "out" / "table" / "_delta_log" / f"{0:020}.json"
    (schema,) = re.findall(r'"schemaString":("(?:[^"\\]|\\.)*")', log.read_text())
    names = [field["name"] for field in json.loads(json.loads(schema))["fields"]]
    assert names == [NAME, PAY, PLACE, ILL, LEVEL, PART]
    assert len(ran.table) == N - 1  # the condition left one out


def test_reports_escape_every_name(ran: Ran) -> None:
    pages = [*(ran.folder / "out" / "table.private").rglob("*.html")]
    assert len(pages) == 2
    for path in pages:
        page = path.read_text()
        assert html.escape(ILL) in page
        assert "<script" not in page.lower()
        assert "<b>" not in page
        assert "\u202e" not in page or re.search(r"<bdi[^>]*>[^<]*\u202e", page)


def test_what_is_told_obeys_no_name(ran: Ran) -> None:
    """Neither an end of line nor a mark of direction reaches the terminal."""
    assert "\u202e" not in ran.out + ran.err
    assert "line\nbreak" not in ran.out + ran.err


def test_minimum_k_of_the_application(ran: Ran) -> None:
    assert "k is 3; the operator of this installation allows no k below 4" in ran.err
    for path in (ran.folder / "out").rglob("*.json"):
        assert "minimum" not in path.read_text()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_nobody_else_may_write(ran: Ran) -> None:
    wrong = [p for p in (ran.folder / "out").rglob("*") if mode(p) & 0o022]
    assert {str(p.relative_to(ran.folder)): oct(mode(p)) for p in wrong} == {}


def test_private_files_are_private(ran: Ran) -> None:
    """Staging is (copies have the modes of what they copy), and the record's folder with all in it,
    also what Spark writes."""
    private = ran.folder / "out" / "table.private"
    work = ran.folder / "seen" / "_table.anonlib"
    for folder in (private, private / "ledger", private / "metrics", work):
        assert oct(mode(folder)) == oct(0o700), folder.name
    told = [*private.rglob("*"), *work.glob("lease-*.json")]
    files = [path for path in told if path.is_file()]
    assert len(files) > 20  # records, reports, a lease; tables of Spark with their logs
    assert {p.name: oct(mode(p)) for p in files if mode(p) != 0o600} == {}
    assert {p.name: oct(mode(p)) for p in told if p.is_dir() and mode(p) != 0o700} == {}


def test_published_files_can_be_read(ran: Ran) -> None:
    paths = [*(ran.folder / "out" / "table").rglob("*")]
    assert {p.name: oct(mode(p)) for p in paths if not mode(p) & 0o004} == {}
    assert {p.name: oct(mode(p)) for p in paths if p.is_dir() and not mode(p) & 0o001} == {}
