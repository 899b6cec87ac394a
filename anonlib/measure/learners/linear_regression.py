"""Linear models of numbers."""

from typing import Any, ClassVar

from pydantic import Field

from anonlib.measure.learners import Learner, TaskSize


class LinearRegression(Learner):
    """Ridge regression of a standardized number.

    Minimizes the sum of squared errors plus `l2` times the sum of squared weights. The intercept is
    not penalized. In scikit-learn alpha is l2; in Spark ML regParam is l2 / n.
    """

    type: ClassVar[str] = "linear_regression"
    classifies: ClassVar[bool] = False
    regresses: ClassVar[bool] = True
    l2: float = Field(default=1.0, gt=0, description="weight of the squared coefficients")

    def estimator(self, task: TaskSize) -> Any:
        from sklearn.linear_model import Ridge

        # For sparse features the solver is iterative and needs a tolerance.
        return Ridge(alpha=self.l2, tol=1e-10)

    def spark_estimator(self, task: TaskSize) -> Any:
        from pyspark.ml.regression import LinearRegression as Model

        return Model(regParam=self.l2 / task.n_rows, standardization=False)
