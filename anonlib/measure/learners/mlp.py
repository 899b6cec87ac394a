"""Neural networks."""

from math import ceil
from typing import Annotated, Any, ClassVar

from pydantic import Field

from anonlib.measure.learners import Learner, TaskSize


class Mlp(Learner):
    """A multilayer perceptron: rectified linear units, Adam with a constant rate.

    Training ends after `epochs`, or after `patience` epochs without progress. With
    `early_stopping`, progress is that of the score of a held-out tenth of the training rows;
    otherwise, that of the training loss. The default layers are those of TA_DA, section VI-B, which
    names no other parameters. Proportional representation, section IV.C, uses `hidden: [5, 2],
    epochs: 500, early_stopping: false`.

    It is available in scikit-learn only: Spark ML's perceptron has sigmoid units, and learns from
    all rows at once.
    """

    type: ClassVar[str] = "mlp"
    classifies: ClassVar[bool] = True
    regresses: ClassVar[bool] = True
    in_spark: ClassVar[bool] = False
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(64, 32, 16), min_length=1, description="units of each hidden layer"
    )
    epochs: int = Field(default=200, ge=1, description="most passes over the training rows")
    batch: int = Field(default=200, ge=1, description="rows of a step")
    rate: float = Field(default=1e-3, gt=0, description="Adam's learning rate")
    l2: float = Field(default=1e-4, ge=0, description="weight of the squared weights")
    patience: int = Field(default=10, ge=1, description="epochs without progress that end it")
    early_stopping: bool = Field(
        default=True, description="progress is judged on a tenth of the rows, which are held out"
    )

    def estimator(self, task: TaskSize) -> Any:
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        # Early stopping needs two rows of every class: one to hold out, and one to learn from.
        can_hold_out = task.n_rarest >= 2 and task.n_rows >= 10 * max(task.n_classes, 2)
        early = self.early_stopping and can_hold_out
        n_learned = task.n_rows - ceil(task.n_rows / 10) * early
        return (MLPClassifier if task.n_classes else MLPRegressor)(
            hidden_layer_sizes=self.hidden,
            max_iter=self.epochs,
            batch_size=min(self.batch, n_learned),
            learning_rate_init=self.rate,
            alpha=self.l2,
            n_iter_no_change=self.patience,
            early_stopping=early,
            random_state=task.seed,
        )
