"""What a scan finds in the rows of a source, beside the figures of its columns."""

from dataclasses import dataclass

import pyarrow as pa

from anonlib.content.content_rules import Content
from anonlib.run.categories import Categories
from anonlib.table.encoding import Values


@dataclass(frozen=True)
class RowFacts:
    """What a scan finds beside the figures of columns.

    Attributes:
        sample: As in `Scan`.
        categories: Of nominal and ordinal columns.
        values: As in `Scan`.
        content: The figures of the content gate.
    """

    sample: pa.Table
    categories: Categories
    values: dict[str, Values]
    content: Content
