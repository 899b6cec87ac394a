"""What a batch is compared with of the releases before it, without Spark."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from anonlib.run.past import _other_trees

NAMES, PARENTS = ["all", "north", "south"], [0, 0, 0]
PUBLISHED = {"names": ["all", None, "south"], "parents": PARENTS}


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        (json.dumps({"hierarchies": {"zip": PUBLISHED}}), True),
        (json.dumps({"hierarchies": {"zip": PUBLISHED | {"names": ["all", None, "west"]}}}), False),
        (json.dumps({"hierarchies": {"zip": PUBLISHED | {"parents": [0, 0, 1]}}}), False),
        (json.dumps({"hierarchies": {}}), False),
        ("{}", False),
        ("[]", False),
        ("", False),
    ],
)
def test_the_hierarchy_of_the_newest_manifest(text: str, is_same: bool) -> None:
    """Also where only the manifest beside the table has it, as after a clean-up of Delta's log."""
    tree = SimpleNamespace(names=NAMES, tree=SimpleNamespace(parent=np.array(PARENTS)))
    schema: Any = SimpleNamespace(hierarchies={"zip": tree})
    target: Any = SimpleNamespace(newest_manifest=lambda: text, commits=list)
    assert [*_other_trees(target, schema)] == (
        [] if is_same else ["the hierarchy of column zip differs from the table's"]
    )
