"""The data dictionary of a release, for those who get the table: what its columns, nodes, missing
values and figures mean. It says nothing that the manifest does not have."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anonlib import registry
from anonlib.auditing.report import split_label
from anonlib.config.listing import take_first_paragraph
from anonlib.run.manifest_persons import WHOLE, read_persons_return
from anonlib.text import printable

#: The most nodes of a column that are explained. The manifest has all.
MOST_NODES = 200
#: By role of a released column: what that means to a reader.
_ROLES = {
    "quasi_identifier": "coarsened: equal in all rows of a class",
    "sensitive": "as in the source; the models below protect it",
    "target": "as in the source; what models are to predict",
    "insensitive": "as in the source",
    "identifier": "a pseudonym: a keyed hash, which nobody can compute without the key",
}
#: By model: what its number means to a reader.
_LETTERS = {
    "k_anonymity": "k: who looks for a person finds k persons or more that fit equally well.",
    "l_diversity": "l: who knows the class of a person has l values or more to choose from.",
    "t_closeness": "t: 0 if each class is distributed as the whole table, and tells no more of its "
    "persons than the table does; up to 1 the more it differs.",
}
#: By form of a released column: how to read it.
_FORMS = {
    "set": "A null within it stands for missing values.",
    "node": "It is a value, or a group of values.",
    "shares": "By place in the hierarchy's list of leaves: the share of the class's rows.",
    "nothing": "The same text is in every row.",
}


def write_dictionary(manifest: Mapping[str, Any]) -> str:
    """The data dictionary as Markdown. manifest: the content of the public manifest."""
    columns = manifest.get("columns", ())
    return "\n".join(
        [
            "# Data dictionary",
            "",
            "Rows that agree in all coarsened columns are a class. What such a column says holds",
            "of the class, not of each of its rows.",
            "",
            *_table(("column", "what it is", "how it is released"), _describe_columns(manifest)),
            "",
            "## Missing values",
            "",
            "A null was missing in the source, or was coarsened to nothing: the recoder of its",
            "column, above, says when.",
            "",
            *_describe_missing(columns),
            *_describe_nodes(manifest.get("hierarchies", {})),
            "## Privacy models",
            "",
            _describe_audit(manifest),
            *_describe_persons(manifest),
            "",
            *_table(("model", "what it demands"), _describe_models(manifest["verdicts"])),
            "",
            "## Figures",
            "",
            _count_rows(manifest),
            "",
            *_describe_cells(manifest),
            *_table(("loss", "value", "what it is"), _describe_losses(manifest["losses"])),
            "",
        ]
    )


def _describe_missing(columns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The texts that count as missing, by column; empty if there are none."""
    rows = []
    for column in columns:
        if missing := column.get("missing"):
            texts = [f'"{text}"' if text else "an empty text" for text in missing["texts"]]
            n = missing["n_others"]
            more = [f"{n} more that the config names"] if n else []
            rows.append((column["name"], ", ".join([*texts, *more])))
    if rows:
        yield "These texts count as missing, too, where the source has them. A column that is as in"
        yield "the source keeps them, unless it is read as numbers or dates: then it has nulls."
        yield ""
        yield from _table(("column", "texts that mean a missing value"), rows)
        yield ""


def _describe_audit(manifest: Mapping[str, Any]) -> str:
    if manifest.get("audited", WHOLE) == WHOLE:
        return "An independent count over the whole table found that these hold."
    return (
        "An independent count found that these hold in each batch of rows, when it was added. So "
        "they\nhold in the whole table: its classes are classes of a batch, or unions of such."
    )


def _describe_persons(manifest: Mapping[str, Any]) -> Iterator[str]:
    """A line that follows on what was audited, if persons may be in several batches."""
    if read_persons_return(manifest):
        yield "Persons may be in several batches: models count those of each batch."


def _count_rows(manifest: Mapping[str, Any]) -> str:
    n, suppressed = f"{manifest['rows_released']:,}", _cell(manifest["rows_suppressed"])
    # What a condition of the config left out is in no manifest.
    rest = "more\nthat the config selects were suppressed."
    if "rows_added" not in manifest:
        return f"The table has {n} rows; {suppressed} {rest}"
    added = f"{manifest['rows_added']:,}"
    return (
        f"The table has {n} rows. The last run added a batch of {added} rows to it; {suppressed} "
        f"{rest} The losses\nare those of this batch alone."
    )


