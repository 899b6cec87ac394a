"""What Spark's UI shows of a session."""

import json
import re
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import SparkSession

#: Settings of a session that shows it.
SHOWN = {"spark.ui.enabled": "true", "spark.ui.port": "0"}
#: Pages of the UI, below the application's, that have no parameters.
PAGES = ("environment/", "jobs/", "stages/", "storage/", "executors/", "SQL/")
#: The same of the REST API, below the application.
ANSWERS = ("environment", "jobs", "stages?details=true", "storage/rdd", "allexecutors")


def save_pages(spark: SparkSession, seen: Path) -> None:
    """All pages of the UI and all answers of its REST API, those of every query included."""
    base = spark.sparkContext.uiWebUrl
    api = f"{base}/api/v1/applications/{spark.sparkContext.applicationId}"
    queries = "sql?details=true&planDescription=true&length=10000"
    addresses = [*(f"{base}/{page}" for page in PAGES), *(f"{api}/{each}" for each in ANSWERS)]
    addresses.append(f"{api}/{queries}")
    for address in addresses:
        name = re.sub(r"\W+", "-", address.removeprefix(api).removeprefix(base)).strip("-")
        kind = "answer" if address.startswith(api) else "page"
        (seen / f"{kind}-{name}").write_bytes(_get(address))
    ids = [query["id"] for query in json.loads(_get(addresses[-1]))]
    for id in ids:
        (seen / f"query-{id}").write_bytes(_get(f"{base}/SQL/execution/?id={id}"))
    (seen / "n_queries").write_text(str(len(ids)))


def _get(address: str) -> bytes:
    if not re.match(r"http://(127\.0\.0\.1|localhost):", address):
        raise ValueError("the UI is on loopback only")
    with urlopen(address, timeout=60) as answer:
        return bytes(answer.read())
