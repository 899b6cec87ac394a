"""What an attacker learns about a person from the person's class."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from anonlib.measure import DeclaredColumn, Figure, Findings, Measure, Series, Subjects
from anonlib.table.schema import Role

if TYPE_CHECKING:
    from anonlib.measure.case import Case

#: The number of bins of the distribution of certainty.
N_BINS = 10


class Disclosure(Measure):
    """How well sensitive values are guessed from the released quasi-identifiers.

    Attribute disclosure: an attacker who knows a person's class guesses its most frequent value.
    For each sensitive column, and for the target if it has its own privacy model:

    - `correct`: the share of rows guessed right.
    - `base`: the share guessed right by the most frequent value of the whole release.
    - `gain`: `correct` minus `base`.
    - `certainty`: the largest share of one value in any class.
    - `certain`: the share of rows in classes where one value has a share of at least `threshold`.

    Values are compared as in the audit. All shares are of present values; classes without present
    values are left out.

    For each quasi-identifier released as shares of its values:

    - `lone`: the share of rows that are the only ones of their class with their value, as the
      shares and the size of the class show. If an attacker knows such a value of a person in the
      table, they know the person's class.

    Rows are counted, even with a `unit`.
    Cost: two aggregates of the release per column, and one if there are shares.
    """

    type: ClassVar[str] = "disclosure"
    is_risk: ClassVar[bool] = True
    subjects: ClassVar[Subjects] = "columns"
    names: ClassVar[Mapping[str, str]] = {
        "correct": "share of rows guessed right by the most frequent value of their class; 0 to 1, "
        "less is safer",
        "base": "share of rows guessed right by the most frequent value of the whole release; 0 to "
        "1, for comparison",
        "gain": "share of rows guessed right only because their class is known; 0 to 1, less is "
        "safer",
        "certainty": "largest share that one value has in any class; 0 to 1, less is safer",
        "certain": "share of rows in classes where one value has the share `threshold` or more; 0 "
        "to 1, less is safer",
        "lone": "share of rows that are seen to be the only ones of their class with their value; "
        "0 to 1, less is safer",
    }
    reference: ClassVar[str] = (
        "A. Machanavajjhala et al., l-diversity: privacy beyond k-anonymity, ACM Transactions on "
        "Knowledge Discovery from Data 1(1), 2007, section 2 (homogeneity attack)"
    )
    threshold: float = Field(
        0.9, gt=0, le=1, description="the share of one value from which a class is certain"
    )

    def list_subjects(self, figure: str, columns: Mapping[str, DeclaredColumn]) -> Sequence[str]:
        if figure == "lone":  # columns that are released as shares
            return [name for name, c in columns.items() if c.role is Role.QUASI_IDENTIFIER]
        return [name for name, column in columns.items() if column.is_secret]

    def measure(self, case: "Case") -> Findings:
        schema = case.schema
        sensitive = [
            column.name
            for column in schema.released
            if column.role is Role.SENSITIVE
            or (column.role is Role.TARGET and column.id in schema.protected)
        ]
        figures: list[Figure] = []
        series: list[Series] = []
        for name in sensitive:
            found = self._of(case, name, sensitive)
            figures += found.figures
            series += found.series
        for name, n_rows in case.lone_rows(sensitive).items():
            figures.append(Figure("lone", n_rows / case.n_released, name))
        return Findings(tuple(figures), tuple(series))

    def _of(self, case: "Case", name: str, sensitive: Sequence[str]) -> Findings:
        """The findings for one sensitive column."""
        bins, n_present, n_most = case.certainty(name, sensitive, self.threshold, N_BINS)
        if not n_present:
            note = "all values are missing"
            names = [each for each in self.names if each != "lone"]
            return Findings(tuple(Figure(each, None, name, note) for each in names))
        # Bins may be shown if all classes have k rows, and k rows of each bin have a value.
        is_shown = min(min(row.smallest, row.present) for row in bins) >= case.k > 0
        note = "" if is_shown else "its chart is withheld: a bin has fewer than k values"
        n_correct = sum(row.most for row in bins)
        figures = (
            Figure("correct", n_correct / n_present, name),
            Figure("base", n_most / n_present, name),
            # One quotient of counts: gates compare it with bounds exactly.
            Figure("gain", (n_correct - n_most) / n_present, name),
            Figure("certainty", max(row.certainty for row in bins), name, note),
            Figure("certain", sum(row.certain for row in bins) / n_present, name),
        )
        if not is_shown:
            return Findings(figures)
        rows = tuple(
            (row.bin / N_BINS, (row.bin + 1) / N_BINS, row.classes, row.rows) for row in bins
        )
        heads = ("from", "to", "classes", "rows")
        return Findings(figures, (Series("certainty", name, heads, rows),))
