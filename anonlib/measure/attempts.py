"""The success of an attack and of its control, and the risk that they show.

The definitions are those of Anonymeter 1.1, class EvaluationResults: M. Giomi, F. Boenisch,
C. Wehmeyer, B. Tasnádi, A unified framework for quantifying privacy risk in synthetic data,
PoPETs 2023(2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, sqrt
from typing import NamedTuple

from anonlib.measure import Figure

#: The deviations of a normal distribution on each side that hold 95 % of it.
Z = 1.959963984540054
#: The meaning of each figure of an attack.
RISK_NAMES: Mapping[str, str] = {
    "attack_rate": "share of attacks on persons in the release that succeed, by Wilson's estimate: "
    "0 of 2000 are 0.00096; 0 to 1, less is safer",
    "control_rate": "share of the same attacks on persons who are not in it that succeed, by "
    "Wilson's estimate; 0 to 1, for comparison",
    "risk": "what persons risk by being in the release: (attack rate - control rate) / (1 - "
    "control rate); 0 to 1, less is safer",
    "low": "least share of persons whom the attack hits because they are in the release, by the "
    "interval of 95 %; 0 to 1, less is safer",
    "high": "largest share of persons whom the attack hits because they are in the release, by the "
    "interval of 95 %; 0 to 1, less is safer",
    "attempts": "number of attacks on persons in the release; more make the interval narrower",
}


class Rate(NamedTuple):
    """A share, as estimated from attempts.

    Attributes:
        value: The middle of Wilson's interval at 95 %. It is a little nearer to a half than the
            plain share: 0 of 2000 are 0.00096.
        error: Half the width of the interval.
    """

    value: float
    error: float


@dataclass(frozen=True)
class Attempts:
    """Attacks and how many of them succeeded.

    Successes may be fractions: an attacker who has to choose one of n at random gets one n-th.
    Then the intervals are wider than they need be.

    Attributes:
        n: Attacks on persons in the release.
        successes: Those that succeeded.
        n_control: Attacks on persons who are not in the release.
        control_successes: Those that succeeded.
        deviation: The standard deviation of `control_successes`, if it is an estimate itself.
        bias: How far this estimate is off on average.
    """

    n: int
    successes: float
    n_control: int
    control_successes: float
    deviation: float = 0.0
    bias: float = 0.0

    def figures(self, of: str = "", note: str = "") -> tuple[Figure, ...]:
        """The figures of RISK_NAMES. They have no values without persons to attack."""
        if not self.n or not self.n_control:
            why = "nobody to attack" if not self.n else "nobody was held out to compare with"
            return tuple(Figure(name, None, of, why) for name in RISK_NAMES)
        attack = estimate_rate(self.successes, self.n)
        control = self._estimate_control()
        risk = estimate_risk(attack, control)
        ends = risk.value - risk.error, risk.value + risk.error
        shares = (attack.value, control.value, *map(_clip, (risk.value, *ends)))
        return tuple(
            Figure(name, float(value), of, note)
            for name, value in zip(RISK_NAMES, (*shares, self.n), strict=True)
        )

    def _estimate_control(self) -> Rate:
        """The rate of the control. Its error has that of the estimate, and the bias in full."""
        rate = estimate_rate(self.control_successes, self.n_control)
        error = hypot(rate.error, Z * self.deviation / self.n_control)
        return Rate(rate.value, error + abs(self.bias) / self.n_control)


def estimate_rate(successes: float, n: int) -> Rate:
    """Wilson's estimate of a share: E. B. Wilson, Probable inference, the law of succession, and
    statistical inference, Journal of the American Statistical Association 22, 1927."""
    below = n + Z * Z
    spread = successes * (n - successes) / n + Z * Z / 4
    return Rate((successes + Z * Z / 2) / below, Z / below * sqrt(spread))


def estimate_risk(attack: Rate, control: Rate) -> Rate:
    """The success of an attack beyond its control, as a share of the most it could be. It is
    negative if the control succeeds more often. Errors are propagated to first order."""
    left = 1 - control.value
    value = (attack.value - control.value) / left
    by_control = (attack.value - 1) / left**2
    return Rate(value, sqrt((attack.error / left) ** 2 + (control.error * by_control) ** 2))


def _clip(share: float) -> float:
    return min(max(share, 0.0), 1.0)
