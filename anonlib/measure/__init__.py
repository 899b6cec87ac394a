"""Measures of a release as a whole: what it kept of its source, and how risky it is."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from anonlib.registry import Plugin

if TYPE_CHECKING:
    from anonlib.measure.case import Case

Cell: TypeAlias = str | int | float | None
#: What figures are of: the whole table, columns each, or something of a measure's own (a model).
Subjects: TypeAlias = Literal["table", "columns", "own"]


@dataclass(frozen=True)
class Figure:
    """One number that a measure found.

    of: what it is about, by the name that the release has for it (a column, `a × b` for two of
    them, a model); empty where that is the whole table. value: None where it is not defined, as
    the note says.
    """

    name: str
    value: float | None
    of: str = ""
    note: str = ""


@dataclass(frozen=True)
class Series:
    """The numbers of a plot, as a table: what the first column of `rows` says is its axis.

    They are aggregates, each of at least k persons or of none, or released values: what a report
    may show.
    """

    name: str
    of: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Findings:
    """What one measure found."""

    figures: tuple[Figure, ...] = ()
    series: tuple[Series, ...] = ()


class Measure(Plugin):
    """Compares a release with its source, or attacks it.

    `fidelity/` has those that compare, `risk/` those that attack (`is_risk`).
    """

    family: ClassVar[str] = "measure"
    #: the names of the figures that it finds, which gates go by, and what each means: a short plain
    #: phrase, and after a semicolon its range or unit and which direction is worse
    names: ClassVar[Mapping[str, str]]
    subjects: ClassVar[Subjects] = "own"
    #: whether it says how risky the release is; else what the release is worth
    is_risk: ClassVar[bool] = False
    #: whether it is made where `evaluate` names no measures
    usual: ClassVar[bool] = True
    #: whether it looks at `Case.pairs`, which there are before the commit only
    needs_pairs: ClassVar[bool] = False
    #: whether it finds nothing before the commit
    of_published: ClassVar[bool] = False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        names: object = getattr(cls, "names", {})
        texts = [*names, *names.values()] if isinstance(names, Mapping) else [None]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(
                f"{cls.__name__}.names must map the name of each figure to a text that "
                "says what it means"
            )

    @property
    def held_out(self) -> float:
        """The share of persons whose rows it holds out (`Case.parts`); 0 for none."""
        return 0.0

    @abstractmethod
    def measure(self, case: "Case") -> Findings:
        """The figures of one release; what can't be computed is a figure without a value and with
        a note. No text holds raw values."""
