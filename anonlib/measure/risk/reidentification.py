"""How likely persons are re-identified by their quasi-identifiers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Floats, Ints, mean_ratio
from anonlib.measure import Figure, Findings, Measure, Series, Subjects
from anonlib.measure.risk._population import expected_risk

if TYPE_CHECKING:
    from anonlib.measure.case import Case, Sizes

#: The levels in the series of risks, beside the threshold: one in LEVELS[i] persons.
LEVELS = (100, 50, 20, 10, 5, 3, 2)

#: The most bins of a histogram.
MAX_BINS = 20

WHOLE = "the release is taken for the whole population, which makes it the prosecutor's"


class Reidentification(Measure):
    """How likely persons are found again by their released quasi-identifiers.

    Prosecutor, journalist and marketer risk, from the sizes of released classes. Let a person be in
    a class of f persons in the release, and of F persons in the population.

    - A prosecutor knows that the person is in the release, and finds them with probability 1/f.
    - A journalist does not know that, and finds them with probability 1/F.
    - A marketer links everybody. The share of persons found is the mean of 1/F, which is also the
      journalist's mean risk.

    `max` is the largest risk of a person, `mean` the mean risk, `at_risk` the share of persons
    whose risk is above `threshold`.

    By default F is f. If the source is a random sample of `population` persons, 1/F is estimated
    from f (see `expected_risk`). A source that was selected by values, such as one year, is not a
    random sample: leave `population` out.

    With a `unit`, f counts persons. For a published table it counts rows, unless a pseudonym tells
    whose they are: a note says so, and no gate passes by it.
    Cost: one aggregate of the release.
    """

    type: ClassVar[str] = "reidentification"
    is_risk: ClassVar[bool] = True
    subjects: ClassVar[Subjects] = "table"
    names: ClassVar[Mapping[str, str]] = {
        "prosecutor_max": "largest chance of a person to be found by an attacker who knows that "
        "the person is in the release; 0 to 1, less is safer",
        "prosecutor_mean": "mean chance of persons to be found by an attacker who knows that they "
        "are in the release; 0 to 1, less is safer",
        "prosecutor_at_risk": "share of persons found with a chance above `threshold` by an "
        "attacker who knows they are in the release; 0 to 1, less is safer",
        "journalist_max": "largest chance of a person to be found by an attacker who does not know "
        "who is in the release; 0 to 1, less is safer",
        "journalist_at_risk": "share of persons found with a chance above `threshold` by one who "
        "does not know who is in the release; 0 to 1, less is safer",
        "marketer": "share of persons whom an attacker who links everybody would get right, on "
        "average; 0 to 1, less is safer",
    }
    reference: ClassVar[str] = (
        "K. El Emam, F. K. Dankar, Protecting privacy using k-anonymity, Journal of the American "
        "Medical Informatics Association 15(5), 2008; F. K. Dankar, K. El Emam, A method for "
        "evaluating marketer re-identification risk, PAIS 2010"
    )
    population: int | None = Field(
        None, ge=1, description="persons of whom the source is a random sample; null: all in it"
    )
    threshold: float = Field(
        0.09, gt=0, lt=1, description="the risk above which persons are counted as at risk"
    )

    def explain_size(self, figure: str, n_rows: int, n_persons: int) -> str:
        if self.population is None or self.population >= n_persons:
            return ""
        return f"`population` is {self.population}; {n_persons} persons or more are released"

    def measure(self, case: "Case") -> Findings:
        sizes = case.sizes
        why = self._explain(sizes)
        if why:
            return Findings(tuple(Figure(name, None, note=why) for name in self.names))
        n, persons = sizes.n, sizes.size * sizes.n_classes
        prosecutor = 1.0 / sizes.size
        journalist, note = prosecutor, WHOLE
        if self.population is not None:
            journalist = expected_risk(sizes.size, n / self.population)
            note = f"expected, for a random sample of {self.population} persons"
        rows = "" if sizes.persons else ROWS
        notes = "; ".join(filter(None, [note, rows]))
        mean = mean_ratio(persons, sizes.size, n)
        at_risk = (int(persons @ (risk > self.threshold)) / n for risk in (prosecutor, journalist))
        values = (
            (float(prosecutor.max()), rows),
            (mean, rows),
            (next(at_risk), rows),
            (float(journalist.max()), notes),
            (next(at_risk), notes),
            (mean if self.population is None else float(persons @ journalist) / n, notes),
        )
        figures = tuple(
            Figure(name, value, note=note, by_rows=not sizes.persons)
            for name, (value, note) in zip(self.names, values, strict=True)
        )
        if not sizes.smallest >= case.k > 0:
            return Findings(figures)
        return Findings(
            figures, (_histogram(sizes), _risks(persons, prosecutor, journalist, self.threshold))
        )

    def _explain(self, sizes: "Sizes") -> str:
        """Why the risks are not defined; empty if they are."""
        if not sizes.n:
            return "nobody was released"
        if self.population is not None and self.population < sizes.n:
            return f"`population` is {self.population}, but {sizes.n} persons were released"
        return ""


def _histogram(sizes: "Sizes") -> Series:
    """Classes and persons by size, in bins of about equal width on a logarithmic scale."""
    ends = np.geomspace(sizes.smallest, sizes.size[-1] + 1, MAX_BINS + 1)
    edges = np.unique(np.rint(ends).astype(np.int64))
    place = np.searchsorted(edges, sizes.size, side="right") - 1
    rows = []
    for i in np.unique(place):
        n_classes, size = sizes.n_classes[place == i], sizes.size[place == i]
        rows.append((int(size[0]), int(size[-1]), int(n_classes.sum()), int(n_classes @ size)))
    return Series("class_sizes", "", ("from", "to", "classes", "persons"), tuple(rows))


def _risks(persons: Ints, prosecutor: Floats, journalist: Floats, threshold: float) -> Series:
    """The share of persons with a risk above each level, and above the threshold. These persons
    make up whole classes.

    Args:
        persons: int64[s]. The persons in classes of each size.
        prosecutor: float64[s]. Their risk.
        journalist: float64[s]. The same, without knowing who is in the release.
        threshold: The threshold.
    """
    rows, n = [], int(persons.sum())
    for level in sorted({threshold, *(1 / n for n in LEVELS)}):
        above = (int(persons @ (risk > level)) / n for risk in (prosecutor, journalist))
        rows.append((level, *above))
    heads = ("risk", "prosecutor", "journalist")
    return Series("share_of_persons_above_a_risk", "", heads, tuple(rows))


ROWS = (
    "rows are counted, since persons can't be told apart any more; where one has several in a "
    "class, the risk is larger"
)
