"""Which files can be the release as they are, and moments that tasks count."""

from typing import Any

import pyarrow as pa
import pytest

from anonlib.config.model import ReleaseSection, SparkSection
from anonlib.config.reading import parse
from anonlib.config.resolve import resolve
from anonlib.errors import BlockError
from anonlib.kernels.discriminant import measure_classes
from anonlib.run.staging import _partial, may_deal, tells_nothing_private
from anonlib.table.block import ClassMoments
from anonlib.table.columns import CONTROLLER, COST, HASH, HELD, LINK, TOKEN
from anonlib.table.encoding import Encoding
from anonlib.table.schema import Field, Scale
from anonlib.worker.marks import NO_MARKS, Marks
from anonlib.worker.setup import make_output_schema
from anonlib.worker.task import to_block
from tests.unit.test_task import table, task


@pytest.mark.parametrize(
    ("release", "spark", "n_files", "expected"),
    [
        ({}, {}, 2, True),
        ({}, {}, 1, True),
        ({"order": "table"}, {}, 2, False),
        ({"partition_by": ["illness"]}, {}, 2, False),
        ({"rows_per_file": 1000}, {}, 2, True),
        ({"rows_per_file": 1999}, {}, 1, False),
        ({"rows_per_file": 2000}, {}, 1, True),
        ({}, {"partitions": 1}, 2, False),
        ({}, {"partitions": 2}, 2, True),
        ({}, {"partitions": 3}, 2, True),
    ],
)
def test_files_of_whole_cells(
    release: dict[str, Any], spark: dict[str, Any], n_files: int, expected: bool
) -> None:
    """2000 rows. With blocks for a single file only, one that has too many rows is none."""
    section = ReleaseSection(path="out", **release)
    how, output = SparkSection(**spark), pa.schema({"c0": pa.int32(), COST: pa.int32()})
    assert may_deal(2000, n_files, section, how, output) is expected
    assert not may_deal(2000, n_files, section, how, output.append(pa.field(TOKEN, pa.binary())))


PRIVACY = {"models": [{"type": "k_anonymity", "k": 3}]}
COSTLIEST = {**PRIVACY, "suppress": "costliest", "suppression_limit": 0.1}


@pytest.mark.parametrize(
    ("changes", "marks", "private"),
    [
        ({}, NO_MARKS, []),
        ({"privacy": COSTLIEST}, NO_MARKS, [COST]),
        ({}, Marks(link_key=b"key"), [LINK]),
        ({}, Marks(share=0.1), [HELD]),
        ({"unit": ["name"], "one_row_per_person": False}, NO_MARKS, [TOKEN]),
        (
            {"partition": {"steps": [{"type": "controller", "column": "city"}]}},
            NO_MARKS,
            [CONTROLLER],
        ),
    ],
    ids=str,
)
def test_private_columns(changes: dict[str, Any], marks: Marks, private: list[str]) -> None:
    """What tasks tell beside the release is never in it."""
    given = {
        "source": {"format": "dataframe"},
        "attributes": {
            "name": {"role": "identifier"},
            "wage": {"role": "quasi_identifier", "scale": "continuous"},
            "city": {"role": "drop"},
            "illness": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": PRIVACY,
        "release": {"path": "out"},
        **changes,
    }
    texts = [Field(name, "string", pa.string()) for name in ("name", "city", "illness")]
    fields = [*texts, Field("wage", "int", pa.int32())]
    config = parse(given)
    schema = resolve(config, fields)
    released = [column.id for column in schema.released]
    output = make_output_schema(schema, config, marks)
    assert output.names == [*released, *private]
    assert tells_nothing_private(output, released) is (not private)


def test_moments_of_batches_are_those_of_the_table() -> None:
    source = table()
    town = Encoding("c1", Scale.NOMINAL, True, categories=pa.array(["a", "b"]))
    made = task(source, target=town, protected=(), models=())
    columns = source.select(["c0", "c1", HASH])
    (found,) = _partial(iter(columns.to_batches(max_chunksize=7)), made)
    moments = ClassMoments.from_json(found.column(0)[0].as_py())
    whole = measure_classes(to_block(source, made)[0])
    assert moments.to_json() == whole.to_json()
    assert next(_partial(iter([]), made)).num_rows == 0
    with pytest.raises(BlockError) as caught:
        list(_partial(iter(columns.drop(["c0"]).to_batches()), made))
    assert str(caught.value) == "class moments failed with KeyError"
    assert caught.value.__context__ is None
