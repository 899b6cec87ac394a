"""What `anonymize` returns: the released rows, what the audit and the measures found, and the pages
and files that are made of them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from anonlib.auditing.report import RISKS, AuditReport
from anonlib.config.dump import format_config
from anonlib.config.model import Config
from anonlib.errors import InputError, StorageError, refuse_to_write, without_cause
from anonlib.evaluation import Evaluation
from anonlib.local.frames import is_of_spark, list_names, to_arrow
from anonlib.text import count_noun, spell_figure

#: The most models, and the most notes, that the short form of a release has.
MOST_LINES = 12


@dataclass(frozen=True, repr=False, eq=False)
class Release:
    """A release that passed its audit.

    Attributes:
        table: The released rows, in a random order: of pandas or polars, if that came in, else an
            Arrow table. Columns have the types that came in, if they are released as values, and
            no categories that no row has. Of a Spark DataFrame it is the published Delta table.
        audit: The audit's report: a verdict for each privacy model.
        losses: By metric: the information that was lost; None if it is not defined.
        risk: By name: how likely persons are found again, from 0 to 1. With a `unit` each person
            counts once, by the smallest class that they have rows in; of a Spark DataFrame there is
            the largest chance only, and the measure `reidentification` has the others.
        notes: What was guessed, what is not in the release, what to look at.
        config: The config of the release. `config_yaml` is its text, for a file.
        record: The private record of the release, as `report` shows it.
        evaluation: What the measures of `evaluate` found, and the verdicts of gates; None without
            `evaluate`.
    """

    table: Any
    audit: AuditReport
    losses: Mapping[str, float | None]
    risk: Mapping[str, float]
    notes: tuple[str, ...]
    config: Config
    record: Mapping[str, Any] = field(repr=False)
    evaluation: Evaluation | None = None
    _schema: pa.Schema = field(default_factory=lambda: pa.schema([]), repr=False)

    @property
    def config_yaml(self) -> str:
        """The config as YAML, for `anonlib release`. Its source is to be filled in."""
        return format_config(self.config)

    @without_cause
    def save_config(self, path: str | Path) -> None:
        """Writes `config_yaml` to a new file that only its owner can read: it has the seed."""
        from anonlib.pages.output import write_page

        write_page(path, self.config_yaml)

    @without_cause
    def report(self, path: str | Path | None = None) -> str:
        """The page of the release, as HTML; with `path` it is written there, and that path comes
        back. It is private: it has exact counts and the seed.

        path: A file that gets the page. Only its owner can read it. A page of anonlib that is
            there is replaced.

        Raises InputError if another file is there, or the page can't be written.
        """
        from anonlib.pages import render
        from anonlib.pages.output import replace_page

        page = render(self.record)
        if path is None:
            return page
        replace_page(path, page)
        return str(path)

    @without_cause
    def certificate(self, path: str | Path) -> None:
        """Writes the certificate of the release, for a privacy officer to sign: HTML, or PDF if
        `path` ends in .pdf. `anonlib.verify` compares it with the table that was saved.

        path: Only its owner can read the file. A certificate in HTML that is there is replaced.

        Raises InputError if another file is there, PDF is asked for without WeasyPrint, or the file
            can't be written.
        """
        from anonlib.pages.output import certify, write_certificate
        from anonlib.pages.seal import seal_record

        try:
            if is_of_spark(self.table):
                certify(self.record["record"], out=path)
            else:
                write_certificate(path, seal_record(self._record_text).page())
        except StorageError as error:
            raise InputError(str(error)) from None

    @without_cause
    def save_record(self, path: str | Path) -> None:
        """Writes the private record to a new file that only its owner can read: the certificate has
        its SHA-256, and it can tell of all lines. For a table in memory.

        Raises InputError if the file is there, or can't be written.
        """
        from anonlib.pages.output import write_page

        if is_of_spark(self.table):
            raise InputError(f"the run has written its record: {self.record['record']}")
        write_page(path, self._record_text)

    @property
    def _record_text(self) -> str:
        return json.dumps(self.record, indent=2, ensure_ascii=False, allow_nan=False)

    @without_cause
    def to_parquet(self, path: str | Path) -> None:
        """Writes the released rows to a new Parquet file. For a table in memory.

        Raises InputError if the file is there, or can't be written.
        """
        from pyarrow import parquet

        with _writing(path), Path(path).open("xb") as file:
            parquet.write_table(self._rows(), file)

    @without_cause
    def to_delta(self, path: str | Path) -> None:
        """Writes the released rows to a new Delta table, by deltalake. For a table in memory.

        Raises InputError if the folder is there, or deltalake is not installed.
        """
        try:
            from deltalake import write_deltalake
        except ImportError:
            raise InputError("to_delta: needs deltalake: pip install deltalake") from None
        with _writing(path):
            if Path(path).exists():
                raise FileExistsError
            write_deltalake(str(path), self._rows())

    def _rows(self) -> pa.Table:
        if is_of_spark(self.table):
            raise InputError("the release is a Delta table already: release.path in its config")
        from anonlib.table.plain_types import to_file_type

        rows = to_arrow(self.table, list_names(self.table))
        # Not in types of pandas or polars, such as categories: Spark and Delta have none.
        known = {field.name: field.type for field in self._schema}
        return pa.table(
            {n: to_file_type(n, rows.column(n), known.get(n)) for n in rows.column_names}
        )

    def __repr__(self) -> str:
        return "\n".join(["Release:", *[f"  {name}: {text}" for name, text in self._lines()]])

    def _repr_html_(self) -> str:
        """A short table, for notebooks."""
        from anonlib.pages.words import mark_code

        rows = [
            f"<tr><th>{mark_code(n)}</th><td>{mark_code(t)}</td></tr>" for n, t in self._lines()
        ]
        return f"<table>{''.join(rows)}</table>"

    def _lines(self) -> Iterator[tuple[str, str]]:
        from anonlib.pages.meanings import explain_figure
        from anonlib.pages.words import number, show_measurement

        lost = self.record["n_suppressed"]
        n_rows, n_classes = self.audit.n_rows, self.audit.n_classes
        classes = count_noun(n_classes, "class", "classes")
        yield "rows", f"{n_rows:,} in {classes}, {lost:,} suppressed"
        verdicts = self.audit.verdicts
        for verdict in verdicts[:MOST_LINES]:
            measured = show_measurement(verdict.value, exact=verdict.exact)
            holds = "holds" if verdict.holds else "fails"
            yield verdict.model, f"{holds} ({measured}, required {number(verdict.required)})"
        if len(verdicts) > MOST_LINES:
            yield "models", f"{len(verdicts) - MOST_LINES:,} more: .audit.verdicts"
        for name in ("sse", "ncp", "nllm"):
            if (loss := self.losses.get(name)) is not None:
                yield f"loss {name}", f"{spell_figure(loss)} ({explain_figure(f'loss.{name}')})"
        for judged in () if self.evaluation is None else self.evaluation.gates:
            yield "gate passed", judged.text
        for name, value in self.risk.items():
            most = name == "prosecutor_max" and not self.audit.of_whole.knows_smallest
            yield RISKS[name], f"{'at most ' if most else ''}{spell_figure(value)}"
        for note in self.notes[:MOST_LINES]:
            yield "note", note
        if len(self.notes) > MOST_LINES:
            yield "note", f"{len(self.notes) - MOST_LINES:,} more: .notes"


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    """Turns errors of the disk into InputError."""
    try:
        yield
    except OSError as error:
        raise refuse_to_write(path, error) from None
