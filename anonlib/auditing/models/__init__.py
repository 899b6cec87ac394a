"""The audit's half of the privacy models: one file each, named and parametrised like the model in
`anonlib.privacy`, and written apart from it.

The audit groups the released rows by their quasi-identifiers once, with the `partial` aggregates
of all models, and asks each model to `judge` the classes by those. What a model leaves undecided,
it then counts by `exact`.
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
    """This view can't show that a model holds; the text says why, without any value."""


@dataclass(frozen=True)
class Judgement:
    """A class's measured value; where `undecided` is true (nowhere if None) it is only a bound
    on the safe side, which was not enough to prove that the model holds."""

    value: "Column"
    undecided: "Column | None" = None


class AuditModel(Plugin):
    """Measures one number per class, and says what it must be."""

    family: ClassVar[str] = "audit"

    @property
    def greater_is_better(self) -> bool:
        """Whether a class is the better the greater its value is."""
        return True

    @property
    @abstractmethod
    def required(self) -> float:
        """What the value of every class must reach, or must not exceed."""

    @property
    def persons(self) -> int:
        """How many persons the model asks of every class; 0 if it doesn't count persons."""
        return 0

    @property
    def protected(self) -> tuple[str, ...]:
        """The released columns that the model looks at, quasi-identifiers aside."""
        return ()

    @property
    def label(self) -> str:
        """Its name and parameters, without those left at their defaults."""
        fields = type(self).model_fields
        parameters = {name: getattr(self, name) for name in fields}
        shown = [f"{n}={v}" for n, v in parameters.items() if v != fields[n].get_default()]
        return " ".join([self.type, *shown])

    def unverifiable(self, view: View) -> str:
        """Why this view can't show that the model holds; empty if it can."""
        return ""

    def holds(self, value: "Column") -> "Column":
        """Whether classes of this value satisfy the model."""
        return value >= self.required if self.greater_is_better else value <= self.required

    def partial(self, view: View) -> "dict[str, Column]":
        """Aggregates over the rows of a class, in buffers of fixed size, by names of the model's
        own choice."""
        return {}

    @abstractmethod
    def judge(self, view: View, part: "Mapping[str, Column]") -> Judgement:
        """The classes by their partial aggregates, and by `n_rows`, which is always there.

        A model that can't be had in one step judges all classes undecided, by `F.lit(True)`.
        """

    def exact(self, view: View, rows: "DataFrame") -> "DataFrame":
        """`n_rows` and `value` of all classes in `rows`: whole classes of the view, the undecided
        ones among them. References to the whole table are to be made from `view.whole`.

        Raises UnverifiableError where the view can't show that the model holds."""
        raise NotImplementedError(f"{self.type} leaves nothing undecided")
