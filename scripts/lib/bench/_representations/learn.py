"""Networks that learn from one representation and are tested on others."""

import warnings
from functools import cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.neural_network import MLPClassifier

from _representations.tables import TABLES, Table
from anonlib.arrays import Floats, Ints

#: Section IV.C. Training ends when the loss has not fallen for ten epochs.
NETWORK = {
    "hidden_layer_sizes": (5, 2),
    "activation": "relu",
    "solver": "adam",
    "learning_rate_init": 1e-3,
    "batch_size": 200,
    "max_iter": 500,
    "n_iter_no_change": 10,
}
TRAIN = 2 / 3


class Experiment:
    """A table, one split of it, and its k-anonymous versions, made on first use."""

    def __init__(self, name: str, kernel: str):
        self.table: Table = TABLES[name]()
        self.kernel = kernel
        n = len(self.table.label)
        order = np.random.default_rng(0).permutation(n)
        self.train, self.test = np.split(order, [round(TRAIN * n)])
        self.cells = cache(self._cells)
        self.features = cache(self._features)

    def _cells(self, k: int) -> Ints:
        return self.table.cells(self.kernel, k) if k > 1 else self.table.tuples()

    def _features(self, k: int, representation: str) -> Any:
        return self.table.features(self.cells(k), representation)

    def rows(self, k: int, representation: str, rows: Ints) -> Floats:
        """float64[rows, f]: the features of some rows of the k-anonymous version."""
        found: Floats = self.features(k, representation)[self.cells(k)[rows]].toarray()
        return found

    def network(self, k: int, representation: str, seed: int) -> MLPClassifier:
        """A network trained on the training rows of the k-anonymous version (k = 1: raw)."""
        network = MLPClassifier(**NETWORK, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return network.fit(
                self.rows(k, representation, self.train), self.table.label[self.train]
            )

    def score(self, network: MLPClassifier, k: int, representation: str) -> float:
        """Its score on the test rows of the k-anonymous version: area under the ROC curve for two
        classes, accuracy for more."""
        label, cell = self.table.label[self.test], self.cells(k)[self.test]
        told = network.predict_proba(self.features(k, representation))[cell]
        if told.shape[1] == 2:
            return float(roc_auc_score(label, told[:, 1]))
        return float(accuracy_score(label, network.classes_[told.argmax(axis=1)]))
