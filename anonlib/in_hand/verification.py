"""The verb `verify`: a certificate against its table, Delta, Parquet or in hand."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from anonlib.auditing import audit_in_memory
from anonlib.auditing.arrow_values import is_list
from anonlib.errors import InputError
from anonlib.local.frames import (
    is_of_spark,
    read_parquet_file,
    require_table,
    to_arrow_with_index,
)
from anonlib.pages.output import read_certificate
from anonlib.progress import Progress
from anonlib.run.confirmation import LineVerdict, Testimony, confirm_lines
from anonlib.table.type_words import spell_column


def verify(
    certificate: str | Path,
    table: Any,
    progress: Progress | None = None,
    *,
    version: int | None = None,
    record: str | Path | None = None,
) -> tuple[LineVerdict, ...]:
    """Compares a certificate with the table that it is of.

    A Parquet file and a table in memory need no Spark.

    Args:
        certificate: The file, in HTML.
        table: The folder of a Delta table, or a Parquet file; or a table in hand: of pandas, polars
            or Arrow, or a Spark DataFrame.
        progress: Hears of every stage; silent by default.
        version: The version of a Delta table; the latest by default.
        record: The private record of the run, which can tell of all lines.

    Returns:
        A verdict for each line: confirmed, contradicted, or unsaid where the table can't tell.

    Raises:
        InputError: The file is no certificate, or the table can't be read.

    Example:
        anonlib.verify("adult.certificate.html", "out/adult")
        anonlib.verify("people.html", "people.parquet")
    """
    progress = progress or Progress()
    read = read_certificate(certificate, record)
    is_path = isinstance(table, str | Path)
    if is_path and not Path(table).is_file():
        from anonlib.pipeline import verify_delta

        return verify_delta(read, str(table), progress, version)
    if version is not None:
        raise InputError("version: only a Delta table has versions")
    if is_of_spark(table):
        from anonlib.pipeline import verify_frame

        return verify_frame(read, table)
    with progress.stage("audit"):
        data = require_table(read_parquet_file(table) if is_path else table)
        return confirm_lines(read, _take_testimony(to_arrow_with_index(data)))


def _take_testimony(table: pa.Table) -> Testimony:
    """What a table in memory tells. Cost: O(bytes), for its digest."""
    from anonlib.table.table_digest import digest_in_memory

    return Testimony(
        columns=tuple(table.column_names),
        types=tuple(map(spell_column, table.columns)),
        lists=frozenset(field.name for field in table.schema if is_list(field.type)),
        take_digest=lambda places: digest_in_memory(table.select([*places])),
        manifest={},
        count=partial(audit_in_memory, table),
    )
