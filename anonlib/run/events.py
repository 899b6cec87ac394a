"""Events of runs and their stages, as JSON lines in the format of OpenLineage.

Events are passed on, like logs. So they hold no more than the public manifest: no data, and no
count of rows that the manifest hides.

Source: the specification of OpenLineage, version 2-0-2, and of the facets that are named below.
"""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

from anonlib.config.environment import EVENTS
from anonlib.config.model import SourceSection
from anonlib.config.paths import has_scheme
from anonlib.config.places import lies_in
from anonlib.config.summary import list_software
from anonlib.errors import InputError
from anonlib.run.account import Account, spell_path
from anonlib.text import is_few

_SPEC = "https://openlineage.io/spec"
_FACETS = {
    "errorMessage": "1-0-1/ErrorMessageRunFacet",
    "parent": "1-1-0/ParentRunFacet",
    "jobType": "2-0-3/JobTypeJobFacet",
    "version": "1-0-0/DatasetVersionDatasetFacet",
    "dataQualityAssertions": "1-0-1/DataQualityAssertionsDatasetFacet",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
}
#: Hadoop's schemes of object stores, and the names that lineage knows these by.
_STORES = {"s3a": "s3", "s3n": "s3"}


class Events:
    """The events of one run. A run whose file of events can't be written does not begin. Events
    that can't be written later are left out: they must not end a release."""

    def __init__(self, account: Account):
        self._account = account
        self._id = uuid4()
        self._producer = f"urn:anonlib:{list_software()['anonlib']}"
        self._file = _file(account)
        self._stages: list[UUID] = []  # that run, each within the one before
        self._n_stages = 0

    def begin(self) -> None:
        """The run begins. Raises InputError when the file can't be written."""
        try:
            self._write("START", self._run(), self._inputs(), self._outputs())
        except OSError as error:
            raise InputError(
                f"events: {self._file}: can't be written ({error.strerror or 'I/O error'})"
            ) from None

    def end(self) -> None:
        """The run is over; the account has its outcome."""
        account = self._account
        kind = "FAIL" if account.error else "COMPLETE"
        if account.outcome == "interrupted":
            kind = "ABORT"
        self._try(kind, self._run(account.error), self._inputs(), self._outputs())

    def stage_started(self, name: str) -> None:
        """A stage begins."""
        self._n_stages += 1
        self._stages.append(uuid5(self._id, str(self._n_stages)))
        self._try("START", self._stage(name))

    def stage_ended(
        self, name: str, failure: BaseException | None, *, stopped: bool = False
    ) -> None:
        """A stage is over."""
        kind, error = ("COMPLETE", "") if failure is None else ("FAIL", type(failure).__name__)
        if isinstance(failure, KeyboardInterrupt):
            kind = "ABORT"
        elif stopped:
            kind, error = "ABORT", ""
        self._try(kind, self._stage(name, error), self._assertions() if name == "audit" else [])
        self._stages.pop()

    def _try(self, *event: Any) -> None:
        try:
            self._write(*event)
        except OSError:
            self._file = None

    def _write(
        self,
        kind: str,
        whose: dict[str, Any],
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
    ) -> None:
        if self._file is None:
            return
        event = {
            "eventType": kind,
            "eventTime": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "producer": self._producer,
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            **whose,
            "inputs": inputs,
            "outputs": outputs,
        }
        _append(self._file, json.dumps(event, ensure_ascii=False) + "\n")

    def _run(self, error: str = "") -> dict[str, Any]:
        """The run and job of an event of the run itself."""
        account = self._account
        own = {
            "_producer": self._producer,
            "_schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunFacet",
            "runId": account.run_id,
            "verb": account.verb,
            "outcome": account.outcome or "running",
        }
        facets = {"anonlib": own, **self._error(error)}
        return {"run": {"runId": str(self._id), "facets": facets}, "job": self._job()}

    def _stage(self, name: str, error: str = "") -> dict[str, Any]:
        """The run and job of an event of the latest stage."""
        job = {key: value for key, value in self._job().items() if key != "facets"}
        facets = self._facet("parent", run={"runId": str(self._id)}, job=job) | self._error(error)
        return {"run": {"runId": str(self._stages[-1]), "facets": facets}, "job": self._job(name)}

    def _job(self, stage: str = "") -> dict[str, Any]:
        name = f"{self._account.verb} {self._account.target}"
        kind = {"processingType": "BATCH", "integration": "ANONLIB"}
        facets = self._facet("jobType", **kind, jobType="STAGE" if stage else "RUN")
        full = f"{name}.{stage}" if stage else name
        return {"namespace": "anonlib", "name": full, "facets": facets}

    def _error(self, error: str) -> dict[str, Any]:
        if not error:
            return {}
        # By its type: the text is for the log of the run.
        return self._facet("errorMessage", message=error, programmingLanguage="PYTHON")

    def _inputs(self) -> list[dict[str, Any]]:
        account, result = self._account, self._account.result
        name = _source(account.config.source)
        if name is None:
            return []
        facets, counted = {}, {}
        if account.source_version is not None:
            facets = self._facet("version", datasetVersion=str(account.source_version))
        # Fewer suppressed rows than k are "<k" for the public: this count would tell how many.
        told = result is not None and not is_few(result.n_suppressed, account.config.k)
        if told and result and account.outcome == "published":
            counted = self._facet("inputStatistics", rowCount=result.n_rows_in)
        return [{**name, "facets": facets, "inputFacets": counted}]

    def _outputs(self) -> list[dict[str, Any]]:
        account, result = self._account, self._account.result
        if account.verb != "release":
            return []
        facets, counted = {}, {}
        if result is not None and account.outcome == "published":
            facets = self._facet("version", datasetVersion=str(result.table_version))
            counted = self._facet("outputStatistics", rowCount=result.n_rows_out)
        return [{**_dataset(account.target), "facets": facets, "outputFacets": counted}]

    def _assertions(self) -> list[dict[str, Any]]:
        """The verdicts of the audit, as assertions on the table."""
        report = self._account.report
        if report is None:
            return []
        found = [{"assertion": v.model, "success": v.holds} for v in report.verdicts]
        facets = self._facet("dataQualityAssertions", assertions=found)
        return [{**_dataset(self._account.target), "inputFacets": facets}]

    def _facet(self, name: str, **fields: Any) -> dict[str, Any]:
        version, _, definition = _FACETS[name].partition("/")
        url = f"{_SPEC}/facets/{version}/{definition}.json#/$defs/{definition}"
        return {name: {"_producer": self._producer, "_schemaURL": url, **fields}}


