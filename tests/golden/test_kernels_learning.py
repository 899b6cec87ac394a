"""What the papers on MDAV with a target claim: models learn more from its releases than from
those of MDAV."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonlib.local.cell_grouping import cells
from tests.support import data_dir

SEEDS = range(10)


def heart() -> tuple[Any, Any]:
    """The complete rows of Heart Disease (Cleveland): 13 columns, and whether there is one."""
    table = pd.read_csv(data_dir() / "heart_cleveland" / "heart_cleveland.csv", na_values="?")
    table = table.dropna()
    return table.drop(columns="num").to_numpy(float), (table["num"] > 0).to_numpy()


def accuracy(kernel: str, k: int, **parameters: Any) -> float:
    """The mean share of untouched rows that logistic regression gets right, having learnt from the
    centroids of the cells of the other three quarters."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split

    x, y = heart()
    found = []
    for seed in SEEDS:
        split = train_test_split(x, y, test_size=0.25, stratify=y, random_state=seed)
        train, test, label, truth = split
        center, scale = train.mean(axis=0), train.std(axis=0)
        train, test = (train - center) / scale, (test - center) / scale
        given = {} if kernel == "mdav" else {"target": label}
        ids = cells(train, kernel, k, **given, **parameters)
        sums = np.column_stack([np.bincount(ids, column) for column in train.T])
        released = (sums / np.bincount(ids)[:, None])[ids]
        model = LogisticRegression(max_iter=500).fit(released, label)
        found.append(model.score(test, truth))
    return float(np.mean(found))


@pytest.mark.parametrize("k", [25, 75])
@pytest.mark.parametrize(
    ("kernel", "parameters"), [("lda_mdav", {"alpha": 2.0}), ("mdav_sd", {"lambda": 0.5})]
)
def test_accuracy_is_higher_than_after_mdav(
    kernel: str, parameters: dict[str, Any], k: int
) -> None:
    """By 3 to 9 points; at k = 50, where MDAV has a good day, they are level."""
    assert accuracy(kernel, k, **parameters) > accuracy("mdav", k) + 0.02
