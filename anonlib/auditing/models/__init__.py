"""The audit's half of the privacy models. Each has its own file, with the name and the parameters
of the model in `anonlib.privacy`, but independent code.

The audit groups the released rows by their quasi-identifiers once, with the `partial` aggregates of
all models. Each model then judges the classes by its aggregates (`judge`). `exact` counts the
classes that are still undecided.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from anonlib.auditing.view import View
from anonlib.registry import Plugin

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class UnverifiableError(Exception):
    """This view can't show that a model holds. The text says why, without any value."""


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
    def label(self) -> str:
        """The model's name and the parameters that are not at their defaults."""
        fields = type(self).model_fields
        parameters = {name: getattr(self, name) for name in fields}
        shown = [f"{n}={v}" for n, v in parameters.items() if v != fields[n].get_default()]
        return " ".join([self.type, *shown])

    def unverifiable(self, view: View) -> str:
        """Why this view can't show that the model holds; empty if it can. This applies to all
        models, since all count persons."""
        if view.persons != "unknown":
            return ""
        return (
            "persons can't be counted: the unit that identifies them is not in the table "
            "(one column of it, as a pseudonym, would do)"
        )

    def holds(self, value: "Column") -> "Column":
        """Whether classes with this value hold the model."""
        return value >= self.required if self.greater_is_better else value <= self.required

    def partial(self, view: View) -> "dict[str, Column]":
        """By name: an aggregate over the rows of a class. The model chooses the names. Buffers of
        aggregates must have a fixed size."""
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