def _describe_cells(manifest: Mapping[str, Any]) -> Iterator[str]:
    """What losses count, which is not what the audit counts: a table does not show its cells."""
    if not manifest["losses"]:
        return
    yield "Losses count cells: a cell has rows that were coarsened together. Cells with the same"
    yield "values are one class of the table, so that classes may be larger, and fewer."
    if manifest.get("suppress") == "costliest":
        yield "Losses were counted before the costliest cells were left out, as far as the config"
        yield "allows it: they have the rows of these cells as if they were released."
    yield ""


def _describe_columns(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    trees = manifest.get("hierarchies", {})
    for column in manifest.get("columns", ()):
        name, what, technique = _describe_column(column)
        listed = column.get("form") == "node" and column["name"] in trees
        yield name, what, f"{technique} The groups are below." if listed else technique


def _describe_column(column: Mapping[str, Any]) -> tuple[str, str, str]:
    summary = _explain_recoder(column)
    plain = "pseudonym" if column["role"] == "identifier" else "as it is"
    technique = ": ".join(word for word in (column.get("recoder", plain), summary) if word)
    form = _FORMS.get(column.get("form", ""), "")
    return column["name"], _ROLES[column["role"]], f"{technique} {form}".strip()


def _explain_recoder(column: Mapping[str, Any]) -> str:
    """What the released values of a column are, by its recoder and what the manifest has of that
    one's parameters; empty if it is not known here."""
    plugin = registry.plugins("recoder").get(column.get("recoder", ""))
    if plugin is None:
        return ""
    told = column.get("parameters", {}).items()
    own = {name: value for name, value in told if name in plugin.model_fields}
    recoder = registry.build("recoder", {**own, "type": plugin.type})
    return _say_class(recoder.explain()) or _explain(plugin)


def _describe_nodes(hierarchies: Mapping[str, Any]) -> Iterator[str]:
    """Groups of values that the release names, by column. A group's members are no more public
    than its name: their number is."""
    for column, tree in hierarchies.items():
        names, parents = tree["names"], tree["parents"]
        n_values = _count_leaves(parents)
        inner = {*parents}
        groups = [node for node, name in enumerate(names) if name is not None and node in inner]
        rows = [
            (
                names[node],
                f"{n_values[node]:,}",
                "" if parents[node] == node else names[parents[node]],
            )
            for node in groups[:MOST_NODES]
        ]
        yield from (f"## Groups in {_cell(column)}", "")
        yield "Values that are not listed here stand for themselves. `{a and 4 more}` names a group"
        yield "of five values by its first one."
        yield ""
        yield from _table(("group", "values in it", "is a part of"), rows)
        if len(groups) > MOST_NODES:
            yield from ("", f"The manifest has {len(groups) - MOST_NODES:,} more.")
        yield ""


def _count_leaves(parents: list[int]) -> list[int]:
    """By node: the leaves at or below it. A node comes before its parent; the root is its own."""
    inner = {*parents}
    n_leaves = [int(node not in inner) for node in range(len(parents))]
    for node, parent in enumerate(parents):
        if parent != node:
            n_leaves[parent] += n_leaves[node]
    return n_leaves


def _describe_models(verdicts: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    known = registry.plugins("privacy model")
    for verdict in verdicts:
        plugin = known.get(re.split(r"[^a-z_]", split_label(verdict["model"])[1])[0])
        letter = _LETTERS.get("" if plugin is None else plugin.type, "")
        yield verdict["model"], "" if plugin is None else f"{_explain(plugin)} {letter}".strip()


def _describe_losses(losses: Mapping[str, float | None]) -> Iterator[tuple[str, str, str]]:
    known = registry.plugins("metric")
    for name, value in losses.items():
        text = "not computable" if value is None else f"{value:g}"
        yield name, text, _summarize(known[name]) if name in known else ""


def _explain(plugin: type[registry.Plugin]) -> str:
    """What a plug-in is, in words, of the classes that readers see."""
    return _say_class(_summarize(plugin))


def _summarize(plugin: type[registry.Plugin]) -> str:
    """What a plug-in is, in words: without names of the source in brackets, and without marks."""
    return re.sub(r" \(`[A-Z]\w*\.\w+`\)", "", take_first_paragraph(plugin)).replace("`", "")


def _say_class(text: str) -> str:
    """Where all rows of a cell get one value, or hold one model, so do the rows of a class, which
    are those of one cell or of several."""
    return re.sub(r"\b([Cc])ell(s?)\b", lambda m: f"{m[1]}lass{'es' if m[2] else ''}", text)


def _table(head: tuple[str, ...], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """A text within a table of Markdown: on one line, and only text."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", printable(text))
