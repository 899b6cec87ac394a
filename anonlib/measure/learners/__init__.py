"""Kinds of models that learn from a release, in Spark ML and in scikit-learn. One file each."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

from anonlib.registry import Plugin


class TaskSize(NamedTuple):
    """The size of the task of a model, and its seed.

    Attributes:
        n_classes: Classes of the target; 0 for numbers, which are standardized.
        n_rows: Rows.
        n_rarest: Rows of the rarest class that occurs; `n_rows` for numbers.
        seed: The seed of the model.
    """

    n_classes: int
    n_rows: int
    n_rarest: int
    seed: int


class Learner(Plugin):
    """A kind of model with its parameters."""

    family: ClassVar[str] = "learner"
    #: Whether it predicts classes.
    classifies: ClassVar[bool]
    #: Whether it predicts numbers.
    regresses: ClassVar[bool]
    #: Whether it needs dense features.
    dense: ClassVar[bool] = False
    #: Whether it is available in Spark ML.
    in_spark: ClassVar[bool] = True

    def suits(self, n_classes: int) -> bool:
        """Whether it can predict this number of classes; 0 stands for numbers."""
        return self.classifies if n_classes else self.regresses

    @abstractmethod
    def estimator(self, task: TaskSize) -> Any:
        """An unfitted scikit-learn model."""

    def spark_estimator(self, task: TaskSize) -> Any:
        """An unfitted Spark ML model with the columns `features` and `label`.

        Raises:
            NotImplementedError: The model is not available in Spark ML.
        """
        raise NotImplementedError(self.type)
