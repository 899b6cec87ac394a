"""What a config has that does not say otherwise."""

from typing import Any

from anonlib import registry
from anonlib.kernels import Kernel
from anonlib.measure import Measure

DEFAULTS: dict[str, Any] = {
    "partition": {"steps": [{"type": "kmeans"}]},
    "kernel": {"type": "mdav"},
    "recode": {"continuous": "centroid", "ordinal": "median", "nominal": "mode"},
}
#: Other defaults with a kernel that generalizes along hierarchies.
GENERALIZING: dict[str, Any] = {
    "partition": {"steps": [{"type": "tuples"}]},
    "recode": {**DEFAULTS["recode"], "nominal": "lca"},
}


def fill_defaults(tree: dict[str, Any]) -> dict[str, Any]:
    """A new tree, with defaults for sections that are missing or empty, and for fields of them that
    are missing. The tree is not changed."""
    result = {key: value for key, value in tree.items() if value is not None}
    kernel = result.get("kernel", DEFAULTS["kernel"])
    name = kernel.get("type") if isinstance(kernel, dict) else kernel
    defaults = DEFAULTS | (GENERALIZING if _generalizes(name) else {})
    for key, default in defaults.items():
        section = result.get(key, {})
        if isinstance(section, dict) and (key != "kernel" or not section):
            result[key] = {**default, **section}
    if isinstance(evaluate := result.get("evaluate"), dict):
        usual = [{"type": cls.type} for cls in list_usual_measures()]
        result["evaluate"] = {"measures": usual, **evaluate}
    return result


def list_usual_measures() -> list[type[Measure]]:
    """The measures for a config that names none."""
    measures = registry.plugins("measure").values()
    return [cls for cls in measures if issubclass(cls, Measure) and cls.usual]


def _generalizes(kernel: Any) -> bool:
    kernels = registry.plugins("kernel")
    cls = kernels.get(kernel) if isinstance(kernel, str) else None
    return cls is not None and issubclass(cls, Kernel) and cls.needs_hierarchies
