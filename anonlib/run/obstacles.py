"""What stands in the way of a release although its config fits its source: a key that is not there,
a table that is there already."""

from collections.abc import Iterator

from pyspark.sql import SparkSession

from anonlib.config.keys import derive_ledger_key, require_master_keys
from anonlib.config.model import Config
from anonlib.errors import AnonlibError, ProblemsError
from anonlib.run.endings import require_own_record, require_there
from anonlib.run.past import look_back, open_books
from anonlib.run.publish import Target
from anonlib.source.resolved_source import Source


def find_obstacles(spark: SparkSession, config: Config, source: Source) -> Iterator[str]:
    """Finds why a release would be refused here and now, whatever its source. Nothing is written.

    A run whose rows are published would do nothing, so nothing is in its way. Cost of
    `append`, and of `overwrite` with a ledger: as `look_back`.

    Args:
        spark: The session.
        config: The config.
        source: Its source, open.
    """
    try:
        require_master_keys(config.attributes, config.pseudonyms, config.release)
        _require_place(spark, config, source)
    except ProblemsError as error:
        yield from map(str, error.problems)
    except AnonlibError as error:
        yield str(error)


def _require_place(spark: SparkSession, config: Config, source: Source) -> None:
    """Raises the error of a release that can't publish where its config says."""
    target, run_id = Target(spark, config.release), config.release.run_id
    if run_id is not None:
        if run_id in target.runs():
            require_there(target, run_id)
            return
        require_own_record(spark, config.record_folder, target, run_id)
    target.check_free()
    key = derive_ledger_key(config.attributes, config.pseudonyms, config.release)
    look_back(config, target, source, open_books(spark, config, target, key, b"").ledger)