def _file(account: Account) -> Path | None:
    """The file for the events of a run; None without one."""
    place = account.config.events or os.environ.get(EVENTS)
    if not place:
        return None
    if has_scheme(place):
        raise InputError(f"{EVENTS}: must be a file or folder of this machine, as a plain path")
    path = Path(place).absolute()
    if lies_in(place, account.target):
        raise InputError(f"{EVENTS}: lies in the release, which is public; it is private")
    return path / f"{account.run_id}.jsonl" if place.endswith("/") or path.is_dir() else path


def _append(path: Path, line: str) -> None:
    """Appends a line in one write, so that runs can share a file. Only its owner can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def _source(source: SourceSection) -> dict[str, str] | None:
    """The name of the source; None for the generator and for DataFrames."""
    if source.table is not None:
        return {"namespace": "spark", "name": source.table}
    return None if source.path is None else _dataset(spell_path(source.path))


def _dataset(path: str) -> dict[str, str]:
    """A table in OpenLineage's terms: the store, and the path in it."""
    scheme, colon, rest = path.partition("://")
    if not colon:
        return {"namespace": "file", "name": path}
    authority, slash, name = rest.partition("/")
    scheme = _STORES.get(scheme, scheme)
    return {
        "namespace": f"{scheme}://{authority}",
        "name": name if scheme in ("s3", "gs") else slash + name,
    }
