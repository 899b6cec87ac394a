"""Figures of the source's columns for a private record: means, missing values, categories."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from anonlib.table.encoding import Encoding, count_units_per_day, tell_time
from anonlib.table.schema import Schema
from anonlib.text import is_few


def summarize_source(
    schema: Schema,
    encodings: Sequence[Encoding],
    n_missing: Mapping[str, int],
    n_rows: int,
    k: int,
) -> dict[str, dict[str, Any]]:
    """The parts `moments`, `missing` and `categories` of a record, each by quasi-identifier.

    Args:
        schema: The columns.
        encodings: Of the quasi-identifiers.
        n_missing: By id: missing values.
        n_rows: Rows of the source.
        k: The least persons of a class: smaller counts are hidden.
    """
    return {
        "moments": {
            schema.by_id(e.id).name: _moments(e, schema.by_id(e.id).type)
            for e in encodings
            # The mean of a constant column, or of a few values, would tell these.
            if not e.nominal and e.low < e.high and n_rows - n_missing.get(e.id, 0) >= k
        },
        "missing": {
            schema.by_id(id).name: f"<{k}" if is_few(n, k) else n for id, n in n_missing.items()
        },
        "categories": {schema.by_id(e.id).name: e.n_categories for e in encodings if e.nominal},
    }


def _moments(encoding: Encoding, type: pa.DataType) -> dict[str, Any]:
    """The mean and the deviation of a column, in its own units where it has some.

    `form` is `number`; `date` or `time` with a mean that is one, and the deviation in days; or
    `rank`, of categories that are no numbers at equal distances.
    """
    if encoding.moments is None:
        return {"mean": encoding.mean, "sd": encoding.sd, "form": "rank"}
    mean, sd = encoding.moments
    form = "date" if pa.types.is_date(type) else "time" if pa.types.is_timestamp(type) else "number"
    if form == "number":
        return {"mean": mean, "sd": sd, "form": form}
    text = tell_time(mean, type)  # None beyond the year 9999: a record does not fail for it
    return {
        "mean": text,
        "sd": None if text is None else sd / count_units_per_day(type),
        "form": form,
    }
