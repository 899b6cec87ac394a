"""The data dictionary: it explains what the manifest has, and says nothing else."""

import re
from typing import Any

from anonlib import registry
from anonlib.run.dictionary import MOST_NODES, write_dictionary

MANIFEST: dict[str, Any] = {
    "verdicts": [
        {"model": "k_anonymity k=5", "holds": True},
        {"model": "of_another_package x=1", "holds": True},
    ],
    "columns": [
        {"name": "a|ge<b>", "role": "quasi_identifier", "recoder": "interval", "form": "interval"},
        {"name": "town", "role": "quasi_identifier", "recoder": "lca", "form": "node"},
        {"name": "illness", "role": "sensitive"},
        {"name": "person", "role": "identifier"},
    ],
    "rows_released": 1234,
    "rows_suppressed": "<5",
    "losses": {"ncp": 0.25, "sse": None, "other": 1.0},
    "hierarchies": {
        # three leaves, two of them under the first group
        "town": {
            "names": ["Ayr", None, None, "{ALB and 1 more}", None, "*"],
            "parents": [3, 3, 4, 5, 5, 5],
        }
    },
}


def rows(text: str, first: str) -> list[list[str]]:
    """The cells of the table whose head begins with a word."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return found


def test_columns() -> None:
    found = rows(write_dictionary(MANIFEST), "column")
    assert [row[0] for row in found] == ["a\\|ge\\<b\\>", "town", "illness", "person"]
    assert found[0][2].startswith("interval: ")
    assert found[0][2].endswith("value, both included; null where more than half are missing.")
    columns = [{**MANIFEST["columns"][0], "recoder": "set", "form": "set"}]
    (of_set,) = rows(write_dictionary({**MANIFEST, "columns": columns}), "column")
    assert of_set[2].endswith(
        "the whole is null where more than half are missing. A null within it stands for missing "
        "values."
    )
    assert "models below protect it" in found[2][1]
    assert [row[2] for row in found[2:]] == ["as it is", "pseudonym"]
    assert "keyed hash" in found[3][1]


#: By recoder and parameter that changes what released values are: a value, and what readers learn.
TOLD: dict[tuple[str, str], tuple[Any, str]] = {
    ("interval", "round_to"): (5.0, "moved outwards to multiples of 5."),
    ("interval", "bottom"): (1.0, "Ends below 1 are released as 1: read it as 1 or less."),
    ("interval", "top"): (40.5, "Ends above 40.5 are released as 40.5: read it as 40.5 or more."),
    ("lca", "level"): (2, "has height 2 or more"),
    ("centroid", "restore_variance"): (True, "it may be beyond all values of its class"),
    ("proportional", "steps"): (20, "rounded to multiples of 1/20"),
}
#: Parameters of the type of released columns alone: readers see it.
SEEN = {"form", "keep_type"}


def test_parameters_of_recoders_are_told() -> None:
    """Each that makes the usual sentence on the recoder untrue."""
    for type, recoder in registry.plugins("recoder").items():
        if not recoder.__module__.startswith("anonlib."):
            continue
        names = {*recoder.model_fields} - SEEN
        assert {*recoder.public_parameters} == names  # type: ignore[attr-defined]
        for name in names:
            value, text = TOLD[type, name]
            column = {"name": "x", "role": "quasi_identifier", "recoder": type}
            columns = [column, {**column, "parameters": {name: value, "of_later_versions": 1}}]
            usual, own = rows(write_dictionary({**MANIFEST, "columns": columns}), "column")
            assert text not in usual[2]
            assert text in own[2]
            assert usual[2] not in own[2]
    dates = {"name": "x", "role": "quasi_identifier", "recoder": "interval"}
    dates["parameters"] = {"round_to": "year"}  # type: ignore[assignment]
    text = write_dictionary({**MANIFEST, "columns": [dates]})
    assert "moved outwards to the beginning of a year. |" in text


def test_groups_are_promised_only_where_they_are_listed() -> None:
    """A column without a hierarchy has none."""
    promise = "The groups are below."
    assert rows(write_dictionary(MANIFEST), "column")[1][2].endswith(promise)
    assert promise not in write_dictionary({**MANIFEST, "hierarchies": {}})


def test_a_recoder_says_when_it_gives_null() -> None:
    names = ("centroid", "median", "mode", "interval", "set")
    columns = [{"name": n, "role": "quasi_identifier", "recoder": n} for n in names]
    for row in rows(write_dictionary({**MANIFEST, "columns": columns}), "column"):
        assert re.search("null where .* missing", row[2]), row


def test_persons_who_may_be_in_several_batches() -> None:
    several = "Persons may be in several batches"
    assert several not in write_dictionary(MANIFEST)
    assert several in write_dictionary({**MANIFEST, "persons_return": True})


def test_what_counts_as_missing() -> None:
    assert "count as missing, too" not in write_dictionary(MANIFEST)
    columns = [
        {"name": "illness", "role": "sensitive", "missing": {"texts": ["?", ""], "n_others": 2}},
        {"name": "town", "role": "quasi_identifier"},
    ]
    text = write_dictionary({**MANIFEST, "columns": columns})
    [first, *more] = rows(text, "column | texts that mean a missing value")
    assert first == ["illness", '"?", an empty text, 2 more that the config names']
    assert more == []


def test_figures_of_cells_are_not_said_to_be_of_classes() -> None:
    """Several cells may be one class: there are fewer classes, and they have more rows."""
    losses = {"cell_size": 5.2, "average_class_size": 1.04, "discernibility": 6000.0}
    text = write_dictionary({**MANIFEST, "losses": losses})
    figures = text.partition("## Figures")[2]
    found = {row[0]: row[2] for row in rows(figures, "loss")}
    assert found["cell\\_size"].startswith("Mean number of rows per cell")
    assert not any("class" in each for each in found.values())
    assert "Cells with the same\nvalues are one class of the table" in figures
    assert "counted before" not in figures
    text = write_dictionary({**MANIFEST, "losses": losses, "suppress": "costliest"})
    assert "Losses were counted before" in text
    assert "Losses count cells" not in write_dictionary({**MANIFEST, "losses": {}})


def test_words_of_readers() -> None:
    """What holds for cells holds for classes, which readers see, and letters are explained."""
    models = [{"model": f"{name} x=1", "holds": True} for name in registry.plugins("privacy model")]
    losses = dict.fromkeys(registry.plugins("metric"), 0.5)
    columns = [
        {"name": name, "role": "quasi_identifier", "recoder": name}
        for name in registry.plugins("recoder")
    ]
    changed = {"verdicts": models, "losses": losses, "columns": columns}
    text = write_dictionary({**MANIFEST, **changed})
    assert "cell" not in text.partition("## Figures")[0].lower()
    told = {row[0].split()[0]: row[1] for row in rows(text, "model")}
    assert told["k\\_anonymity"].startswith("Every class has at least k distinct persons. k: who")
    assert "l values or more to choose from" in told["l\\_diversity"]
    assert "t: 0 if each class is distributed" in told["t\\_closeness"]


def test_groups_of_nodes() -> None:
    text = write_dictionary(MANIFEST)
    assert rows(text, "group") == [["\\{ALB and 1 more\\}", "2", "\\*"], ["\\*", "3", ""]]
    assert "Groups in" not in write_dictionary({**MANIFEST, "hierarchies": {}})
    n = MOST_NODES + 7
    parents = [*range(n, 2 * n), *[2 * n] * n, 2 * n]
    tree = {"names": [f"n{i}" for i in range(2 * n + 1)], "parents": parents}
    text = write_dictionary({**MANIFEST, "hierarchies": {"town": tree}})
    assert len(rows(text, "group")) == MOST_NODES
    assert "The manifest has 8 more." in text


def test_models_and_figures() -> None:
    text = write_dictionary(MANIFEST)
    models = rows(text, "model")
    assert models[0][0] == "k\\_anonymity k=5"
    assert models[0][1]
    assert models[1][0].startswith("of\\_another")
    losses = {row[0]: row[1] for row in rows(text, "loss")}
    assert losses == {"ncp": "0.25", "sse": "not computable", "other": "1"}
    # A condition of the config leaves out rows, too: of the source as a whole nothing is known.
    told = "\nThe table has 1,234 rows; \\<5 more\nthat the config selects were suppressed.\n"
    assert told in text


def test_a_batch() -> None:
    """Figures of the rows that a run added are called so, and so is an audit by batch."""
    alone = "An independent count over the whole table found that these hold."
    assert alone in write_dictionary(MANIFEST)
    added = {**MANIFEST, "rows_added": 234, "audited": "the whole table"}
    text = write_dictionary(added)
    assert alone in text
    assert "added a batch of 234 rows to it; \\<5 more\nthat the config selects" in text
    assert "The losses\nare those of this batch alone" in text
    by_batch = write_dictionary({**added, "audited": "each batch when it was added"})
    assert "these hold in each batch of rows, when it was added" in by_batch
    assert alone not in by_batch


def test_no_words_of_the_source_code() -> None:
    """Every plug-in's summary is plain text in a cell: no back quotes, no names of code."""
    losses = dict.fromkeys(registry.plugins("metric"), 0.5)
    columns = [
        {"name": name, "role": "quasi_identifier", "recoder": name}
        for name in registry.plugins("recoder")
    ]
    models = [{"model": name, "holds": True} for name in registry.plugins("privacy model")]
    text = write_dictionary(
        {**MANIFEST, "losses": losses, "columns": columns, "verdicts": models, "hierarchies": {}}
    )
    assert "`" not in text
    assert "Tree.loss" not in text
    (nllm,) = [line for line in text.splitlines() if line.startswith("| nllm ")]
    assert nllm.endswith("averaged over rows and nominal columns. |")


def test_of_a_manifest_that_an_older_version_wrote() -> None:
    older = {k: v for k, v in MANIFEST.items() if k not in ("columns", "hierarchies")}
    assert rows(write_dictionary(older), "column") == []
