"""What one task asks of anonlib's jobs, and what came of it: plain Python, without Airflow.

Where things are is said by whoever runs Airflow's workers, in their environment:

    ANONLIB_CONFIGS      folder of the configs that may be run
    ANONLIB_TABLES       folder or URI that releases are published under
    ANONLIB_RECORDS      folder or URI of the private records; beside each table if not set
    ANONLIB_REPORTS_URL  where a web server shows that folder, for the link to the report
    ANONLIB_JOBS         folder of check.py, release.py, audit.py; the one above this if not set
    ANONLIB_SPARK_CONF   a properties file for spark-submit (jars, resources)

ANONLIB_MIN_K, ANONLIB_REQUIRE, ANONLIB_RUNS and ANONLIB_EVENTS, which anonlib itself reads, go with
every job.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path

#: A file of ANONLIB_CONFIGS. It names its table, too, which must lie in no other table or record,
#: and be no other config's: people.yml would have that of people.yaml.
CONFIG = r"^\w[\w-]*\.yaml$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
#: The operator's limits. A driver on the cluster has another environment than the worker: what is
#: not handed to it is no limit there.
HANDED_ON = ("ANONLIB_MIN_K", "ANONLIB_REQUIRE", "ANONLIB_RUNS", "ANONLIB_EVENTS")
#: Where releases and records may lie. Azure's stores name a container before the @; what others
#: have there is a secret, and so may be what follows a `?`.
PLACE = r"/[^@]*|((abfss?|wasbs?)://[\w$-]+@|\w[\w+.-]*://)[^@?;#]*"
#: What release.run_id takes.
MAX_RUN_ID = 64
#: Exit codes after which the same run would end the same way.
FINAL = {
    2: "the config or the input is wrong, or the models can't hold on this table",
    3: "the audit failed",
    4: "a gate was not passed",
}
#: Where the job's own code stands in what spark-submit, or Airflow of it, says: spark-submit's own
#: code is the driver's in client mode only, so the cluster managers' words come first.
CODES = (
    r"User application exited with status:? (\d+)",  # YARN's diagnostics
    r"Kubernetes spark exit code is: (\d+)",
    r"Error code is: (-?\d+)",
)


class RefusedError(ValueError):
    """A parameter or a setting that no job is started with; a retry would find the same."""


@dataclass(frozen=True)
class Job:
    """What spark-submit is called with. environment: of the driver, without secrets."""

    application: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    properties_file: str | None
    table: str
    report: str  # the page of the run
    link: str  # the same as a URL


@dataclass(frozen=True)
class Failure:
    """How a job failed. code: its exit code, None where the cluster does not tell; text: the job's
    own words, which hold no raw values."""

    code: int | None
    text: str

    @property
    def final(self) -> bool:
        """Whether a retry would end the same way."""
        return self.code in FINAL


def run_id(dag_id: str, dag_run_id: str) -> str:
    """The release's run id: the same over all retries of a DAG run, and of no other DAG run."""
    digest = sha256(f"{dag_id}\n{dag_run_id}".encode()).hexdigest()[:16]
    name = re.sub(r"[^A-Za-z0-9]+", "-", dag_run_id)[: MAX_RUN_ID - len(digest) - 1].strip("-")
    return f"{name}-{digest}" if name else digest


def job(verb: str, config: str, day: str, run: str, settings: Mapping[str, str]) -> Job:
    """The job of one verb: check, release, audit. `config` and `day` (the partition, may be empty)
    come from the DAG run, so from anyone who may trigger it. Raises RefusedError."""
    if not _matches(CONFIG, config):
        text = "letters, digits, _ and - only, then .yaml: name so a file of ANONLIB_CONFIGS"
        raise RefusedError(f"config: {text}")
    if day and not _is_date(day):
        raise RefusedError("date: a day such as 2026-01-31 is needed")
    name = config.rpartition(".")[0]
    conf = f"{_folder('ANONLIB_CONFIGS', settings)}/{config}"
    table = f"{_folder('ANONLIB_TABLES', settings)}/{name}"
    records = settings.get("ANONLIB_RECORDS")
    record = f"{_folder('ANONLIB_RECORDS', settings)}/{name}" if records else f"{table}.private"
    report = f"{record}/{run}.html"
    url = settings.get("ANONLIB_REPORTS_URL", "").rstrip("/")
    jobs = settings.get("ANONLIB_JOBS") or str(Path(__file__).resolve().parents[1])
    places = {"release.path": table, "release.record": record}
    overrides = [f"--set={key}={json.dumps(value)}" for key, value in places.items()]
    first = {
        "check": [conf],
        "release": [conf, f"--run-id={run}"],
        "audit": [table, f"--conf={conf}"],
    }[verb]
    limits = {name: settings[name] for name in HANDED_ON if name in settings}
    return Job(
        application=f"{jobs}/{verb}.py",
        arguments=(*first, *overrides, "--log-format=json"),
        environment=limits | ({"ANONLIB_DATE": day} if day else {}),
        properties_file=settings.get("ANONLIB_SPARK_CONF") or None,
        table=table,
        report=report,
        link=f"{url}/{name}/{run}.html" if url else as_uri(report),
    )


def failure(words: str) -> Failure:
    """What a failed job said, from the last lines that spark-submit printed and what Airflow adds
    to them."""
    found = (re.search(pattern, words) for pattern in CODES)
    code = next((int(match.group(1)) for match in found if match), None)
    texts = list(_own_texts(words))
    if code is None:
        texts.append(
            "its exit code is not known: see the task's log, and the driver's on the cluster"
        )
    elif code in FINAL:
        texts.insert(0, FINAL[code])
    return Failure(code, "; ".join(texts) or f"exit code {code}: see the task's log")


def as_uri(path: str) -> str:
    """A path or URI as a URI."""
    return path if "://" in path else Path(path).as_uri()


def _own_texts(words: str) -> Iterator[str]:
    """The texts of error events among lines of anything: anonlib's own words, not Spark's."""
    for line in words.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if not isinstance(event, dict) or event.get("event") != "error":
            continue
        if text := event.get("text"):
            yield str(text)
        for problem in event.get("problems", ()):
            yield ": ".join(filter(None, (problem.get("where"), problem.get("text"))))


def _matches(pattern: str, text: str) -> bool:
    # `$` alone would let a line end pass, and \w letters of any alphabet.
    return text.isascii() and re.fullmatch(pattern, text) is not None and "\n" not in text


def _is_date(text: str) -> bool:
    try:
        return _matches(DATE, text) and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _folder(name: str, settings: Mapping[str, str]) -> str:
    value = settings.get(name, "").rstrip("/")
    if not re.fullmatch(PLACE, value, re.ASCII):
        text = (
            "to an absolute path, or a URI without credentials (no @, but after a container; no ?)"
        )
        raise RefusedError(f"{name}: set it in the worker's environment, {text}")
    return value
