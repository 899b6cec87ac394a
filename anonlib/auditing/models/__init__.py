"""The audit's half of the privacy models. Each has its own file, with the name and the parameters
of the model in `anonlib.privacy`, but independent code.

The audit groups the released rows by their quasi-identifiers once, with the `partial` aggregates of
all models. Each model then judges the classes by its aggregates (`judge`). `exact` counts the
classes that are still undecided. Parts of classes, such as their rows in each file, are counted in
the same pass, and merged to the classes.

The audit of a table in memory counts the classes without Spark, and each model measures these
counts (`measure`). The threshold is the same (`holds`).
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from anonlib.auditing.class_counts import ClassCounts
from anonlib.auditing.view import View
from anonlib.registry import Plugin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


#: float64[classes] or int64[classes].
Measures = npt.NDArray[np.float64] | npt.NDArray[np.int64]


class UnverifiableError(Exception):
    """This view can't show that a model holds. The text says why, without any value."""


@dataclass(frozen=True)
class Partial:
    """An aggregate over the rows of a class. Its buffer must have a fixed size.

    Attributes:
        of_rows: The aggregate.
        merge: The aggregate that makes it of those of the parts of a class: `F.sum` for a count.
    """

    of_rows: "Column"
    merge: "Callable[[Column], Column]"


@dataclass(frozen=True)
class Judgement:
    """The judgement on each class.

    Attributes:
        value: The measured value.
        undecided: Whether `value` is only a bound on the safe side, which does not prove that the
            model holds. None if no class is undecided.
    """

    value: "Column"
    undecided: "Column | None" = None


class AuditModel(Plugin):
    """Measures one number per class, and compares it with the required one."""

    family: ClassVar[str] = "audit"

    @property
    def greater_is_better(self) -> bool:
        """Whether a greater value is better; else a smaller one is."""
        return True

    @property
    @abstractmethod
    def required(self) -> float:
        """The least value of every class; the greatest, if smaller values are better."""

    @property
    def persons(self) -> int:
        """The least persons of every class; 0 if the model doesn't count persons."""
        return 0

    @property
    def protected(self) -> tuple[str, ...]:
        """The released columns that the model looks at, besides the quasi-identifiers."""
        return ()

    @property
    def fails_by_rows(self) -> bool:
        """Whether a class that fails with its rows counted also fails with its persons, of whom
        there are no more. Shares of values can be better among persons than among rows."""
        return False

    @property
    def label(self) -> str:
        """The model's name and the parameters that are not at their defaults."""
        return " ".join([self.type, *(f"{name}={v}" for name, v in self._parameters.items())])

    @property
    def spec(self) -> dict[str, Any]:
        """As `label`, in fields."""
        return {"type": self.type, **self._parameters}

    @property
    def _parameters(self) -> dict[str, Any]:
        fields = type(self).model_fields
        values = {name: getattr(self, name) for name in fields}
        return {name: v for name, v in values.items() if v != fields[name].get_default()}

    def unverifiable(self, view: View | ClassCounts) -> str:
        """Why this view, or these counts, can't show that the model holds; empty if they can. This
        applies to all models, since all count persons."""
        if view.persons != "unknown":
            return ""
        return (
            "persons can't be counted: the table lacks the unit's columns; "
            "publish one of them as a pseudonym"
        )

    def holds(self, value: Any) -> Any:
        """Whether classes with this value hold the model: the one threshold of both engines.

        Args:
            value: A column of Spark, or an array of `Measures`. Both know arithmetic and
                comparisons, and nothing else is used.

        Returns:
            A column, or an array, of truth values.
        """
        return value >= self.required if self.greater_is_better else value <= self.required

    def partial(self, view: View) -> dict[str, Partial]:
        """By name: an aggregate over the rows of a class. The model chooses the names."""
        return {}

    @abstractmethod
    def judge(self, view: View, part: "Mapping[str, Column]") -> Judgement:
        """Judges classes by their partial aggregates.

        A model that can't judge in one step leaves all classes undecided, by `F.lit(True)`.

        Args:
            view: The audited rows.
            part: The aggregates of `partial`, and always `n_rows`.
        """

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        """Measures classes exactly.

        Args:
            view: The audited rows. A reference of the whole table is made from `view.whole`.
            rows: All rows of some classes, with all undecided classes among them.

        Returns:
            `n_rows` and `value` of each class in `rows`.

        Raises:
            UnverifiableError: The view can't show that the model holds.
        """
        raise NotImplementedError(f"{self.type} leaves nothing undecided")

    def measure(self, counts: ClassCounts) -> Measures:
        """Measures all classes exactly, in memory.

        A model without this method of its own never holds in memory (`can_measure`).

        Args:
            counts: The counts of all classes.

        Returns:
            The value of each class; NaN where there is none: such a class fails.

        Raises:
            UnverifiableError: The counts can't show that the model holds.
        """
        raise NotImplementedError(f"{self.type} has no `measure`")


#: What decides in Spark whether a model holds.
_DECISIVE = ("unverifiable", "holds", "partial", "judge", "exact")


def can_measure(model: type[AuditModel]) -> bool:
    """Whether a model has a `measure` that is as new as all that decides in Spark. A model that
    changes a base class in Spark only would be measured in memory by what it changed."""

    def age(name: str) -> int:
        return next(i for i, base in enumerate(model.__mro__) if name in vars(base))

    return model.measure is not AuditModel.measure and all(
        age("measure") <= age(name) for name in _DECISIVE
    )
