"""One run, without Spark: what it knows of the table that it leaves."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from anonlib.run.steps import Run


def run(manifest: dict[str, Any], **release: Any) -> Run:
    """A run to a table with this manifest."""
    given: Any = SimpleNamespace(
        release=SimpleNamespace(**{"mode": "append", "acknowledge_returning": False, **release})
    )
    target: Any = SimpleNamespace(newest_manifest=lambda: json.dumps(manifest))
    none: Any = None
    return Run(none, given, none, none, target, b"", none, none)


@pytest.mark.parametrize(
    ("manifest", "release", "persons_return"),
    [
        ({"persons": "one row per person: checked"}, {}, False),
        ({"persons": "one row per person: checked"}, {"acknowledge_returning": True}, True),
        # An earlier run had accepted it: its rows are still there.
        ({"persons_return": True}, {}, True),
        ({"persons_return": True}, {"mode": "overwrite"}, False),
    ],
)
def test_persons_may_be_in_several_batches(
    manifest: dict[str, Any], release: dict[str, Any], persons_return: bool
) -> None:
    assert run(manifest, **release).persons_return is persons_return
