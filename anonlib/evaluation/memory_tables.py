"""What attacks see, in memory: a shadow release, and persons who are in it and who are not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonlib.arrays import Ints
from anonlib.evaluation.memory_samples import find_held_out, to_arrays
from anonlib.measure.attack_tables import OUT, PERSON, ROW, AttackedPersons, AttackTables
from anonlib.measure.draws import ATTACKED, MODULUS, RELEASED_ROWS, SLACK, limit_size, list_persons
from anonlib.measure.states import Count, Merge, States
from anonlib.table.columns import DEAL
from anonlib.table.hashes import hash_chains, hash_rows, hash_text, hash_values
from anonlib.table.schema import Schema


@dataclass(frozen=True)
class MemoryTables(AttackTables):
    """See `AttackTables`.

    Attributes:
        attacked_persons: The persons to attack.
        source: The original rows, with PERSON if there is a unit, and whether they are held out.
        released: The rows of the shadow release, with ROW.
        seed: The seed of samples.
    """

    attacked_persons: AttackedPersons
    n_released: int
    source: pa.Table
    released: pa.Table
    seed: int

    def persons(self) -> AttackedPersons:
        return self.attacked_persons

    def sample(self, ids: Sequence[str], size: int) -> pa.Table:
        seed = hash_text(RELEASED_ROWS.format(self.seed))
        place = hash_values(self.released.column(ROW).combine_chunks(), seed) % MODULUS
        some = self.released.filter(pa.array(place < limit_size(size, self.n_released)))
        first = np.unique(some.column(ROW).to_numpy(), return_index=True)[1]
        return some.select([*ids, ROW]).take(pa.array(first)).combine_chunks()

    def fold_released(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        return count([self.released.select([*ids, ROW])])

    def fold_source(self, ids: Sequence[str], count: Count, merge: Merge) -> States:
        numbers = [PERSON] if PERSON in self.source.column_names else []
        return count([self.source.select([*ids, OUT, *numbers])])


def make_memory_tables(
    source: pa.Table,
    released: pa.Table,
    schema: Schema,
    *,
    seed: int,
    holdout: float,
    attempts: int,
) -> MemoryTables:
    """A shadow release and persons to attack.

    Args:
        source: The original rows, with DEAL.
        released: The rows of a release made without the persons held out.
        schema: The columns.
        seed: The seed.
        holdout: The share of persons held out.
        attempts: The most persons of each kind.
    """
    ids = [column.id for column in schema.released]
    if schema.unit:
        known = [pc.is_valid(source.column(id)) for id in schema.unit]
        source = source.filter(pa.array(np.all([each.to_numpy() for each in known], axis=0)))
    out = find_held_out(source, schema, seed, holdout)
    persons = to_arrays(source, schema.unit or (DEAL,))
    hashed = hash_chains(persons, hash_text(ATTACKED.format(seed)))
    n_persons = len(np.unique(hashed)) if schema.unit else source.num_rows
    wanted = SLACK * attempts
    limits = (limit_size(wanted, n_persons * share) for share in (holdout, 1 - holdout))
    drawn = np.flatnonzero(hashed % MODULUS < np.where(out, next(limits), next(limits)))
    rows = source.select(ids).append_column(OUT, pa.array(out))
    if schema.unit:
        rows = rows.append_column(PERSON, pa.array(_shorten(hashed)))
    deal = source.column(DEAL).to_numpy()
    order = drawn[list_persons(hashed[drawn], deal[drawn], one_each=bool(schema.unit))]
    table, number = source.select(ids), _shorten(hash_rows(to_arrays(released, ids)))
    return MemoryTables(
        attacked_persons=AttackedPersons(
            members=table.take(pa.array(order[~out[order]][:attempts])).combine_chunks(),
            others=table.take(pa.array(order[out[order]][:attempts])).combine_chunks(),
        ),
        n_released=released.num_rows,
        source=rows,
        released=released.select(ids).append_column(ROW, pa.array(number)),
        seed=seed,
    )


def _shorten(number: Ints) -> Ints:
    """The 52 highest bits, which a float64 holds."""
    return (number.view(np.uint64) >> np.uint64(12)).astype(np.int64)
