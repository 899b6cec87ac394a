"""Measures a release in memory against its source, and judges the gates."""

import secrets
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from anonlib.config.model import Config
from anonlib.config.resolve import with_ids
from anonlib.evaluation import Evaluation, evaluate_case
from anonlib.evaluation.memory_case import MemoryCase
from anonlib.evaluation.memory_samples import find_held_out, mark, with_deal
from anonlib.evaluation.published_spec import make_auditable_spec
from anonlib.in_hand.proof import require_harmless
from anonlib.local.engine import MemoryRelease, make_release
from anonlib.local.rows import Rows
from anonlib.measure import Findings
from anonlib.measure.fidelity.overview import Overview
from anonlib.progress import Progress
from anonlib.worker.marks import Marks


def mark_rows(rows: Rows, seed: int, marks: Marks) -> Rows:
    """The rows with what measures need of them."""
    table = with_deal(rows.table, rows.schema)
    return Rows(mark(table, rows.schema, seed, marks), rows.schema)


def make_case(release: MemoryRelease, rows: Rows, config: Config, link_key: bytes) -> MemoryCase:
    """A release and its source, as measures see them."""

    @cache
    def shadow(share: float) -> pa.Table:
        """A release without the persons held out. Only measures see it."""
        out = find_held_out(rows.table, rows.schema, config.seed, share)
        train = Rows(rows.table.filter(pc.invert(pa.array(out))), rows.schema)
        require_harmless(train, config)
        return make_release(train, config, secrets.token_bytes(32)).table

    return MemoryCase(
        schema=rows.schema,
        source=rows.table,
        released=release.table,
        n_source=rows.table.num_rows,
        n_released=release.table.num_rows,
        k=config.k,
        models=with_ids(config.bound_models, rows.schema),
        seed=config.seed,
        encodings={encoding.id: encoding for encoding in release.encodings},
        measures=config.measures,
        target_scale=config.target_scale,
        looked_at_target=config.needs_target,
        spec=make_auditable_spec(config),
        shadow=shadow,
        link_key=link_key,
        counts=release.counts,
        fits=release.fits,
        least_cost=release.least_cost,
    )


def evaluate_release(case: MemoryCase, config: Config) -> tuple[Evaluation | None, Findings]:
    """What the config's measures found, and the overview of all columns. Raises GateError if a
    gate is not passed."""
    overview = Overview().measure(case)
    if config.evaluate is None:
        return None, overview
    found = evaluate_case(config.evaluate, config.gates, case, Progress())
    found.require()
    return found, overview
