"""The arithmetic of digests, without a table: no number of rows is too many."""

from functools import reduce
from random import Random

import pytest

from anonlib.run.plan import merge_read
from anonlib.spark.digest import PIECE_BITS, PIECES, make_digest
from anonlib.table.columns import HIGH, LOW
from anonlib.table.table_digest import Digest
from anonlib.worker.task import Totals

Hashes = dict[str, int]


def aggregates(rows: list[tuple[Hashes, int]]) -> dict[str, int]:
    """What Spark sums over rows that are there so many times, as signed 64-bit integers."""
    found = {"digest_n": sum(n for _, n in rows)}
    for name, half, shift in PIECES:
        piece = (1 << PIECE_BITS) - 1
        found[name] = sum(((hashes[half] % 2**64) >> shift & piece) * n for hashes, n in rows)
    assert max(found.values()) < 2**63
    return found


def random_rows(seed: int) -> list[tuple[Hashes, int]]:
    random = Random(seed)
    return [
        ({half: random.getrandbits(64) - 2**63 for half in (LOW, HIGH)}, random.randrange(1, 2**33))
        for _ in range(50)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_billions_of_rows(seed: int) -> None:
    rows = random_rows(seed)
    found = make_digest(aggregates(rows))
    assert found.n_rows > 2**32
    for half, total in ((LOW, found.low), (HIGH, found.high)):
        assert total == sum(hashes[half] * n for hashes, n in rows) % 2**64


def test_as_many_rows_as_spark_can_count() -> None:
    """All bits of all hashes are set: the largest sums there are."""
    n = 2**47
    found = make_digest(aggregates([({LOW: -1, HIGH: -1}, n)]))
    assert found == Digest(n, -n % 2**64, -n % 2**64)


def test_parts_are_the_whole() -> None:
    rows = random_rows(7)
    parts = [make_digest(aggregates(rows[i : i + 9])) for i in range(0, 50, 9)]
    whole = make_digest(aggregates(rows))
    assert reduce(Digest.__add__, parts, Digest()) == whole
    assert reduce(Digest.__add__, reversed(parts)) == whole


def test_totals_of_tasks_are_the_whole() -> None:
    """Tasks sum hashes as signed integers that wrap."""
    rows = random_rows(8)
    totals = []
    for hashes, n in rows:
        sums = [(hashes[half] * n + 2**63) % 2**64 - 2**63 for half in (LOW, HIGH)]
        totals.append(Totals(n, *sums))
    assert merge_read(totals) == make_digest(aggregates(rows))


def test_a_row_twice_and_another_lost() -> None:
    first, second, third = ({LOW: i * 7919, HIGH: i * 104729} for i in (1, 2, 3))
    before = make_digest(aggregates([(first, 1), (second, 1), (third, 1)]))
    after = make_digest(aggregates([(first, 2), (second, 1)]))
    assert before.n_rows == after.n_rows
    assert before != after


def test_rows_that_are_there_twice_don_t_cancel_out() -> None:
    """As they would in an exclusive or."""
    row, other = {LOW: 5, HIGH: 6}, {LOW: 50, HIGH: 60}
    before = make_digest(aggregates([(row, 2), (other, 1)]))
    assert before != make_digest(aggregates([(other, 3)]))
    assert before != make_digest(aggregates([(other, 1)]))


@pytest.mark.parametrize("digest", [Digest(), Digest(3, 2**64 - 1, 5), Digest(2**40, 1, 2**63)])
def test_a_digest_as_text(digest: Digest) -> None:
    assert Digest.from_text(digest.text) == digest
    for text in ("", "3", digest.text[:-1], digest.text + "0", "x" + digest.text):
        with pytest.raises(ValueError, match=r"hex digits|invalid literal"):
            Digest.from_text(text)
