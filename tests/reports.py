"""Records of runs as reports get them: invented, with all that a record may have."""

import copy
import re
from importlib.resources import files
from typing import Any

LEARNERS = ("logistic_regression", "boosted_trees", "random_forest")
COLUMNS = ("birth_date", "age", "education", "hours", "capital_gain")
MARITAL = ("single", "married", "divorced", "widowed", "partnership", "other")


def record() -> dict[str, Any]:
    """A release's private record, evaluated, with gates; a new one at each call."""
    return copy.deepcopy(_RECORD)


def figure(name: str, value: float | None, of: str = "", note: str = "") -> dict[str, Any]:
    return {"name": name, "value": value, "of": of, "note": note}


def series(name: str, of: str, heads: tuple[str, ...], rows: Any) -> dict[str, Any]:
    return {"name": name, "of": of, "heads": list(heads), "rows": [list(row) for row in rows]}


def findings(figures: Any, series: Any = (), seconds: float = 1.5) -> dict[str, Any]:
    return {"seconds": seconds, "figures": list(figures), "series": list(series)}


def sweep_rows() -> list[dict[str, Any]]:
    """Two kernels in two cases, for four k and three seeds; one point failed."""
    rows: list[dict[str, Any]] = [
        {
            "case": case,
            "kernel.type": kernel,
            "privacy.models.0.k": k,
            "seed": seed,
            "encoding": "one_hot",
            "accuracy": 0.86 - 0.00012 * k * (2 if kernel == "mondrian" else 1) + 0.002 * seed,
            "sse": k / (k + 180) * (1.4 if kernel == "mondrian" else 1.0),
            "seconds": 1.25,
            "error": None,
        }
        for case in ("adult", "heart")
        for kernel in ("mdav", "mondrian")
        for k in (5, 50, 200, 1000)
        for seed in (1, 2, 3)
    ]
    rows[-1] |= {"accuracy": None, "sse": None, "error": "InfeasibleError: k is larger than n"}
    return rows


def _distribution(name: str, i: int) -> dict[str, Any]:
    """A column's bins: a bump, which a release makes rougher."""
    weights = [1 / (1 + ((j - 6 - i) / 3) ** 2) for j in range(20)]
    released = [w * (0.7 if j % 3 == i % 3 else 1.15) for j, w in enumerate(weights)]
    rows = [
        (f"{10 * j} to {10 * (j + 1)}", w / sum(weights), r / sum(released))
        for j, (w, r) in enumerate(zip(weights, released, strict=True))
    ]
    return series("distribution", name, ("range", "source", "release"), rows)


def _categories(name: str, values: tuple[str, ...]) -> dict[str, Any]:
    shares = [2.0**-j for j in range(len(values))]
    total = sum(shares)
    rows = [
        (value, share / total, share / total * (1.1 if j == 0 else 0.9))
        for j, (value, share) in enumerate(zip(values, shares, strict=True))
    ]
    return series("distribution", name, ("category", "source", "release"), rows)


