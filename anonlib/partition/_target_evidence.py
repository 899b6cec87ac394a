"""Whether a cut tells something about a target, or may be chance."""

import numpy as np

from anonlib.block import Bools, Codes, Floats


def p_value_of_classes(side: Bools, label: Codes, n_persons: int) -> float:
    """How likely a cut that tells nothing parts some rows' classes as unevenly as this.

    The likelihood-ratio test of independence (G-test), of rows that did not choose the cut. side:
    bool[n], label: int32[n], which are of so many persons. Cost O(n + n_classes).
    """
    table = np.bincount(2 * label + side, minlength=2 * (int(label.max(initial=0)) + 1))
    table = table.reshape(-1, 2)
    table = table[table.sum(axis=1) > 0]
    sides, classes = table.sum(axis=0), table.sum(axis=1)
    g = 2 * (_plogp(table) - _plogp(sides) - _plogp(classes) + _plogp(table.sum()))
    return _p_value(len(table) - 1, g, n_persons / max(len(label), 1))


def p_value_of_numbers(side: Bools, target: Floats, n_persons: int) -> float:
    """The same of equal means of a numeric target: float64[n]."""
    n, total = len(target), _deviations(target)
    rest = _deviations(target[side]) + _deviations(target[~side])
    if rest >= total:
        return 1.0
    statistic = n * float(np.log(total / rest)) if rest > 0 else np.inf
    return _p_value(1, statistic, n_persons / n)


def _p_value(freedom: int, statistic: float, persons: float) -> float:
    """Of chi-squared. Rows of one person tell the same: they count as `persons` of a row each."""
    from scipy.special import chdtrc

    return float(chdtrc(freedom, statistic * persons)) if freedom > 0 and statistic > 0 else 1.0


def _plogp(count: object) -> float:
    c = np.asarray(count, np.float64)
    return float((c * np.log(np.maximum(c, 1.0))).sum())


def _deviations(x: Floats) -> float:
    # Sorted, so that rounding does not depend on the order of rows.
    return float(np.square(np.sort(x) - np.sort(x).mean()).sum()) if len(x) else 0.0
