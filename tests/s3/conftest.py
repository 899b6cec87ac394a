"""The object stores of the tests on them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from anonlib.spark.jars import find_jar_folder
from anonlib.spark.storage import Storage
from tests.s3.servers import BUCKET, KEY, SECRET, Server, moto, seaweed
from tests.s3.store import Store, before, spark_settings
from tests.support import skip_or_fail


@pytest.fixture(scope="session", params=[moto, seaweed], ids=["moto", "seaweed"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A model of S3, and a real store."""
    with request.param() as started:
        yield started


@pytest.fixture
def s3(server: Server) -> Iterator[Store]:
    """An empty store that can lose requests, and stop."""
    with before(server) as found:
        yield found


@pytest.fixture
def storage(spark: SparkSession, s3: Store) -> Storage:
    """The store as a session sees it. File systems are made anew: Hadoop keeps them by bucket."""
    if not (find_jar_folder() / "s3").is_dir():
        skip_or_fail("no jars of S3: `scripts/test --s3` fetches them")
    keys = {"fs.s3a.access.key": KEY, "fs.s3a.secret.key": SECRET}
    for key, value in {
        **spark_settings(s3.endpoint),
        **keys,
        "fs.s3a.impl.disable.cache": "true",
    }.items():
        spark.conf.set(key, value)
    return Storage(spark, f"s3a://{BUCKET}/out/table")
