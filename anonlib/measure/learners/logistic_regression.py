"""Linear models of classes."""

from typing import Any, ClassVar

from pydantic import Field

from anonlib.measure.learners import Learner, TaskSize


class LogisticRegression(Learner):
    """Logistic regression; multinomial for more than two classes.

    Minimizes the sum of log losses of all rows plus `l2` / 2 times the sum of squared weights. The
    intercept is not penalized. In scikit-learn C is 1 / l2; in Spark ML regParam is l2 / n.
    """

    type: ClassVar[str] = "logistic_regression"
    classifies: ClassVar[bool] = True
    regresses: ClassVar[bool] = False
    l2: float = Field(default=1.0, gt=0, description="weight of the squared coefficients")
    max_iter: int = Field(default=200, ge=1, description="most steps of the optimizer")

    def estimator(self, task: TaskSize) -> Any:
        from sklearn.linear_model import LogisticRegression as Model

        return Model(C=1 / self.l2, max_iter=self.max_iter)

    def spark_estimator(self, task: TaskSize) -> Any:
        from pyspark.ml.classification import LogisticRegression as Model

        return Model(regParam=self.l2 / task.n_rows, maxIter=self.max_iter, standardization=False)
