"""The case of a run: its release and its source, as measures see them."""

from collections.abc import Callable
from functools import cache

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from anonlib.config.keys import new_token_key
from anonlib.config.model import Config
from anonlib.evaluation.samples import is_held_out
from anonlib.evaluation.spark_case import SparkCase
from anonlib.progress import Progress, SilentProgress
from anonlib.run.audited_release import AuditedRelease
from anonlib.run.scan import Scan, scan
from anonlib.run.staging import Place, stage_release
from anonlib.run.suppression import find_least_cost
from anonlib.source.resolved_source import Source
from anonlib.table.columns import COST
from anonlib.worker.marks import NO_MARKS


def make_run_case(
    config: Config,
    source: Source,
    scan: Scan,
    release: AuditedRelease,
    prior_rows: DataFrame | None,
    work: str,
    progress: Progress,
) -> SparkCase:
    """The release of a run and its source, as measures see them.

    Args:
        config: The config.
        source: The source.
        scan: The figures of the source.
        release: The release, with what workers counted in its cells, and links to the source.
        prior_rows: The published rows that this batch is added to, if any.
        work: The folder for files that measures need.
        progress: Hears of every stage.
    """
    task = release.staging.task
    return SparkCase.of(
        config,
        source.schema,
        source=source.rows(),
        released=release.rows,
        n_source=scan.n_rows,
        n_released=release.figures.digest.n_rows,
        encodings={encoding.id: encoding for encoding in scan.encodings},
        shadow=_shadow_of(source, config, work, progress, prior_rows),
        link_key=task.link_key,
        counts=release.figures.counts,
        least_cost=release.least_cost,
        fits={each.measure["type"]: each.fit for each in task.counters},
    )


def make_published_case(
    config: Config,
    source: Source,
    scan: Scan,
    released: DataFrame,
    n_released: int,
    work: str,
    progress: Progress,
    *,
    persons_return: bool,
) -> SparkCase:
    """A published release and its source: as for `make_run_case`, but cells are not counted, and
    nothing links rows.

    Args:
        config: The config.
        source: The source.
        scan: The figures of the source.
        released: The released rows.
        n_released: Their number.
        work: The folder for files that measures need.
        progress: Hears of every stage.
        persons_return: Whether persons may be in several batches of the release.
    """
    return SparkCase.of(
        config,
        source.schema,
        persons_return=persons_return,
        source=source.rows(),
        released=released,
        n_source=scan.n_rows,
        n_released=n_released,
        encodings={encoding.id: encoding for encoding in scan.encodings},
        shadow=_shadow_of(source, config, work, progress, None),
    )


def _shadow_of(
    source: Source, config: Config, work: str, progress: Progress, prior_rows: DataFrame | None
) -> Callable[[float], DataFrame]:
    """A function that makes a release without the held-out persons, in the folder `work`. Its
    argument is their share.

    Only measures see this release, and the end of the lease removes it.
    """

    @cache
    def shadow(share: float) -> DataFrame:
        with progress.stage("shadow", source.raw.sparkSession):
            train = source.where(~is_held_out(source.schema, config.seed, share))
            scanned = scan(train, config, prior_rows)
            # Pseudonyms and tokens of a table that nobody sees: under keys that nobody has.
            keys = new_token_key(), new_token_key()
            names = {column.id: column.name for column in source.schema.released}
            place = Place(f"{work}/shadow-{share:g}", names, "shadow")
            staging = stage_release(
                train, scanned, config, place, *keys, NO_MARKS, SilentProgress()
            )
            least = find_least_cost(
                config.privacy, staging.rows, scanned.n_rows, staging.plan.n_rows
            )
            return staging.rows if least is None else staging.rows.where(F.col(COST) < least)

    return shadow