_MEASURES = {
    "moments": findings(
        [
            each
            for i, column in enumerate(COLUMNS)
            for each in (
                figure("mean_difference", 0.0004 * i, column),
                figure("variance_ratio", 0.97 - 0.03 * i, column),
                figure("skewness", None, column, "the column is constant")
                if column == "hours"
                else figure("skewness", 0.02 * i, column),
            )
        ]
    ),
    "marginals": findings(
        [
            *(figure("wasserstein", 0.01 + 0.004 * i, c) for i, c in enumerate(COLUMNS)),
            figure("total_variation", 0.021, "sex"),
            figure("total_variation", 0.094, "marital_status"),
        ],
        [
            *(_distribution(column, i) for i, column in enumerate(COLUMNS)),
            _categories("sex", ("female", "male")),
            _categories("marital_status", MARITAL),
            _categories("zip", tuple(f"{10 + j}***, {20 + j}***, {30 + j}***" for j in range(18))),
        ],
        4.25,
    ),
    "associations": findings(
        [figure("mean_difference", 0.031), figure("largest_difference", 0.118)],
        [
            series(
                "associations",
                "",
                ("pair", "kind", "source", "released"),
                [("age × hours", "pearson", -0.31, -0.35), ("age × sex", "eta", 0.02, 0.06)],
            )
        ],
    ),
    "queries": findings([figure("mean_error", 0.043), figure("median_error", 0.019)]),
    "learning": findings(
        [
            *(
                each
                for i, model in enumerate(LEARNERS)
                for score in ("accuracy", "f1", "auc")
                for each in (
                    figure(score, 0.831 - 0.004 * i, model, "fewer than 100 test rows"),
                    figure(f"raw_{score}", 0.852 + 0.006 * i, model),
                    figure(f"{score}_loss", 0.021 + 0.01 * i, model),
                )
            ),
            *(figure(f"baseline_{score}", 0.752) for score in ("accuracy", "f1", "auc")),
        ],
        [
            series(
                "accuracy",
                "label",
                ("model", "release", "raw", "baseline"),
                [(m, 0.831 - 0.004 * i, 0.852 + 0.006 * i, 0.752) for i, m in enumerate(LEARNERS)],
            )
        ],
        38.0,
    ),
    "reidentification": findings(
        [
            figure("prosecutor_max", 0.1),
            figure("prosecutor_mean", 0.0999),
            *(
                figure(name, None, "", "no population was given")
                for name in ("journalist_max", "marketer")
            ),
        ],
        [
            series(
                "class_sizes",
                "",
                ("from", "to", "classes", "persons"),
                [(10, 10, 2983, 29830), (11, 12, 9, 99), (13, 16, 5, 71)],
            ),
            series(
                "share_of_persons_above_a_risk",
                "",
                ("risk", "prosecutor", "journalist"),
                [(0.5, 0.0, 0.0), (0.2, 0.0, 0.0), (0.1, 0.0, 0.0), (0.05, 1.0, 0.4)],
            ),
        ],
    ),
    "disclosure": findings(
        [
            figure("correct", 0.243, "diagnosis"),
            figure("base", 0.221, "diagnosis"),
            figure("correct", 0.371, "income"),
            figure("base", 0.352, "income"),
        ],
        [
            series(
                "certainty",
                column,
                ("from", "to", "classes", "rows"),
                [(0.1, 0.2, 300, 3010), (0.2, 0.3, 2600, 25990), (0.5, 0.6, 97, 1000)],
            )
            for column in ("diagnosis", "income")
        ],
    ),
}
_GATES = [
    ("reidentification.marketer at most 0.1", True, "0.0999"),
    ("learning.accuracy_loss at most 0.06", True, "0.041 of random_forest"),
]
_VERDICTS = [
    ("k_anonymity k=10", 10, 10, True),
    ("l_diversity l=2 attribute=diagnosis", 2, 2, False),
    ("l_diversity l=2 attribute=income", 2, 2, False),
]
_RECORD: dict[str, Any] = {
    "anonlib_record": 1,
    "run_id": "20260131T101500Z-62147f5c",
    "outcome": "published",
    "already_done": False,
    "n_rows_in": 30012,
    "n_rows_out": 30000,
    "n_suppressed": 12,
    "n_waiting": 0,
    "notes": ["an index of the source was not used"],
    "n_blocks": 6,
    "n_cells": 2997,
    "losses": {
        "average_class_size": 1.001,
        "cell_size": 10.01,
        "classification": None,
        "discernibility": 300404.0,
        "entropy": None,
        "ncp": 0.05651179059586769,
        "nllm": 0.44254444444444446,
        "precision": 0.5574555555555556,
        "sse": 0.068735442871355,
    },
    "losses_by_column": {"mse": {"age": 0.021, "hours": 0.102}},
    "table": "s3a://KEY:PASSWORD@bucket/out/people",
    "table_version": 0,
    "manifest": "s3a://bucket/out/people/_anonlib/manifest.json",
    "record": "s3a://bucket/out/people.private/20260131T101500Z-62147f5c.json",
    "seconds": {"start": 16.03, "scan": 10.11, "anonymize": 42.76, "audit": 4.8, "publish": 4.59},
    "audit": {
        "passed": True,
        "n_rows": 30000,
        "n_classes": 2997,
        "verdicts": [
            {
                "model": model,
                "holds": True,
                "value": value,
                "required": required,
                "n_failing": 0,
                "worst": [],
                "exact": exact,
                "note": "",
            }
            for model, value, required, exact in _VERDICTS
        ],
        "problems": [],
        "sizes": [[10, 2983], [11, 9], [13, 2], [14, 1], [15, 1], [16, 1]],
        "insensitive": "checked",
        "lone": {"zip": 14},
    },
    "config_sha256": "01c455c50510249e15178f2b098b7695fca105e9ba5189ec0dc1d1eb2fdd0109",
    "seed": 7,
    "source_version": None,
    "plan": {
        "features": [{"column": "c3", "form": "number"}, {"column": "c5", "form": "groups"}],
        "cuts": {"weights": [[1.0, 0.5]], "threshold": [0.25]},
        "n_leaves": 6,
        "n_heavy_tuples": 0,
        "controllers": {"n": 3, "n_suppressed": 1, "n_merged": 0},
        "n_blocks": 6,
        "n_merged": 0,
        "largest_leaf": 5921,
    },
    "moments": {
        "birth_date": {"mean": "1975-10-20", "sd": 6746.87, "form": "date"},
        "age": {"mean": 49.6, "sd": 18.4, "form": "number"},
        "education": {"mean": 3.29, "sd": 1.47, "form": "rank"},
        **{c: {"mean": 40.5, "sd": 12.25, "form": "number"} for c in ("hours", "capital_gain")},
    },
    "missing": {**dict.fromkeys(COLUMNS, 0), "sex": 0, "marital_status": 546},
    "categories": {"sex": 2, "marital_status": 6},
    "software": {"python": "3.11.7", "anonlib": "0.1.0", "pyspark": "4.2.0"},
    "settings": {
        "source": {"format": "generator", "rows": 30012, "filtered": False},
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi_identifier", "scale": "continuous", "recoder": "interval"},
            "education": {"role": "quasi_identifier", "scale": "ordinal", "recoder": "median"},
            "diagnosis": {"role": "sensitive"},
        },
        "persons": "one row per person: national_id",
        "models": [model for model, *_ in _VERDICTS],
        "suppression_limit": 0.01,
        "partition": ["kmeans"],
        "kernel": "mdav",
        "seed": 7,
    },
    "evaluation": {
        "measures": _MEASURES,
        "gates": [
            {"gate": gate, "passed": passed, "found": f"{gate}: {found}"}
            for gate, passed, found in _GATES
        ],
    },
}


def unevaluated() -> dict[str, Any]:
    """The record of a release that was not measured."""
    found = record()
    del found["evaluation"]
    return found


def colours(scheme: str) -> dict[str, str]:
    """The style sheet's colours by day (""), by night (`dark`) or on paper (`print`)."""
    css = (files("anonlib.pages") / "templates" / "style.css").read_text("utf-8")
    blocks = re.findall(r"(@media [^{]*\{\s*)?:root \{(.*?)\}", css, re.S)
    block = next(body for head, body in blocks if (scheme in head if scheme else not head))
    return dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", block))
