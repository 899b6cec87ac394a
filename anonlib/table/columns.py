"""The private columns that travel with rows, and the keyed hashes that some of them hold."""

import hmac
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.table.encoding import one_zero

HASH = "__anonlib_hash"
DEAL = "__anonlib_deal"
LOW, HIGH = "__anonlib_low", "__anonlib_high"  # the halves of the hash of a row as it was read
BLOCK = "__anonlib_block"
POOL = "__anonlib_pool"  # the pool of the row's block, if the task is to find the block
CONTROLLER = "__anonlib_controller"
CONTROLLER_HASH = "__anonlib_controller_hash"  # the hash of the controller's value
TUPLE = "__anonlib_tuple"  # the hash of the quasi-identifiers
COST = "__anonlib_cost"
TOKEN = "__anonlib_token"
FILE = "__anonlib_file"  # the file that a row is staged in
LINK = "__anonlib_link"  # what tells whose row it was, of a few sampled rows: a keyed hash,
NO_LINK = 0  # and of all others this
HELD = "__anonlib_held"  # whether the row is one that learning tests on


def key_values(columns: list[pa.ChunkedArray], key: bytes) -> pa.Array:
    """HMAC-SHA256 of each row's values as hex text; null where one is null."""
    texts = [_texts(one_zero(column)).to_pylist() for column in columns]
    known: dict[tuple[str | None, ...], str | None] = {}
    result = []
    for row in zip(*texts, strict=True):
        if row not in known:
            known[row] = None if None in row else _hmac(key, row)
        result.append(known[row])
    return pa.array(result, pa.string())


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values as texts. A whole number has the same text as a float: one missing value makes floats
    of a column in pandas."""
    texts = pc.cast(column, pa.string())
    if not pa.types.is_floating(column.type):
        return texts
    whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**53))
    integers = pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.string())
    return pc.coalesce(integers, texts)


def key_links(links: pa.ChunkedArray, key: bytes) -> pa.Array:
    """int64[n]: the first 8 bytes of the HMAC-SHA256 of each link; NO_LINK stays."""
    known, place = np.unique(links.to_numpy(), return_inverse=True)  # a link may be many rows'
    found = [
        NO_LINK if link == NO_LINK else int(_hmac(key, (str(link),))[:16], 16) - 2**63
        for link in known.tolist()
    ]
    return pa.array(np.array(found, np.int64)[place])


def _hmac(key: bytes, values: tuple[str | None, ...]) -> str:
    # Lengths first: ("ab", "c") and ("a", "bc") must differ.
    message = "".join(f"{len(value or '')}:{value}" for value in values)
    return hmac.new(key, message.encode(), sha256).hexdigest()
