"""The notebook of docs/ that publishes a DataFrame of Spark."""

from pathlib import Path

import pytest

from tests.notebooks import check_notebook, read_notebook

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_spark(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_KEY", "")  # the notebook sets it, and the test takes it away again
    check_notebook(read_notebook("spark"))
