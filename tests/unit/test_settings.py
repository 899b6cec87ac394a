"""What records say of a config: an allow-list without values of the table or secrets."""

import json
from pathlib import Path
from typing import Any

import pytest

from anonlib import parse
from anonlib.config.summary import bare, label_plugin, summarize_config, summarize_plugin

SECRET = "Sesame"


def config(**changes: Any) -> Any:
    return parse(
        {
            "source": {"format": "csv", "path": "in.csv"},
            "attributes": {
                "age": {"role": "quasi_identifier", "scale": "continuous"},
                "grade": {
                    "role": "quasi_identifier",
                    "scale": "ordinal",
                    "order": [f"low{SECRET}", "high"],
                },
                "owner": {"role": "drop"},
                "disease": {"role": "sensitive"},
            },
            "one_row_per_person": True,
            "privacy": {
                "models": [{"type": "k_anonymity", "k": 5}],
                "missing_tokens": [f"none{SECRET}"],
            },
            "release": {"path": "out"},
            "seed": 3,
        }
        | changes
    )


def test_nothing_but_names_and_numbers() -> None:
    own = {"type": "controller", "column": "owner", "models": {SECRET: []}}
    made = config(
        source={
            "format": "csv",
            "path": "in.csv",
            "options": {"header": SECRET},
            "secrets": {"password": SECRET},
            "where": f"disease <> '{SECRET}'",
        },
        partition={"steps": [own, {"type": "kmeans"}]},
        spark={"conf": {"spark.app.name": SECRET}},
    )
    # What a config may not say is left out all the same.
    source = made.source.model_copy(update={"path": f"hdfs://key:{SECRET}@host/in.csv"})
    found = summarize_config(made.model_copy(update={"source": source}))
    assert SECRET not in json.dumps(found)
    assert found["source"] == {"format": "csv", "path": "hdfs://…@host/in.csv", "filtered": True}
    assert found["partition"][0].startswith("controller column=owner models=[1]")


def test_what_is_there() -> None:
    found = summarize_config(config())
    assert found["columns"] == {
        "age": {
            "role": "quasi_identifier",
            "scale": "continuous",
            "recoder": label_plugin(config().recode.continuous),
            "recoder_spec": summarize_plugin(config().recode.continuous),
        },
        "grade": {
            "role": "quasi_identifier",
            "scale": "ordinal",
            "recoder": "median",
            "recoder_spec": {"type": "median"},
        },
        "owner": {"role": "drop"},
        "disease": {"role": "sensitive"},
    }
    assert found["models"] == ["k_anonymity k=5"]
    assert found["persons"] == "one row per person, declared"
    assert found["seed"] == 3
    assert found["source"]["filtered"] is False


def test_links_that_are_acknowledged() -> None:
    """As the report shows them; a config without pseudonyms links nothing."""
    plain = config()
    assert "acknowledge_linked" not in summarize_config(plain)
    privacy = plain.privacy.model_copy(update={"acknowledge_linked": True})
    found = summarize_config(plain.model_copy(update={"privacy": privacy}))
    assert found["acknowledge_linked"] is True


def test_hierarchies_are_only_mentioned(tmp_path: Path) -> None:
    file = tmp_path / "job.csv"
    file.write_text(f"{SECRET};*\nother;*\n", encoding="utf-8")
    job = {"role": "quasi_identifier", "scale": "nominal", "hierarchy": str(file)}
    found = summarize_config(config(attributes={"job": job}))
    assert found["columns"]["job"]["hierarchy"] is True
    assert SECRET not in json.dumps(found)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("out/adult", "out/adult"),
        ("file:/a/b", "file:/a/b"),
        ("s3a://bucket/a?X-Signature=Sesame", "s3a://bucket/a…"),
        ("s3a://Sesame@bucket/a", "s3a://…@bucket/a"),
        ("s3a://Ses:am/e@bucket/a", "s3a://…@bucket/a"),
        ("abfss://box@account.host/a", "abfss://box@account.host/a"),
        ("abfss://box:Sesame@account.host/a", "abfss://box@account.host/a"),
        ("jdbc:sqlserver://host;user=a;password=Sesame", "jdbc:sqlserver://host…"),
        ("in/part-?.csv", "in/part-…"),
    ],
)
def test_paths_without_secrets(path: str, shown: str) -> None:
    assert bare(path) == shown
