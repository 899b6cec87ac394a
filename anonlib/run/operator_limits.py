"""What the operator of an installation requires of every config."""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from anonlib.config.minimum_k import PROPERTY, check_minimum_k
from anonlib.errors import ConfigError
from anonlib.privacy import PrivacyModel
from anonlib.spark.session import find_settings


def require_minimum_k(spark: SparkSession, models: Sequence[PrivacyModel]) -> None:
    """Raises ConfigError where the k of a config's models is below the operator's minimum."""
    # That of the application, which a session can't lower, and that of the session.
    if problems := [*check_minimum_k(models, *find_settings(spark, PROPERTY))]:
        raise ConfigError(problems)
