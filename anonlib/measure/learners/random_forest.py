"""Random forests."""

from typing import Any, ClassVar

from pydantic import Field

from anonlib.measure.learners import Learner, TaskSize


class RandomForest(Learner):
    """A random forest.

    Each tree learns from n of n rows, drawn with replacement. Each cut considers sqrt(f) of f
    features for classes, and f / 3 for numbers.

    Reference: L. Breiman, Random forests, Machine Learning 45, 2001.
    """

    type: ClassVar[str] = "random_forest"
    classifies: ClassVar[bool] = True
    regresses: ClassVar[bool] = True
    trees: int = Field(default=50, ge=1, le=10_000, description="trees of the forest")
    depth: int = Field(default=10, ge=1, le=30, description="most cuts from a root to a leaf")

    def estimator(self, task: TaskSize) -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        parameters: dict[str, Any] = {
            "n_estimators": self.trees,
            "max_depth": self.depth,
            "random_state": task.seed,
        }
        if task.n_classes:
            return RandomForestClassifier(max_features="sqrt", **parameters)
        return RandomForestRegressor(max_features=1 / 3, **parameters)

    def spark_estimator(self, task: TaskSize) -> Any:
        from pyspark.ml.classification import RandomForestClassifier
        from pyspark.ml.regression import RandomForestRegressor

        model = RandomForestClassifier if task.n_classes else RandomForestRegressor
        return model(numTrees=self.trees, maxDepth=self.depth, seed=task.seed)
