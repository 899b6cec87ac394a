"""A canary: identifiers, rare values and the key carry markers, and runs that succeed, fail and are
killed leave none of them anywhere."""

import json
import signal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.errors import AnonlibError
from tests.spark.support import Step, holding, installed, process, settings, texts_in, write_config

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.usefixtures("usual", "noted")]

IDENTIFIER, RARE, SICK = "CANARYNAME", "CANARYRARE", "CANARYSICK"
RARE_WAGE = 98765000321
KEY = "CANARYKEY-0123456789abcdef"
LEDGER_KEY = "CANARYLEDGER-0123456789abcdef"
N = 200

KERNEL = '''
import sys
from typing import ClassVar

from anonlib.kernels import Kernel


class Telltale(Kernel):
    """Fails, and tells of all rows that are in its reach."""

    type: ClassVar[str] = "telltale"
    cost: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    def cells(self, block):
        frame = sys._getframe()
        while "table" not in frame.f_locals:
            frame = frame.f_back
        text = str(frame.f_locals["table"].to_pydict())
        print(text, flush=True)
        print(text, file=sys.stderr, flush=True)
        raise ValueError(text)
'''


def patients() -> pd.DataFrame:
    """One rare wage, city and illness among the common ones."""
    frame = pd.DataFrame(
        {
            "name": [f"{IDENTIFIER}-{i}" for i in range(N)],
            "mail": [f"{IDENTIFIER}-{i}@example.org" for i in range(N)],
            "wage": [2000 + 17 * i % 400 for i in range(N)],
            "city": ["east" if i * i % 7 < 4 else "west" for i in range(N)],
            "illness": [f"illness-{i % 6}" for i in range(N)],
        }
    )
    frame.loc[10, "city"], frame.loc[20, "illness"], frame.loc[30, "wage"] = RARE, SICK, RARE_WAGE
    return frame


def with_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The wages as text, one of them no number."""
    return frame.astype({"wage": str}).replace({"wage": {"2017": RARE}})


def config(folder: Path) -> dict[str, Any]:
    raw = settings(
        folder,
        source={"format": "csv", "path": str(folder / "good.csv"), "options": {"header": "true"}},
        attributes={"mail": {"role": "identifier", "pseudonym": True}},
        one_row_per_person="mail",
        partition={"steps": [{"type": "kmeans"}], "max_rows": 100},
        pseudonyms={"key_env": "ANONLIB_CANARY_KEY"},
        release={
            "ledger": {"key_env": "ANONLIB_CANARY_LEDGER"},
            "backlog": {"key_env": "ANONLIB_CANARY_LEDGER"},
        },
    )
    raw["attributes"]["wage"]["type"] = "bigint"
    return raw


def test_no_marker_anywhere(tmp_path: Path) -> None:
    frame = patients()
    frame.to_csv(tmp_path / "good.csv", index=False)
    with_text(frame).to_csv(tmp_path / "bad.csv", index=False)
    few = frame.loc[[10, 30]].assign(mail=[f"{IDENTIFIER}-new-{i}" for i in range(2)])
    few.to_csv(tmp_path / "few.csv", index=False)
    with_text(frame).to_parquet(tmp_path / "bad.parquet", index=False)
    columns = "name, mail, cast(wage AS BIGINT) AS wage, city, illness"
    view = f"CREATE TEMPORARY VIEW wages AS SELECT {columns} FROM parquet.`{tmp_path}/bad.parquet`"
    written = write_config(tmp_path, config(tmp_path))

    def release(name: str, *overrides: str, **more: Any) -> Step:
        texts = [f"release.path={tmp_path}/out/{name}", *overrides]
        return Step(["release", written, *[p for t in texts for p in ("--set", t)]], **more)

    bad = f"source.path={tmp_path}/bad.csv"
    codes, out, err = process(
        tmp_path / "process",
        [
            release("good"),
            release("good", "release.mode=append", f"source.path={tmp_path}/few.csv"),
            release("no-number", bad),
            release("no-cast", "source.where='cast(city as int) > 0'"),
            release("view", "source={format: table, table: wages}", sql=view),
            release("telltale", "kernel=telltale"),
            release("interrupted", moment="anonymize started", send=signal.SIGINT),
            release("killed", moment="audit started", send=signal.SIGKILL),
        ],
        ANONLIB_CANARY_KEY=KEY,
        ANONLIB_CANARY_LEDGER=LEDGER_KEY,
        PYTHONPATH=installed(tmp_path / "plugin", "telltale", KERNEL),
    )
    assert codes == [0, 0, 2, 2, 2, 1, 1]
    assert "2 rows wait in the backlog" in out
    for text in (
        "column wage: 1 values can't be read as bigint",
        (
            "source.where: would show values that can't be read in Spark's event log and UI; "
            "use the try_ form of cast(string as int)"
        ),
        "anonymize: kernel telltale failed with ValueError",
        "interrupted: ",
    ):
        assert text in err, err
    assert "Traceback" not in err

    # What was printed, Spark's local and temporary folders, the folder that the process ran in.
    seen = texts_in(tmp_path / "process")
    assert sum(len(data) for name, data in seen.items() if "blockmgr" in name) > 5_000
    assert any("/rdd_" in name for name in seen)  # the source, kept while the killed run lasted
    assert any("/shuffle_" in name for name in seen)
    for marker in (IDENTIFIER, RARE, SICK, KEY, LEDGER_KEY, str(RARE_WAGE)):
        assert holding(marker, tmp_path / "process") == []
        assert marker not in out + err

    # What was published, its manifest and record, and what the killed run left.
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"good", "good.private", "_killed.anonlib"} <= left
    assert not left & {"_good.anonlib", "_telltale.anonlib", "_interrupted.anonlib"}
    assert not left & {"telltale", "interrupted", "killed", "no-number", "no-cast", "view"}
    assert any("staging/part-" in name for name in texts_in(tmp_path / "out" / "_killed.anonlib"))
    private = tmp_path / "out" / "good.private"
    for place in ("ledger/run-*/tokens", "backlog/run-*/rows"):
        assert list(private.glob(f"{place}/*.parquet"))
    for marker in (IDENTIFIER, RARE, KEY, LEDGER_KEY, str(RARE_WAGE)):
        assert holding(marker, tmp_path / "out") == []
    with_sick = holding(SICK, tmp_path / "out")
    assert with_sick  # published as it is, so the search does find what is there
    assert not [name for name in with_sick if "manifest" in name or "private" in name]
    (record,) = private.glob("*.json")
    assert json.loads(record.read_text())["n_rows_in"] == N


def test_library_logs_nothing(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without the command line around it, too: pyspark logs the queries that fail."""
    frame = spark.createDataFrame(with_text(patients()))
    raw = config(tmp_path)
    raw["attributes"]["mail"] = {"role": "identifier"}
    raw["release"] = {"path": raw["release"]["path"]}
    raw["source"] = {"format": "dataframe"}
    for condition in (f"citi = '{RARE}'", "cast(wage as int) > 0"):
        raw["source"]["where"] = condition
        with pytest.raises(AnonlibError) as caught:
            anonlib.release(anonlib.parse(raw), dataframe=frame)
        assert RARE not in str(caught.value)
    out, err = capfd.readouterr()
    assert (out, RARE in err) == ("", False), err
