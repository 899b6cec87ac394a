"""Gradient-boosted trees."""

from typing import Any, ClassVar

from pydantic import Field

from anonlib.measure.learners import Learner, TaskSize


class BoostedTrees(Learner):
    """Gradient-boosted trees.

    - scikit-learn: histogram-based. For more than two classes, each round adds a tree per class.
    - Spark ML: GBT. For more than two classes, there is one ensemble per class against the rest.

    Reference: J. H. Friedman, Greedy function approximation, Annals of Statistics 29(5), 2001.
    """

    type: ClassVar[str] = "boosted_trees"
    classifies: ClassVar[bool] = True
    regresses: ClassVar[bool] = True
    dense: ClassVar[bool] = True
    trees: int = Field(default=50, ge=1, le=10_000, description="rounds of boosting")
    depth: int = Field(default=5, ge=1, le=30, description="most cuts from a root to a leaf")
    rate: float = Field(default=0.1, gt=0, le=1, description="how far each round goes")

    def estimator(self, task: TaskSize) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        model = HistGradientBoostingClassifier if task.n_classes else HistGradientBoostingRegressor
        return model(
            max_iter=self.trees,
            max_depth=self.depth,
            max_leaf_nodes=None,
            learning_rate=self.rate,
            early_stopping=False,
            random_state=task.seed,
        )

    def spark_estimator(self, task: TaskSize) -> Any:
        from pyspark.ml.classification import GBTClassifier, OneVsRest
        from pyspark.ml.regression import GBTRegressor

        parameters: dict[str, Any] = {
            "maxIter": self.trees,
            "maxDepth": self.depth,
            "stepSize": self.rate,
            "seed": task.seed,
        }
        if not task.n_classes:
            return GBTRegressor(**parameters)
        model = GBTClassifier(**parameters)
        return OneVsRest(classifier=model) if task.n_classes > 2 else model
