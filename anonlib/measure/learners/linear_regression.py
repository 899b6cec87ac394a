"""Linear models of numbers."""

from typing import Any, ClassVar

from pydantic import Field

from anonlib.measure.learners import Learner, TaskSize


class LinearRegression(Learner):
    """Ridge regression of a standardized number.

    The least of the sum of squared errors and `l2` times the squared weights, but for the
    intercept: scikit-learn's alpha is l2, Spark ML's regParam l2 / n.
    """

    type: ClassVar[str] = "linear_regression"
    classifies: ClassVar[bool] = False
    regresses: ClassVar[bool] = True
    l2: float = Field(default=1.0, gt=0, description="weight of the squared coefficients")

    def estimator(self, given: TaskSize) -> Any:
        from sklearn.linear_model import Ridge

        # Of sparse features the solution is found step by step.
        return Ridge(alpha=self.l2, tol=1e-10)

    def spark_estimator(self, given: TaskSize) -> Any:
        from pyspark.ml.regression import LinearRegression as Model

        return Model(regParam=self.l2 / given.n_rows, standardization=False)
