"""How likely persons are re-identified by their quasi-identifiers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from anonlib.arrays import Floats, Ints
from anonlib.measure import Figure, Findings, Measure, Series, Subjects
from anonlib.measure.risk._population import predict_risk

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
    from f (see `predict_risk`). A source that was selected by values, such as one year, is not a
    random sample: leave `population` out.

    With a `unit`, f counts persons. A person who has rows in several classes counts once, by the
    smallest of them, where they are found most easily; what several of these rows tell together is
    not counted. For a published table f counts rows, unless a pseudonym tells whose they are: a
    note says so, and no gate passes by it.
    Cost: one aggregate of the release; with a `unit`, another one by person.
    """

    type: ClassVar[str] = "reidentification"
    is_risk: ClassVar[bool] = True
    subjects: ClassVar[Subjects] = "table"
    names: ClassVar[Mapping[str, str]] = {
        "prosecutor_max": "largest chance of a person to be found by an attacker who knows that "
        "the person is in the release; 0 to 1, less is safer",
        "prosecutor_mean": "mean chance of persons, by their smallest class, to be found by one "
        "who knows they are in the release; 0 to 1, less is safer",
        "prosecutor_at_risk": "share of persons, by smallest class, found with a chance above "
        "`threshold` by an attacker who knows who is in; 0 to 1, less is safer",
        "journalist_max": "largest chance of a person to be found by an attacker who does not know "
        "who is in the release; 0 to 1, less is safer",
        "journalist_at_risk": "share of persons, by smallest class, found with a chance above "
        "`threshold` by one who does not know who is in; 0 to 1, less is safer",
        "marketer": "mean chance of a person, by their smallest class, to be found by someone who "
        "links everybody; 0 to 1, less is safer",
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
        n, persons = sizes.n, sizes.n_persons
        prosecutor = 1.0 / sizes.size
        journalist, note = prosecutor, WHOLE
        if self.population is not None:
            journalist = predict_risk(sizes.size, n / self.population)
            note = f"expected, for a random sample of {self.population} persons"
        how = (SEVERAL if sizes.overlap else "") if sizes.persons else ROWS
        notes = "; ".join(filter(None, [note, how]))
        mean, at_risk = sizes.mean_chance, int(persons @ (journalist > self.threshold)) / n
        values = (
            (float(prosecutor.max()), how),
            (mean, how),
            (sizes.share_above(self.threshold), how),
            (float(journalist.max()), notes),
            (at_risk, notes),
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
    """Classes by size, and persons by the size of their smallest class, in bins of about equal
    width on a logarithmic scale. A bin has as many persons as the smallest class at least, or none:
    one with fewer is joined to the one before it."""
    ends = np.geomspace(sizes.smallest, sizes.size[-1] + 1, MAX_BINS + 1)
    edges = np.unique(np.rint(ends).astype(np.int64))
    place = np.searchsorted(edges, sizes.size, side="right") - 1
    rows: list[tuple[int, int, int, int]] = []
    for i in np.unique(place):
        size, *counts = (x[place == i] for x in (sizes.size, sizes.n_classes, sizes.n_persons))
        low, high, (n_classes, n_persons) = int(size[0]), int(size[-1]), map(int, map(sum, counts))
        while 0 < n_persons < sizes.smallest:  # the first bin has whole classes
            low, _, more_classes, more_persons = rows.pop()
            n_classes, n_persons = n_classes + more_classes, n_persons + more_persons
        rows.append((low, high, n_classes, n_persons))
    return Series("class_sizes", "", ("from", "to", "classes", "persons"), tuple(rows))


def _risks(persons: Ints, prosecutor: Floats, journalist: Floats, threshold: float) -> Series:
    """The share of persons with a risk above each level, and above the threshold. These persons
    are all those of some classes.

    Args:
        persons: int64[s]. The persons whose smallest class has each size.
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
    "rows are counted, since persons can't be told apart any more; where one has several, in a "
    "class or in several classes, the risk is larger"
)
#: Said of persons with rows in several classes.
SEVERAL = (
    "a person with rows in several classes counts once, by the smallest; several of their rows "
    "together may tell more"
)
