"""The format of a table by the extension of its name."""

from pathlib import PurePosixPath

_FORMATS = {
    **dict.fromkeys(("csv", "tsv", "tab", "txt", "psv"), "csv"),
    **dict.fromkeys(("parquet", "pq"), "parquet"),
    **dict.fromkeys(("json", "jsonl", "ndjson"), "json"),
    "orc": "orc",
}
_COMPRESSED = ("gz", "bz2", "zst", "lz4", "snappy", "deflate", "xz")


def guess_format(name: str) -> str | None:
    """The format of a file, such as csv for `people.csv.gz`; None if its name does not tell."""
    parts = PurePosixPath(name).name.lower().split(".")
    if parts[-1] in _COMPRESSED:
        parts.pop()
    return _FORMATS.get(parts[-1])
