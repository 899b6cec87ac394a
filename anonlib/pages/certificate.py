"""The content of a certificate: what a privacy officer signs, from the private record of a run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps
from math import inf
from typing import Any

from anonlib import registry
from anonlib.auditing.report import THRESHOLD, rate_risk
from anonlib.config.summary import bare
from anonlib.pages.front import (
    describe_control,
    describe_filter,
    describe_use,
    find_chance,
    find_distances,
    is_batch,
    judge_utilities,
    was_attacked,
)
from anonlib.pages.release import count_states, describe_released, find_name
from anonlib.pages.secrecy import find_k, has_few, tells_few, withhold
from anonlib.pages.specs import (
    ATTACKS,
    GROUPS,
    WP216_ATTACKS,
    Record,
    find_group,
    is_k_anonymity,
    is_of_shares,
    is_released,
    is_set,
    list_gates,
    list_keys,
    list_repeating,
    read_findings,
    read_persons,
    say_persons,
)
from anonlib.pages.words import number, show_measurement, speak, spell_role
from anonlib.text import MISSING_TOKENS, count_noun, is_few, printable, tell_apart

#: Said where nothing covers a point.
NOT_COVERED = "not covered"
#: Losses of all quasi-identifiers, the first choice first.
_LOSSES = ("ncp", "sse", "nllm", "classification", "discernibility")
#: Tests without a control: measures, and the figure of each that the risks show.
TESTS = {"linkage": "record", "disclosure": "certain"}
#: The outcome of a release that is a table in memory; and all that a certificate may be of.
IN_MEMORY = "made"
OUTCOMES = ("published", IN_MEMORY)
#: Ends the names of figures of the rows alone that a run has added to a table.
OF_BATCH = " of the batch"
#: Most subjects of an attack that are all shown.
MAX_SUBJECTS = 3
#: Most columns on the first pages; else they have an annex of their own.
MAX_COLUMNS = 12


@dataclass(frozen=True)
class CertificateLine:
    """One line.

    Attributes:
        id: Its name, unique on the certificate.
        cells: Its texts. The first names it.
    """

    id: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class CertificateSection:
    """Lines under a heading.

    Attributes:
        title: The heading.
        heads: The heads of columns; empty for pairs of names and texts.
        lines: The lines.
    """

    title: str
    heads: tuple[str, ...]
    lines: tuple[CertificateLine, ...]


def list_sections(
    record: Record, record_sha256: str
) -> tuple[tuple[CertificateSection, ...], tuple[CertificateSection, ...]]:
    """The sections of the first pages, and the list of columns if it is too long for these.

    Args:
        record: The private record of a run that published.
        record_sha256: SHA-256 of its file, in hex.
    """
    loss = f"loss{OF_BATCH if is_batch(record) else ''}"
    columns = _section(
        "Columns", "column", _columns(record), ("column", "role", "released as", loss)
    )
    wide = len(columns.lines) > MAX_COLUMNS
    roles = [line.cells[1] for line in columns.lines]
    counted = [(role, count_noun(roles.count(role), "column")) for role in dict.fromkeys(roles)]
    main = (
        _section("Who, what for, until when", "use", describe_use(record)),
        _section("Which data", "data", _data(record)),
        _section("Columns, listed in an annex", "role", counted) if wide else columns,
        _section("Verdicts", "verdict", _verdicts(record), _VERDICT_HEADS),
        _section("Risks", "risk", _risks(record), _RISK_HEADS),
        _section(
            "Three utilities, and who fares worst",
            "utility",
            _mark_batch(record, _utilities(record)),
        ),
        _section("What remains, and what this does not protect against", "rest", _rest(record)),
        _section("Digests", "digest", _digests(record, record_sha256)),
    )
    return main, (replace(columns, title="Annex: columns"),) if wide else ()


def is_in_memory(record: Record) -> bool:
    """Whether the release is a table in memory, which nothing was published of."""
    return bool(record["outcome"] == IN_MEMORY)


def _mark_batch(record: Record, rows: "Iterator[Row]") -> "Iterator[Row]":
    """Names figures of measures and losses as those of the batch, if they are."""
    for name, *rest in rows:
        yield f"{name}{OF_BATCH if is_batch(record) else ''}", *rest


def name_release(record: Record) -> str:
    """The release, in words."""
    return "a release in memory" if is_in_memory(record) else f"the release {find_name(record)}"


def _section(
    title: str, name: str, rows: "Iterator[Row] | Sequence[Row]", heads: tuple[str, ...] = ()
) -> CertificateSection:
    """A section. Its lines are named by `name` and their number."""
    lines = [
        CertificateLine(f"{name}-{i}", tuple(printable(cell) for cell in row))
        for i, row in enumerate(rows, start=1)
    ]
    return CertificateSection(title, heads, tuple(lines))


#: The first text of the line that has the version of the table.
OWN_VERSION = "version of the table"
#: The texts of a line.
Row = tuple[str, ...]
_VERDICT_HEADS = ("rule", "found", "required", "verdict")
_RISK_HEADS = ("risk", "attack (attempts)", "control", "excess, interval", "threshold")


def _data(record: Record) -> Iterator[Row]:
    settings, audit = record["settings"], record["audit"]
    source = settings["source"]
    place = source.get("table") or bare(source.get("path") or "").rstrip("/").rpartition("/")[2]
    version = record.get("source_version")
    made = is_in_memory(record)
    named = " ".join(filter(None, [source["format"], place]))
    yield "source", _name_memory(record) if made else named
    yield "version of the source", "not versioned" if version is None else str(version)
    yield "filter", describe_filter(record)
    yield "persons", say_persons(record)
    yield "table", "in memory, for the caller to save" if made else find_name(record)
    yield OWN_VERSION, "not versioned" if made else str(record["table_version"])
    yield "rows", number(audit["n_rows"])
    if is_batch(record):
        yield f"rows{OF_BATCH}", number(record["n_rows_out"])
    most, least = ("at most ", "at least ") if audit.get("by_batch") else ("", "")
    yield "classes", f"{most}{number(audit['n_classes'])}"
    yield "rows of the smallest class", f"{least}{number(min(size for size, _ in audit['sizes']))}"
    suppressed = "rows suppressed", _few(record["n_suppressed"], find_k(record))
    yield from _mark_batch(record, iter([suppressed]))
    if n_nobody := record.get("n_nobody", 0):
        nobody = "rows without a person, which no model counts", _few(n_nobody, find_k(record))
        yield from _mark_batch(record, iter([nobody]))


def _name_memory(record: Record) -> str:
    """The source of a release in memory, which has a name only if the config gives it one."""
    words = record.get("context", {}).get("data")
    named = f"the config calls it: {words}" if words else "context.data can name it"
    return f"a table in memory; {named}"


def _losses(record: Record, which: str) -> Mapping[str, Any]:
    """The losses, as far as the manifest may have them: with those of few suppressed rows among
    them, they would tell of these."""
    return {} if has_few(record) else record.get(which, {})


def _list_figures(record: Record, measure: str) -> list[Record]:
    """The figures of a measure that have a value."""
    figures = (read_findings(record).get(measure) or {}).get("figures", ())
    return [figure for figure in figures if figure["value"] is not None]


def _few(n: int, k: int) -> str:
    return f"fewer than {k}" if is_few(n, k) else number(n)


def _columns(record: Record) -> Iterator[Row]:
    changes = find_distances(record)
    for name, column in record["settings"]["columns"].items():
        told = [f"distribution changed by {number(changes[name].value)}"] if name in changes else []
        for metric, of in _losses(record, "losses_by_column").items():
            if name in of:
                value = number(of[name])
                told.append(
                    f"{value} of its variance lost" if metric == "mse" else f"{metric} {value}"
                )
        loss = "; ".join(told) or "–"
        # They would tell of few suppressed rows, too.
        loss = ("withheld" if "recoder" in column else "–") if has_few(record) else loss
        yield name, spell_role(column["role"]), describe_released(column), loss


def _verdicts(record: Record) -> Iterator[Row]:
    for each in record["audit"]["verdicts"]:
        yield describe_verdict(each)
    yield from _mark_batch(record, _gates(record))
    if rules := record.get("policy"):
        title = record["settings"].get("policy") or "policy"
        kept = all(rule["state"] != "not kept" for rule in rules)
        yield title, count_states(rules), "–", "kept, as far as shown" if kept else "not kept"


def _gates(record: Record) -> Iterator[Row]:
    for gate in list_gates(record):
        found = withhold(record) if tells_few(record, gate.figure) else gate.finding
        yield f"gate {gate.text}", found, "–", "passed" if gate.passed else "not passed"


def describe_verdict(verdict: Record) -> Row:
    """The line of a verdict of the audit."""
    holds = "holds" if verdict["holds"] else "fails"
    return (
        verdict["model"],
        show_measurement(verdict["value"], exact=verdict["exact"]),
        number(verdict["required"]),
        holds,
    )


def _attacks(record: Record) -> Iterator[Row]:
    for name in ATTACKS:
        if name in WP216_ATTACKS or was_attacked(record, name):
            yield from _attack(record, name)
    if control := describe_control(record):
        yield "attacks", f"{control} The excess is (attack - control) / (1 - control)."
    yield from _linkage(record)
    yield from _disclosure(record)


def _risks(record: Record) -> Iterator[Row]:
    yield from _mark_batch(record, _attacks(record))
    audit = record["audit"]
    by_batch = bool(audit.get("by_batch"))
    if read_persons(record).are_rows:
        smallest = min(size for size, _ in audit["sizes"])
        yield from describe_chances(
            smallest, audit["n_classes"], audit["n_rows"], by_batch=by_batch
        )
        return
    largest = find_chance(record)
    exact = all(verdict["exact"] for verdict in audit["verdicts"] if is_k_anonymity(verdict))
    known = "exact" if exact and not by_batch else "at most"
    yield _chance("largest chance", None if largest is None else largest.value, known)
    how = f"measured{OF_BATCH if is_batch(record) else ''}, each person by the smallest class"
    yield _chance("mean chance", find_mean_chance(record), how)


def find_mean_chance(record: Record) -> float | None:
    """The measured mean chance of a person to be found; None if it was not measured, or of rows."""
    figures = _list_figures(record, "reidentification")
    means = [f["value"] for f in figures if f["name"] == "prosecutor_mean" and not f.get("by_rows")]
    return means[0] if means else None


def describe_chances(
    smallest: int, n_classes: int, n_rows: int, *, by_batch: bool
) -> Iterator[Row]:
    """The lines of the chances to be found, where each row is a person.

    Args:
        smallest: Rows of the smallest class.
        n_classes: Classes.
        n_rows: Rows.
        by_batch: Whether the figures of classes are bounds.
    """
    known = "at most" if by_batch else "exact"
    risk = rate_risk([(smallest, 1)], n_classes, n_rows)
    yield _chance("largest chance", risk["prosecutor_max"], known)
    yield _chance("mean chance", risk["marketer"], known)


def describe_smallest(n: int, *, in_persons: bool = False) -> str:
    """The largest chance to be found, beside the threshold. n: Persons of the smallest class."""
    counted = ", in persons" if in_persons else ""
    return f"at most 1/{n} by class size{counted}: {compare_to_threshold(1 / n)}"


def _chance(name: str, value: float | None, known: str) -> Row:
    what = f"{name} to be found by class size"
    if value is None:
        return what, NOT_COVERED, "–", "–", "–"
    return what, tell_apart(value, [THRESHOLD]), "–", known, compare_to_threshold(value)


def compare_to_threshold(value: float | None) -> str:
    """How a chance to be found compares with what EMA and Health Canada ask for."""
    if value is None:
        return f"not known to be within {THRESHOLD}"
    return f"{'above' if value > THRESHOLD else 'within'} {THRESHOLD}"


def _linkage(record: Record) -> Iterator[Row]:
    """The share of sampled rows that are found by the nearest released tuple, if measured; guessing
    stands for a control."""
    found = {each["name"]: each["value"] for each in _list_figures(record, "linkage")}
    if TESTS["linkage"] not in found:
        return
    few = tells_few(record, f"linkage.{TESTS['linkage']}")
    share = withhold(record) if few else number(found[TESTS["linkage"]])
    guess = f"{number(found.get('record_guess'))} by guessing"
    bounds = "; ".join(gate.text for gate in list_gates(record) if gate.measure == "linkage")
    name = "linkage: sampled rows found by the nearest released tuple"
    yield name, share, guess, "share of rows", bounds or "no gate"


def _disclosure(record: Record) -> Iterator[Row]:
    """The share of rows whose class all but tells a sensitive value, by column, if measured."""
    gates = [gate for gate in list_gates(record) if gate.figure == "disclosure.certain"]
    for each in _list_figures(record, "disclosure"):
        if each["name"] == TESTS["disclosure"]:
            bounds = [gate.text for gate in gates if gate.of in (None, each["of"])]
            name = f"rows whose class all but tells {each['of']}"
            yield name, number(each["value"]), "–", "share of rows", "; ".join(bounds) or "no gate"


def was_measured(record: Record, name: str) -> bool:
    """Whether a measure has a figure with a value."""
    return bool(_list_figures(record, name))


def was_tested(record: Record, name: str) -> bool:
    """Whether the risks show what a test of `TESTS` found."""
    return any(each["name"] == TESTS[name] for each in _list_figures(record, name))


def _attack(record: Record, name: str) -> Iterator[Row]:
    """The lines of an attack, first that of the subject whose risk may be the highest. Few attempts
    prove little: what counts is how high the risk may be. Where subjects are many, others are shown
    if their interval excludes 0 or is unknown; the rest are counted."""
    measured = read_findings(record).get(name) or {}
    by_subject: dict[str, dict[str, float | None]] = {}
    for each in measured.get("figures", ()):
        by_subject.setdefault(each["of"], {})[each["name"]] = each["value"]
    known = {of: found for of, found in by_subject.items() if found.get("risk") is not None}
    if not known:
        bounds = [gate.text for gate in list_gates(record) if gate.measure == name]
        yield speak(name), "not attacked", "–", NOT_COVERED, "; ".join(bounds) or "no gate"
    ranked = sorted(known.items(), key=_order_subjects, reverse=True)
    if len(ranked) > MAX_SUBJECTS:
        ranked = [*ranked[:1], *(each for each in ranked[1:] if each[1].get("low") != 0)]
    for of, figures in ranked:
        yield _attack_on(record, name, of, figures)
    if n_others := len(known) - len(ranked):
        others = count_noun(n_others, "other column")
        yield f"{speak(name)} of {others}", "attacked", "–", "each interval begins at 0", "–"


def _attack_on(record: Record, name: str, of: str, figures: Mapping[str, float | None]) -> Row:
    """The line of an attack on a subject. Only a gate on its risk takes the place of a
    threshold."""
    gates = [g for g in list_gates(record) if g.measure == name and g.of in (None, of)]
    judged = any(g.most and g.figure in (f"{name}.high", f"{name}.risk") for g in gates)
    high = figures.get("high")
    compared = f"{'' if high is None else 'upper end '}{compare_to_threshold(high)}"
    bounds = [*([] if gates else ["no gate"]), *(g.text for g in gates)]
    n = figures.get("attempts")
    return (
        f"{speak(name)}{f' of {of}' if of else ''}",
        f"{number(figures.get('attack_rate'))}{'' if n is None else f' ({number(n)})'}",
        number(figures.get("control_rate")),
        f"{number(figures['risk'])}, {number(figures.get('low'))} to {number(high)}",
        "; ".join([*bounds, *([] if judged else [compared])]),
    )


def _order_subjects(item: tuple[str, Mapping[str, float | None]]) -> tuple[float, float, str]:
    """From the best subject of an attack to the worst. One whose interval is unknown is the
    worst."""
    of, figures = item
    high, risk = figures.get("high"), figures.get("risk")
    return inf if high is None else high, risk or 0.0, of


def _utilities(record: Record) -> Iterator[Row]:
    if has_few(record):
        yield "utilities", withhold(record)
    else:
        yield from _kept_utilities(record)
    groups = tuple(_groups(record))
    yield from groups
    if not groups:
        yield "worst subgroup", f"{NOT_COVERED}: the measure fairness was not asked for"


def _kept_utilities(record: Record) -> Iterator[Row]:
    """The three utilities as the report judges them; the loss, which a manifest confirms."""
    for each in judge_utilities(_withhold_gates(record)):
        yield each.title, f"{each.state}: {each.reason}"
    losses = _losses(record, "losses")
    if known := [name for name in _LOSSES if losses.get(name) is not None]:
        yield f"loss {known[0]}", number(losses[known[0]])
    for note in record.get("notes", ()):
        if note.startswith("sse: "):
            yield "lower bound of the loss", note


def _withhold_gates(record: Record) -> Record:
    """The record, without what gates found that would tell of few suppressed rows."""
    evaluation = record.get("evaluation") or {}
    gates = [
        {**gate, "found": withhold(record)} if tells_few(record, judged.figure) else gate
        for gate, judged in zip(evaluation.get("gates", ()), list_gates(record), strict=True)
    ]
    return {**record, "evaluation": {**evaluation, "gates": gates}}


def _groups(record: Record) -> Iterator[Row]:
    """The group that fares worst, of all columns, by what it is worst in."""
    for name, head in GROUPS.items():
        known = [each for each in _list_figures(record, "fairness") if each["name"] == name]
        if known:
            worst = max(known, key=lambda f: (f["value"], f["of"]))
            group = find_group(record, head, worst["of"], worst["value"])
            named = worst["of"] if group is None else f"{group} ({worst['of']})"
            text = f"{number(worst['value'])}, {named}"
            if not worst["value"]:
                text = "0 in every group"
            text += "; by rows: the risk of a person may be larger" * bool(worst.get("by_rows"))
            text = withhold(record) if tells_few(record, f"fairness.{name}") else text
            yield f"worst subgroup: {speak(name)}", text


def _rest(record: Record) -> Iterator[Row]:
    """What a reader must not take for protected, as the config and the audit have it."""
    settings, columns = record["settings"], record["settings"]["columns"]
    by_role = {role: [n for n, c in columns.items() if c["role"] == role] for role in _ROLES}
    guarded = {spec.get("attribute") for spec in record["promise"]["models"]}
    yield "membership", "that a person is in the table is not hidden"
    for name in (*by_role["sensitive"], *by_role["target"]):
        if name not in guarded:
            yield name, "published as it is, and no model protects it: a class may agree on it"
    if shown := [n for n in (*by_role["sensitive"], *by_role["target"]) if n in guarded]:
        yield (
            ", ".join(shown),
            "what a class has in common is told of each person in it, within the models",
        )
    if by_role["insensitive"]:
        state = speak(record["audit"]["insensitive"])
        yield (
            ", ".join(by_role["insensitive"]),
            f"published as they are; rare combinations: {state}",
        )
    for name in list_keys(record):
        yield name, "nearly every row has its own value: whoever knows it finds the row"
    for name in (name for name, c in columns.items() if c.get("pseudonym")):
        yield name, f"pseudonyms: {_say_links(name, record)}"
    if read_persons(record).kind == "declared":
        yield "persons", "that each row is another person is declared, and was not checked"
    for name in list_repeating(record):
        yield name, "repeats: if it stands for a person, classes may have fewer persons than rows"
    if record.get("persons_return"):
        text = "who is in several has a class in each; what these classes tell can be put together"
        yield "batches", text
    if is_in_memory(record):
        yield "earlier releases", "no account is kept: who has another of these persons may compare"
    elif settings["release"]["mode"] != "error":
        yield "earlier releases", "who kept another version of this table may compare the two"
    told = "; attacks took all quasi-identifiers as known"
    known = told if record.get("context", {}).get("may_know") else ""
    yield "attackers", f"who know more than the quasi-identifiers are not counted{known}"
    waiting = [rule for rule in record.get("policy", ()) if rule["state"] == "to confirm"]
    if waiting:
        yield "policy", f"{count_noun(len(waiting), 'rule')} for a person to confirm, in the annex"


def _say_links(name: str, record: Record) -> str:
    """What a column of pseudonyms shows to belong together."""
    if record["settings"].get("pseudonyms") == "stable":
        return "rows of one person are known to belong together, in all releases under this key"
    persons = read_persons(record)
    if persons.kind == "checked" and persons.columns == name and not record.get("persons_return"):
        return "each row has its own"
    return "rows of one person are known to belong together"


_ROLES = ("sensitive", "target", "insensitive")


def _digests(record: Record, record_sha256: str) -> Iterator[Row]:
    yield "run", record["run_id"]
    yield "rows and values of the table", record.get("table_digest") or "not in the record"
    yield "config", record["config_sha256"]
    yield "promise", _sha256_of(record["promise"])
    yield "private record", record_sha256
    yield "software", ", ".join(f"{n} {v}" for n, v in record["software"].items())


def _sha256_of(promise: Record) -> str:
    """As `Promise.digest`: the public manifest has it."""
    return sha256(dumps(promise, sort_keys=True).encode()).hexdigest()


def describe_audit(record: Record) -> dict[str, Any]:
    """What an audit of the table needs, as far as the certificate may have it: lists of columns,
    the models that can be counted without hierarchies, orders and the config's tokens, what the
    verdicts found, and the figures of classes that are bounds. The digest's order of columns and
    their types are left out where the record, of an earlier version, has none."""
    columns = record["settings"]["columns"]
    released = [name for name, column in columns.items() if is_released(column)]
    quasi = [n for n in released if columns[n]["role"] == "quasi_identifier"]
    promise = record["promise"]
    usual = sorted(sha256(text.encode()).hexdigest() for text in MISSING_TOKENS)
    models = []
    for spec in promise["models"]:
        model = registry.build("privacy model", spec)
        plain = not (model.by_hierarchy or model.by_order) and promise["missing_tokens"] == usual
        if plain or model.column is None:
            models.append(spec)
    return {
        "columns": released,
        "quasi_identifiers": quasi,
        "sets": [name for name in quasi if is_set(columns[name])],
        "models": models,
        "persons": "rows" if read_persons(record).are_rows else "unknown",
        "classes": not any(is_of_shares(columns[name]) for name in quasi),
        "verdicts": {
            each["model"]: {"value": each["value"], "exact": each["exact"]}
            for each in record["audit"]["verdicts"]
            if each["value"] is not None
        },
        "bounds": _bounds(record["audit"]) if record["audit"].get("by_batch") else None,
        **({"digest_columns": record["table_columns"]} if record.get("table_columns") else {}),
        **({"digest_types": record["table_types"]} if record.get("table_types") else {}),
    }


def _bounds(audit: Record) -> dict[str, Any]:
    """The figures of an audit that counted classes by batch: the whole table's are no worse."""
    return {"classes": audit["n_classes"], "smallest": min(size for size, _ in audit["sizes"])}
