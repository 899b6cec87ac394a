"""How many persons are unique by their quasi-identifiers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from anonlib.measure import Figure, Findings, Measure
from anonlib.measure.risk._population import estimate_pitman_uniques, estimate_zayatz, fit_pitman
from anonlib.measure.risk.reidentification import ROWS

if TYPE_CHECKING:
    from anonlib.measure.case import Case, Sizes

SEVERAL = "not estimated, since persons have rows in several classes of the source"
#: Up to this sampling fraction Pitman's estimate is better than Zayatz's.
SMALL = 0.1


class Uniqueness(Measure):
    """How many persons have quasi-identifiers that nobody else has.

    The share in the source shows how risky the raw table is. In the release, k-anonymity leaves
    nobody unique. The share in the population is estimated from the source.

    If the source is a random sample of `population` persons, `population_unique` is the share of
    these persons who are unique among them. The expected share of the source's persons who are
    unique in the population is the same. There are two estimates (see `_population.py`): Pitman's
    model, fitted to the source, and Zayatz's estimate from the sizes of the source's classes.
    Dankar et al. recommend Pitman's for samples of at most a tenth. For larger samples they
    recommend the smaller of Zayatz's and a third estimate, which is not implemented here. A note
    marks the better one. Without `population`, the population is the source.

    With a `unit`, a person is unique if nobody else has the quasi-identifiers of one of their rows.
    The estimates are of persons with one class each: if some have rows in several, there are none.

    Cost: one aggregate of the source, and one of the release, which other measures share; with a
    `unit`, another one of each by person.
    """

    type: ClassVar[str] = "uniqueness"
    is_risk: ClassVar[bool] = True
    names: ClassVar[Mapping[str, str]] = {
        "source_unique": "share of persons in the source whose quasi-identifiers, in a row of "
        "theirs, nobody else there has; 0 to 1, less is safer",
        "release_unique": "share of persons in the release whose released quasi-identifiers, in a "
        "row of theirs, nobody else there has; 0 to 1, less is safer",
        "population_unique": "estimated share of persons in the population whose quasi-identifiers "
        "nobody else there has; 0 to 1, less is safer",
    }
    reference: ClassVar[str] = (
        "F. K. Dankar, K. El Emam, A. Neisa, T. Roffey, Estimating the re-identification risk of "
        "clinical data sets, BMC Medical Informatics and Decision Making 12:66, 2012"
    )
    population: int | None = Field(
        None, ge=1, description="persons of whom the source is a random sample; null: all in it"
    )

    def explain_size(self, figure: str, n_rows: int, n_persons: int) -> str:
        none = figure != "population_unique" or self.population is None
        if none or (self.population or 0) >= n_persons:
            return ""
        return f"`population` is {self.population}; {n_persons} persons or more are released"

    def measure(self, case: "Case") -> Findings:
        source, release = case.source_sizes(), case.sizes
        note = "" if release.persons else ROWS
        return Findings(
            (
                Figure("source_unique", _unique(source)),
                Figure("release_unique", _unique(release), note=note, by_rows=not release.persons),
                *self._estimates(source),
            )
        )

    def _estimates(self, source: "Sizes") -> tuple[Figure, ...]:
        name, n, unique = "population_unique", source.n, _unique(source)
        population = n if self.population is None else self.population
        if population < n or unique is None:
            why = f"`population` is {population}, but the source has {n} persons"
            return tuple(Figure(name, None, of, why) for of in ("Pitman", "Zayatz"))
        if population == n or not unique:
            own = "no larger population was given, so this is the source's own share"
            note = own if population == n else "nobody is unique in the source"
            return tuple(Figure(name, unique, of, note) for of in ("Pitman", "Zayatz"))
        if source.overlap:
            return tuple(Figure(name, None, of, SEVERAL) for of in ("Pitman", "Zayatz"))
        size, n_classes = source.size, source.n_classes
        found = estimate_pitman_uniques(fit_pitman(size, n_classes), population) / population
        both = unique * estimate_zayatz(size, n_classes, population)
        better = "Pitman" if n <= SMALL * population else "Zayatz"
        notes = {better: f"the better one for a fraction of {n / population:.3g}"}
        return (
            Figure(name, found, "Pitman", notes.get("Pitman", "")),
            Figure(name, both, "Zayatz", notes.get("Zayatz", "")),
        )


def _unique(sizes: "Sizes") -> float | None:
    """The share of persons who are alone in a class; None without persons."""
    return int(sizes.n_persons[sizes.size == 1].sum()) / sizes.n if sizes.n else None
