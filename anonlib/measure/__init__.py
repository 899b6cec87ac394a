"""Measures of a whole release: how useful and how risky it is."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

from anonlib.errors import ContractError
from anonlib.registry import Plugin
from anonlib.table.schema import Role, Scale

if TYPE_CHECKING:
    from anonlib.measure.case import Case

Cell: TypeAlias = str | int | float | None
#: What figures are about: the whole table, single columns, or parts of the measure's own (models).
Subjects: TypeAlias = Literal["table", "columns", "own"]


def _to_number(what: str, value: object) -> int | float | None:
    """A number as JSON has it: integers stay integers. None if it is not finite.

    Raises ContractError, with `what` it is of, if it is no number.
    """
    if not isinstance(value, Real):
        raise ContractError(f"{what}: must be a number, not of type {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # no double is so large
        return None
    if not isfinite(number):
        return None
    return int(value) if isinstance(value, Integral) else number


@dataclass(frozen=True)
class Figure:
    """One number that a measure gives.

    Attributes:
        name: Its name, one of `Measure.names`.
        value: The number, also of numpy; None if it is not defined. Then the note says why. One
            that is not finite becomes None: JSON has none, so that no record could keep it.
        of: What it is about, as named in the release: a column, `a × b` for two columns, a model.
            Empty for the whole table.
        note: What readers should know.
        by_rows: Whether it is about persons but counts rows, since persons can't be told apart. The
            persons' own figure may be worse, so it passes no gate.
        doubtful: Whether the note says why the value proves little, so no report calls it good.
    """

    name: str
    value: float | None
    of: str = ""
    note: str = ""
    by_rows: bool = False
    doubtful: bool = False

    def __post_init__(self) -> None:
        if self.value is None:
            return
        number = _to_number(f"figure {self.name}", self.value)
        object.__setattr__(self, "value", number)
        if number is None:
            object.__setattr__(self, "note", self.note or "it is not a finite number")


@dataclass(frozen=True)
class Series:
    """The numbers of a plot, as a table. The first column is the axis.

    A report shows these numbers. So they must be released values, or aggregates over at least k
    persons or none.

    Attributes:
        name: Its name.
        of: What it is about, as in `Figure`.
        heads: One head per column.
        rows: The rows, each with one cell per column.

    Raises ContractError for a number that is not finite: JSON has none, so that no record could
    keep it. A cell without a number is None. Numbers of numpy become those of Python.
    """

    name: str
    of: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        rows = tuple(tuple(self._check_cell(cell) for cell in row) for row in self.rows)
        if any(len(row) != len(self.heads) for row in rows):
            raise ContractError(
                f"series {self.name}: each row needs {len(self.heads)} cells, one for each head"
            )
        object.__setattr__(self, "rows", rows)

    def _check_cell(self, cell: Cell) -> Cell:
        """A cell as JSON has it."""
        if cell is None or isinstance(cell, str):
            return cell
        number = _to_number(f"series {self.name}", cell)
        if number is None:
            raise ContractError(f"series {self.name}: a number is not finite; give None instead")
        return number


@dataclass(frozen=True)
class Findings:
    """The results of one measure.

    Attributes:
        figures: Its figures.
        series: Its series, for plots.
    """

    figures: tuple[Figure, ...] = ()
    series: tuple[Series, ...] = ()


class DeclaredColumn(NamedTuple):
    """A released column, as far as a config alone tells of it.

    Attributes:
        role: Its role.
        scale: Its scale; None if the config gives none.
        is_secret: Whether it is sensitive, or a target that is not public or has its own model.
    """

    role: Role
    scale: Scale | None
    is_secret: bool


class Measure(Plugin):
    """Compares a release with its source, or attacks it.

    Measures in `fidelity/` compare; those in `risk/` attack (`is_risk`).
    """

    family: ClassVar[str] = "measure"
    #: The meaning of each figure, by its name, which gates use. A meaning is a short plain phrase;
    #: after a semicolon, it gives the range or unit and the worse direction.
    names: ClassVar[Mapping[str, str]]
    #: What the figures are about.
    subjects: ClassVar[Subjects] = "own"
    #: Whether it measures how risky the release is. Otherwise, it measures how useful it is.
    is_risk: ClassVar[bool] = False
    #: Whether it runs if `evaluate` names no measures.
    usual: ClassVar[bool] = True
    #: Whether it needs `Case.pairs`, which exist before the commit only.
    needs_pairs: ClassVar[bool] = False
    #: Whether it has no values before the commit.
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

    def list_subjects(
        self, figure: str, columns: Mapping[str, DeclaredColumn]
    ) -> Sequence[str] | None:
        """What a figure may be about in releases of a config: names of `Figure.of`, none if it is
        about the whole table. None where a config alone does not tell.

        Args:
            figure: The name of the figure.
            columns: The released columns by name, without pseudonyms.
        """
        if self.subjects == "own":
            return None
        return [*columns] if self.subjects == "columns" else []

    def explain_absence(self, figure: str, columns: Mapping[str, DeclaredColumn]) -> str:
        """Why no release of a config has a value of a figure; empty if one may have it."""
        if self.subjects == "columns" and not self.list_subjects(figure, columns):
            return "no released column has this figure"
        return ""

    def explain_size(self, figure: str, n_rows: int, n_persons: int) -> str:
        """Why no release of a table has a value of a figure; empty if one may have it.

        Args:
            figure: The name of the figure.
            n_rows: The rows of the table.
            n_persons: The fewest persons of a release; 0 if they are not known.
        """
        return ""

    def nothing(self, note: str, subjects: Sequence[str] = ("",)) -> "Findings":
        """All figures without a value. note: why."""
        return Findings(tuple(Figure(n, None, of, note) for of in subjects for n in self.names))

    @property
    def held_out(self) -> float:
        """The share of persons whose released rows it holds out (`Case.parts`); 0 for none."""
        return 0.0

    @property
    def names_by(self) -> str:
        """The parameter that names columns."""
        return "columns"

    @property
    def named_columns(self) -> Mapping[str, tuple[Role, ...]]:
        """The columns that its parameters name, and the roles that they may have."""
        return {}

    @property
    def other_source(self) -> Mapping[str, Any] | None:
        """Another table that it reads, as a config's `source`: its parameter of this name."""
        return getattr(self, "source", None)

    @abstractmethod
    def measure(self, case: "Case") -> Findings:
        """Measures one release.

        A figure that can't be computed has no value, and a note that says why. Texts must not
        contain raw values.
        """
