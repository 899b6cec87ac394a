"""The classification half of the experiment: a network learns the label from a release."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, f1_score
from sklearn.neural_network import MLPClassifier

from _ta_da.tables import Table, cells, controllers, features, load, raw, release
from anonlib.arrays import Ints
from anonlib.partition import Partitioner
from anonlib.partition.single import Single
from anonlib.partition.target_tree import TargetTree

N_CONTROLLERS = 3
#: The share of rows that test; the paper does not say.
TEST = 0.25
#: Training ends when a tenth of the training rows have not been told better for ten epochs: without
#: that, all networks learn small cells by heart. The same for all methods.
NETWORK = {"hidden_layer_sizes": (64, 32, 16), "early_stopping": True, "max_iter": 200}

#: What partitions before Mondrian; "plain_tree" is the paper's tree, whose cuts need no evidence.
METHODS: dict[str, list[Partitioner]] = {
    "mondrian": [Single()],
    "plain_tree+mondrian": [TargetTree(evidence="none")],
    "target_tree+mondrian": [TargetTree()],
}


def run(
    dataset: str,
    k: int,
    l: int,  # noqa: E741
    method: str,
    protocol: str,
    seed: int,
) -> dict[str, float]:
    """Accuracy and F1-macro of the paper's network (section VI-B) on the test rows, and how many
    cells were released.

    protocol: "paper", all rows are anonymized, then split into training and test rows; "held_out",
    test rows are split off before, and stay raw. method: one of METHODS, or "raw" for the table
    itself. Splits, controllers and networks depend on the seed alone.
    """
    table = load(dataset)
    order = np.random.default_rng(seed).permutation(table.n)
    n_test = round(TEST * table.n)
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    private = table if protocol == "paper" else table.of(train)
    cell = _cells(private, k, l, method, seed)
    released = release(private, cell)
    x = features(released, released)
    if protocol == "paper":
        x_train, x_test = x[train], x[test]
    else:
        x_train, x_test = x, features(raw(table.of(test)), released)
    model = MLPClassifier(**NETWORK, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x_train, table.label[train])
    label, told = table.label[test], model.predict(x_test)
    return {
        "accuracy": float(accuracy_score(label, told)),
        "f1_macro": float(f1_score(label, told, average="macro", zero_division=0.0)),
        "cells": int(cell.max()) + 1,
    }


def _cells(table: Table, k: int, l: int, method: str, seed: int) -> Ints:  # noqa: E741
    if method == "raw":
        return np.arange(table.n)
    owners = controllers(table.n, N_CONTROLLERS, seed)
    return cells(table, owners, k, l, METHODS[method], seed)
