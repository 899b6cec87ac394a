"""What attacks see, in Spark: a shadow release, and persons who are in it and who are not."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anonlib.evaluation.fold import fold
from anonlib.evaluation.samples import is_held_out
from anonlib.measure.attack_tables import OUT, PERSON, ROW, AttackedPersons, AttackTables
from anonlib.measure.draws import ATTACKED, MODULUS, RELEASED_ROWS, SLACK, limit_size, list_persons
from anonlib.measure.states import Count, Merge, States
from anonlib.spark.values import hash_row
from anonlib.table.columns import DEAL
from anonlib.table.schema import Schema

_HASH = "__anonlib_person_hash"


@dataclass(frozen=True, kw_only=True)
class SparkTables(AttackTables):
    """See `AttackTables`.

    Attributes:
        schema: The columns.
        source: The original rows, with PERSON if there is a unit, and whether they are held out.
        released: The rows of the shadow release, with ROW.
        seed: The seed of samples.
        holdout: The share of persons held out.
        attempts: The most persons of each kind.
        n_source: Rows of the source.
    """

    schema: Schema
    source: DataFrame
    released: DataFrame
    n_released: int
    seed: int
    holdout: float
    attempts: int
    n_source: int

    def sample(self, ids: Sequence[str], size: int) -> pa.Table:
        place = F.pmod(F.xxhash64(F.lit(RELEASED_ROWS.format(self.seed)), ROW), F.lit(MODULUS))
        some = self.released.where(place < limit_size(size, self.n_released)).select(*ids, ROW)
        return some.dropDuplicates([ROW]).toArrow().sort_by(ROW).combine_chunks()

    def fold_released(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        return fold(self.released.select(*ids, ROW), count, merge)

    def fold_source(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        numbers = [PERSON] if self.schema.unit else []
        return fold(self.source.select(*ids, OUT, *numbers), count, merge)

    def persons(self) -> AttackedPersons:
        return self._attacked_persons

    @cached_property
    def _attacked_persons(self) -> AttackedPersons:
        ids = [column.id for column in self.schema.released]
        one_each, n_persons = bool(self.schema.unit), self.n_source
        if one_each:
            n_persons = int(self.source.agg(F.approx_count_distinct(_HASH)).collect()[0][0])
        place, wanted = F.pmod(_HASH, F.lit(MODULUS)), SLACK * self.attempts
        shares = self.holdout, 1 - self.holdout
        bounds = (limit_size(wanted, n_persons * share) for share in shares)
        drawn = self.source.where(place < F.when(F.col(OUT), next(bounds)).otherwise(next(bounds)))
        table = drawn.select(*ids, DEAL, OUT, _HASH).toArrow().combine_chunks()
        hashed, deal = (table.column(name).to_numpy() for name in (_HASH, DEAL))
        first = list_persons(hashed, deal, one_each=one_each)
        out, rows = table.column(OUT).to_numpy()[first], table.select(ids)
        sides = (pa.array(first[side][: self.attempts]) for side in (~out, out))
        return AttackedPersons(*(rows.take(side).combine_chunks() for side in sides))


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
    """A shadow release and persons to attack.

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
    rows = source.dropna(subset=list(schema.unit)) if schema.unit else source
    hashed = _hash_person(schema, seed)
    rows = rows.withColumns({OUT: is_held_out(schema, seed, holdout), _HASH: hashed})
    if schema.unit:
        rows = rows.withColumn(PERSON, _shorten(F.col(_HASH)))
    return SparkTables(
        schema=schema,
        source=rows,
        released=released.select(*ids, _shorten(hash_row(released.select(*ids))).alias(ROW)),
        n_released=released.count(),
        seed=seed,
        holdout=holdout,
        attempts=attempts,
        n_source=n_source,
    )


def _hash_person(schema: Schema, seed: int) -> Column:
    """The hash that persons are drawn by; of equal rows, if each row is a person, the same."""
    persons = [F.col(id) for id in schema.unit] or [F.col(DEAL)]
    return F.xxhash64(F.lit(ATTACKED.format(seed)), *persons)


def _shorten(number: Column) -> Column:
    """The 52 highest bits, which a float64 holds."""
    return F.shiftrightunsigned(number, 12)
