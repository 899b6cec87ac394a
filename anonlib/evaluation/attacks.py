"""What attacks see, in Spark: a shadow release, and persons who are in it and who are not."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.evaluation.fold import fold
from anonlib.evaluation.samples import is_held_out
from anonlib.measure.attack_tables import OUT, PERSON, ROW, AttackTables
from anonlib.measure.draws import ATTACKED, MODULUS, RELEASED_ROWS, SLACK, limit_size, list_persons
from anonlib.measure.states import Count, Merge, States
from anonlib.spark.values import hash_row
from anonlib.table.columns import DEAL
from anonlib.table.schema import Schema

_HASH = "__anonlib_person_hash"


@dataclass(frozen=True)
class SparkTables(AttackTables):
    """See `AttackTables`.

    Attributes:
        source: The original rows, with PERSON if there is a unit, and whether they are held out.
        released: The rows of the shadow release, with ROW.
        seed: The seed of samples.
    """

    members: pa.Table
    others: pa.Table
    n_released: int
    source: DataFrame
    released: DataFrame
    seed: int

    def sample(self, ids: Sequence[str], size: int) -> pa.Table:
        place = F.pmod(F.xxhash64(F.lit(RELEASED_ROWS.format(self.seed)), ROW), F.lit(MODULUS))
        some = self.released.where(place < limit_size(size, self.n_released)).select(*ids, ROW)
        return some.dropDuplicates([ROW]).toArrow().sort_by(ROW).combine_chunks()

    def fold_released(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        return fold(self.released.select(*ids, ROW), count, merge)

    def fold_source(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        numbers = [PERSON] if PERSON in self.source.columns else []
        return fold(self.source.select(*ids, OUT, *numbers), count, merge)


def make_attack_tables(
    source: DataFrame,
    released: DataFrame,
    schema: Schema,
    *,
    seed: int,
    holdout: float,
    attempts: int,
    n_source: int,
) -> SparkTables:
    """A shadow release and persons to attack. Cost: one pass over the source; with a unit, one more
    that counts persons.

    Args:
        source: The original rows.
        released: The rows of a release made without the persons held out.
        schema: The columns.
        seed: The seed.
        holdout: The share of persons held out.
        attempts: The most persons of each kind.
        n_source: Rows of the source.
    """
    ids = [column.id for column in schema.released]
    hashed = _person_hash(schema, seed)
    rows = source.dropna(subset=list(schema.unit)) if schema.unit else source
    rows = rows.withColumns({OUT: is_held_out(schema, seed, holdout), _HASH: hashed})
    n_persons = n_source
    if schema.unit:
        rows = rows.withColumn(PERSON, _shorten(F.col(_HASH)))
        n_persons = int(rows.agg(F.approx_count_distinct(_HASH)).collect()[0][0])
    place, wanted = F.pmod(_HASH, F.lit(MODULUS)), SLACK * attempts
    bounds = (limit_size(wanted, n_persons * share) for share in (holdout, 1 - holdout))
    drawn = rows.where(place < F.when(F.col(OUT), next(bounds)).otherwise(next(bounds)))
    table = drawn.select(*ids, DEAL, OUT, _HASH).toArrow().combine_chunks()
    hashed_persons, deal = (table.column(name).to_numpy() for name in (_HASH, DEAL))
    first = list_persons(hashed_persons, deal, one_each=bool(schema.unit))
    out = table.column(OUT).to_numpy()[first]
    persons = table.select(ids)
    return SparkTables(
        members=persons.take(pa.array(first[~out][:attempts])).combine_chunks(),
        others=persons.take(pa.array(first[out][:attempts])).combine_chunks(),
        n_released=released.count(),
        source=rows,
        released=released.select(*ids, _shorten(hash_row(released.select(*ids))).alias(ROW)),
        seed=seed,
    )


def _person_hash(schema: Schema, seed: int) -> Column:
    """The hash that persons are drawn by; of equal rows, if each row is a person, the same."""
    persons = [F.col(id) for id in schema.unit] or [F.col(DEAL)]
    return F.xxhash64(F.lit(ATTACKED.format(seed)), *persons)


def _shorten(number: Column) -> Column:
    """The 52 highest bits, which a float64 holds."""
    return F.shiftrightunsigned(number, 12)
