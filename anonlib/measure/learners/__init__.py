"""Models that learn from a release, the same in Spark ML and in scikit-learn. One file each."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

from anonlib.registry import Plugin


class TaskSize(NamedTuple):
    """What a model will learn from: a target of n_classes (0: of numbers, standardized), n_rows, of
    which the rarest class that occurs has n_rarest. seed: of what it draws."""

    n_classes: int
    n_rows: int
    n_rarest: int
    seed: int


class Learner(Plugin):
    """A kind of model with its parameters."""

    family: ClassVar[str] = "learner"
    #: what it predicts
    classifies: ClassVar[bool]
    regresses: ClassVar[bool]
    #: whether its features can't be sparse
    dense: ClassVar[bool] = False
    #: whether Spark ML has it
    in_spark: ClassVar[bool] = True

    def suits(self, n_classes: int) -> bool:
        """Whether it predicts n_classes classes; 0 stands for numbers."""
        return self.classifies if n_classes else self.regresses

    @abstractmethod
    def estimator(self, given: TaskSize) -> Any:
        """A model of scikit-learn that has not learned yet."""

    def spark_estimator(self, given: TaskSize) -> Any:
        """The same of Spark ML, for columns `features`, `label`."""
        raise NotImplementedError(self.type)
