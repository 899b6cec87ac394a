"""Look-alikes of a sensitive value are one value: to kernels, to the scan and to the audit."""

import re
from collections import defaultdict
from pathlib import Path
from unicodedata import combining, decomposition

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import anonlib
from anonlib.auditing import audit_table
from anonlib.auditing.canonical import SIMPLE_TEXT
from anonlib.errors import InfeasibleError
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.privacy.l_diversity import LDiversity
from anonlib.spark.values import make_canonical
from anonlib.text import fold_text
from tests.look_alikes import DIFFERENT, SAME
from tests.support import audit_spec

pytestmark = pytest.mark.spark


def test_kernels_and_audit_agree_with_the_table_by_hand(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    texts = [text for seen, same in SAME.items() for text in [seen, *same]] + DIFFERENT
    frame = spark.createDataFrame(pd.DataFrame({"x": texts}))
    rows = frame.select("x", make_canonical(F.col("x"), pa.string(), ()).alias("y")).collect()
    audited: dict[str, set[str | None]] = defaultdict(set)
    by_hand = {text: seen for seen, same in SAME.items() for text in [seen, *same]}
    for row in rows:
        audited[by_hand.get(row["x"], row["x"])].add(row["y"])
        assert (row["y"] or "") == fold_text(row["x"])
    assert all(len(found) == 1 for found in audited.values())
    assert audited[""] == {None}
    assert len({*map(frozenset, audited.values())}) == len(audited)


def test_simple_texts_are_folded_as_any_text(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    signs = [
        c for code in range(0xD800) if re.match(SIMPLE_TEXT.replace("\\z", "\\Z"), c := chr(code))
    ]
    assert len(signs) > 30_000
    # None combines with another: none is a mark, or the second part of a composed character.
    parts = [decomposition(chr(code)).split() for code in range(0x110000)]
    seconds = {int(part[1], 16) for part in parts if len(part) == 2 and "<" not in part[0]}
    assert not any(combining(c) or ord(c) in seconds for c in signs)
    texts = [f"{left}{c}{right}" for c in signs for left, right in [("", ""), ("e ", "  \u00e9")]]
    texts += [f"{c}{ending}" for c in "a\u00e9" for ending in ("\n", " ", "\t", "\r\n", "\u3000")]
    frame = spark.createDataFrame(pd.DataFrame({"x": texts}))
    folded = frame.select("x", make_canonical(F.col("x"), pa.string(), ()).alias("y")).toPandas()
    wrong = [x for x, y in zip(folded["x"], folded["y"], strict=True) if (y or "") != fold_text(x)]
    assert wrong == []


@pytest.mark.parametrize("kind", ["distinct", "entropy"])
@pytest.mark.parametrize("seen", ["hiv", "caf\u00e9 cr\u00e8me", ""])
def test_audit_of_one_value_in_many_forms(spark: SparkSession, seen: str, kind: str) -> None:
    frame = spark.createDataFrame(pd.DataFrame({"q": 1, "ill": SAME[seen]}))
    models = (KAnonymity(k=2), LDiversity(l=2, attribute="ill", kind=kind))
    spec = audit_spec(("q", "ill"), ("q",), models)
    verdict = audit_table(frame, spec).verdicts[1]
    assert not verdict.holds


@pytest.mark.parametrize("model", ["l_diversity", "p_sensitive", "alpha_k"])
def test_release_of_one_value_in_many_forms(
    spark: SparkSession, tmp_path: Path, model: str
) -> None:
    frame = pd.DataFrame({"age": range(60), "ill": (SAME["hiv"] * 6)[:60]})
    frame.to_parquet(tmp_path / "source.parquet")
    parameter = {"l_diversity": {"l": 2}, "p_sensitive": {"p": 2}, "alpha_k": {"alpha": 0.5}}
    config = {
        "source": {"format": "parquet", "path": str(tmp_path / "source.parquet")},
        "attributes": {
            "age": {"role": "quasi_identifier", "scale": "continuous"},
            "ill": {"role": "sensitive"},
        },
        "one_row_per_person": True,
        "privacy": {
            "models": [
                {"type": "k_anonymity", "k": 3},
                {"type": model, "attribute": "ill", **parameter[model]},
            ]
        },
        "kernel": {"type": "mdav"},
        "release": {"path": str(tmp_path / "out")},
    }
    with pytest.raises(InfeasibleError):
        anonlib.release(config)
    assert not (tmp_path / "out" / "_delta_log").exists()
