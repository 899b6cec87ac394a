"""Results of a sweep for pages where settings are chosen: invented, of a config that loads."""

from collections.abc import Sequence
from typing import Any

from anonlib.sweeps.file import parse_sweep
from anonlib.sweeps.results import ResultRow, SweepResult

K, KERNEL, STEPS = "privacy.models.0.k", "kernel.type", "partition.steps"
KERNELS, KS = ("mdav", "mondrian", "vmdav"), (2, 5, 10, 20, 50)
PARTITIONERS = ("single", "kmeans")
QUASI = {"role": "quasi_identifier", "scale": "continuous"}
CONFIG: dict[str, Any] = {
    "source": {"format": "csv", "path": "people.csv", "options": {"header": "true"}},
    "attributes": {
        "age": QUASI,
        "wage": QUASI,
        "city": {"role": "quasi_identifier", "scale": "nominal"},
        "ill": {"role": "sensitive"},
    },
    "one_row_per_person": True,
    "privacy": {"models": [{"type": "k_anonymity", "k": 5}]},
    "release": {"path": "out/people"},
}


def swept(
    ks: Sequence[int] = KS, cases: Sequence[str] = ("people",), seeds: int = 2, **config: Any
) -> SweepResult:
    """All points of a sweep over kernels, partitioners and k. The last one failed."""
    file = {
        "cases": {name: {"config": {**CONFIG, **config}} for name in cases},
        "grid": {STEPS: [[{"type": t}] for t in PARTITIONERS], KERNEL: [*KERNELS], K: [*ks]},
        "seeds": seeds,
        "out": "out/sweeps/people",
    }
    sweep = parse_sweep(file)
    rows = [
        _row(point.case, dict(point.parameters), point.seed, i)
        for i, point in enumerate(sweep.points)
    ]
    rows[-1] = ResultRow(
        "", rows[-1].case, rows[-1].parameters, seeds - 1, {}, error="E: <too few>"
    )
    return SweepResult(
        tuple(rows), len(rows), len(rows), "out", "out/sweeps/people", sweep.file, (), sweep.bases
    )


def _row(case: str, parameters: dict[str, Any], seed: int, i: int) -> ResultRow:
    k, kernel = parameters[K], KERNELS.index(parameters[KERNEL])
    cuts = parameters[STEPS][0]["type"] != "single"
    loss = (k / (k + 60)) * (1 + 0.25 * kernel) * (1.06 if cuts else 1) + 0.003 * seed
    sizes = {k: 40, k + 1: 3 * kernel + 2, 2 * k: 9 * kernel + seed + 1}
    figures = {
        "accuracy": 0.86 - 0.2 * loss,
        "raw_accuracy": 0.87,
        "sse": loss,
        "ncp": loss / 2,
        "precision": 1 - loss,
    }
    return ResultRow(
        str(i), case, parameters, seed, figures, 600, sum(sizes.values()), k, 0.5, None, sizes
    )
