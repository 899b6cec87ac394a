"""The annexes of a certificate: the points of WP216, EMA and Health Canada, and ISO/IEC 27559, with
what the run has for each."""

from anonlib.auditing.report import THRESHOLD
from anonlib.pages.certificate import (
    NOT_COVERED,
    CertificateLine,
    CertificateSection,
    compare_to_threshold,
    describe_smallest,
    find_mean_chance,
    is_in_memory,
    was_measured,
    was_tested,
)
from anonlib.pages.front import find_chance, list_recipients, was_attacked
from anonlib.pages.meanings import drop_usual, find_kind, spell_plugin
from anonlib.pages.release import describe_released
from anonlib.pages.secrecy import find_k
from anonlib.pages.specs import (
    ATTACKS,
    Record,
    find_measure,
    is_released,
    list_gates,
    list_keys,
    list_models,
    list_verdicts,
    read_findings,
    read_label,
    read_persons,
    read_verdict_spec,
    say_persons,
)
from anonlib.pages.words import count_classes, speak, spell_model, spell_role
from anonlib.text import count_noun, printable

#: Measures of the chance to be found, which EMA's threshold bounds.
CHANCES = ("reidentification", "population")


def list_annexes(record: Record) -> tuple[CertificateSection, ...]:
    """The annexes, each with a line per point."""
    points = _Points(record)
    found = [
        ("Opinion 05/2014 (WP216) of the Article 29 Working Party", "wp216", points.wp216()),
        ("EMA Policy 0070 (EMA/90915/2016) and Health Canada PRCI", "ema", points.ema()),
        ("ISO/IEC 27559:2022", "iso", points.iso()),
    ]
    sections = [
        CertificateSection(
            f"Annex: {title}",
            (),
            tuple(
                CertificateLine(f"{name}-{i}", (point, printable(text)))
                for i, (point, text) in enumerate(lines.items(), start=1)
            ),
        )
        for title, name, lines in found
    ]
    return (*_policy(record), *sections)


def _policy(record: Record) -> tuple[CertificateSection, ...]:
    rules = record.get("policy") or ()
    if not rules:
        return ()
    lines = tuple(
        CertificateLine(
            f"rule-{i}",
            tuple(printable(rule[key]) for key in ("rule", "state", "says", "reason", "source")),
        )
        for i, rule in enumerate(rules, start=1)
    )
    title = printable(f"Annex: policy {record['settings']['policy']}")
    return (CertificateSection(title, ("rule", "state", "it says", "found", "source"), lines),)


def _name_columns(record: Record) -> list[Record]:
    """The models of the config, each with the columns that it protects: the config may leave them
    out, the audit names each in a verdict of its own."""
    own = [drop_usual("privacy model", spec) for spec in list_models(record)]
    bound = [drop_usual("privacy model", read_verdict_spec(v)) for v in list_verdicts(record)]
    named = [each for each in bound if each not in own and "attribute" in each]

    def name(spec: Record) -> Record:
        fit = [each["attribute"] for each in named if _drop(each, "attribute", "within") == spec]
        return {**spec, "attribute": ", ".join(dict.fromkeys(fit))} if fit else spec

    return [name(spec) for spec in own]


def _drop(spec: Record, *names: str) -> Record:
    return {name: value for name, value in spec.items() if name not in names}


def _count_role(role: str, n: int) -> str:
    """`11 quasi-identifiers`, `2 dropped`."""
    name = spell_role(role)
    is_noun = role in ("identifier", "quasi_identifier", "target")
    return count_noun(n, name) if is_noun else f"{n} {name}"


#: Tests without a control, in words: linkage of rows is not the linkability of WP216.
_TESTS = {"linkage": "linkage of rows to the nearest tuples", "disclosure": "disclosure"}


class _Points:
    """What a record has for the points of the annexes."""

    def __init__(self, record: Record):
        self._record = record
        self._columns = record["settings"]["columns"]
        self._words = record.get("accountability", {})
        self._context = record.get("context", {})
        self._measures = read_findings(record)
        self._gates = [gate.text for gate in list_gates(record)]
        self._models = _name_columns(record)
        self._kernel = spell_plugin("kernel", read_label(record["settings"]["kernel"]))

    def wp216(self) -> dict[str, str]:
        """The sections of the opinion."""
        pseudonyms = self._list_pseudonyms()
        diverse = [spell_model(spec) for spec in self._models if spec["type"] != "k_anonymity"]
        return {
            "2.2.1 lawfulness of the process": self._say_part("purpose", "a legal basis"),
            "2.2.2 potential identifiability": "; ".join(
                [f"largest chance to be found: {self._say_chance()}", *self._list_attacks()]
            ),
            "3 singling out": self._say_risk("singling_out", f"k = {find_k(self._record)}"),
            "3 linkability": self._say_risk("linkability", ""),
            "3 inference": self._say_risk("inference", "; ".join(diverse)),
            "3.1.1 noise addition": f"{NOT_COVERED}: no noise is added",
            "3.1.2 permutation": f"{NOT_COVERED}: values stay in their rows",
            "3.1.3 differential privacy": f"{NOT_COVERED}: no bound on what one person changes",
            "3.2.1 aggregation and k-anonymity": f"k = {find_k(self._record)}, counted on the "
            "released table",
            "3.2.2 l-diversity, t-closeness": "; ".join(diverse) or NOT_COVERED,
            "4 pseudonymisation": f"keyed: {pseudonyms}" if pseudonyms else "none is released",
            "5.2 good practices": self._say_practices(),
        }

    def ema(self) -> dict[str, str]:
        """The steps of the process of anonymisation."""
        quasi = [n for n, c in self._columns.items() if c["role"] == "quasi_identifier"]
        return {
            "1 direct identifiers": self._list_identifiers(),
            "1 quasi-identifiers": ", ".join(quasi),
            "2 adversaries and attacks": "; ".join(self._list_attacks()) or NOT_COVERED,
            "3 data utility": self._say_utility(),
            "4 threshold": self._say_threshold(),
            "5 actual risk": self._say_chance(),
            "6 methodology": "; ".join([self._kernel, *map(spell_model, self._models)]),
            "7 documentation": "this certificate, the report and the private record",
            "recoding of subject numbers": self._say_recoding(),
            "dates of participants": NOT_COVERED + " as such: they are columns like others",
        }

    def _list_identifiers(self) -> str:
        """The columns that the config calls identifiers, and what else is not released."""
        own = [n for n, c in self._columns.items() if c["role"] == "identifier"]
        removed = [n for n in own if not is_released(self._columns[n])]
        others = [n for n, c in self._columns.items() if n not in own and not is_released(c)]
        keys = ", ".join(list_keys(self._record))
        parts = [
            f"removed: {', '.join(removed) or 'none'}",
            *([f"as pseudonyms: {self._list_pseudonyms()}"] if len(removed) < len(own) else []),
            *([f"other columns that are removed: {', '.join(others)}"] if others else []),
            *([f"released, with a value of its own in nearly every row: {keys}"] if keys else []),
        ]
        return "; ".join(parts)

    def iso(self) -> dict[str, str]:
        """The clauses."""
        expires = self._context.get("expires")
        access = self._context.get("access")
        rows = count_noun(self._record["audit"]["n_rows"], "row")
        return {
            "6.2.2 security and privacy practices": f"access: {access}" if access else NOT_COVERED,
            "6.2.3 motives and capacity to re-identify": self._say_attackers(),
            "6.3.2 transparency, stakeholders": NOT_COVERED
            if is_in_memory(self._record)
            else f"the public manifest beside the table; engagement is {NOT_COVERED}",
            "6.3.3 privacy-related harms": NOT_COVERED,
            "7.2.2 data principals": say_persons(self._record),
            "7.2.3 data type": "a table of rows",
            "7.2.4 attribute types": ", ".join(
                _count_role(role, n) for role, n in self._count_roles().items()
            ),
            "7.2.5 dataset properties": f"{rows} in {count_classes(self._record['audit'])}",
            "7.3.2 maximum or average risk": self._say_averages(),
            "7.3.3 population or sample": self._say_population(),
            "7.3.4 data privacy models": "; ".join(map(spell_model, self._models)),
            "8.2.2 quantifying identifiability": "counted by the audit on the released rows",
            "8.2.3 adversarial testing": self._say_tests(),
            "8.3.2 reconfiguring the environment": f"access: {access}" if access else NOT_COVERED,
            "8.3.3 transforming the data": self._say_transformation(),
            "8.3.4 re-evaluation": f"until {expires}" if expires else NOT_COVERED,
            "9.2.2 roles and responsibilities": self._words.get("approver") or NOT_COVERED,
            "9.2.3 principles, policies, procedures": self._record["settings"].get("policy")
            or NOT_COVERED,
            "9.2.4 managing a disclosure": self._say_part("recipients", "what binds them"),
            "9.2.5 communicating with stakeholders": NOT_COVERED,
            "9.3.2 monitoring the data environment": f"to be renewed by {expires}"
            if expires
            else NOT_COVERED,
            "9.4 mitigation in case of incident": NOT_COVERED,
        }

    def _say_utility(self) -> str:
        made = [name for name in self._measures if was_measured(self._record, name)]
        kinds = {name: find_kind(name, self._record) for name in made}
        found = [speak(name) for name, is_risk in kinds.items() if is_risk is False]
        unknown = ", ".join(speak(name) for name, is_risk in kinds.items() if is_risk is None)
        doubt = f"whether of utility or of risk is not known: {unknown}"
        return "; ".join(["information loss", *found, *([doubt] if unknown else [])])

    def _say_part(self, word: str, rest: str) -> str:
        """What the config says of a point, which covers a part of it. rest: What it does not."""
        said = list_recipients(self._record) if word == "recipients" else [self._words.get(word)]
        known = "; ".join(filter(None, said))
        return f"{word}: {known}; {rest} is {NOT_COVERED}" if known else NOT_COVERED

    def _say_threshold(self) -> str:
        """The bounds of the chance to be found, and of nothing else."""
        k, policy = find_k(self._record), self._record["settings"].get("policy")
        gates = [g.text for g in list_gates(self._record) if g.measure in CHANCES]
        found = find_chance(self._record)
        compared = compare_to_threshold(None if found is None else found.value)
        parts = [
            f"{THRESHOLD} by EMA and Health Canada: the largest chance is {compared}",
            f"k = {k}, so at most 1/{k}" if k else "",
            f"gates: {', '.join(gates)}" if gates else "",
            f"policy {policy}" if policy else "",
        ]
        return "; ".join(filter(None, parts))

    def _say_chance(self) -> str:
        """The largest chance to be found, beside the threshold."""
        found = find_chance(self._record)
        if found is None:
            return compare_to_threshold(None)
        return describe_smallest(round(1 / found.value), in_persons=not self._counts_rows())

    def _say_averages(self) -> str:
        """Which of the two chances the risks show."""
        if self._counts_rows():
            return "largest and mean chance by class size"
        mean = "" if find_mean_chance(self._record) is None else ", and the mean as measured"
        return f"largest chance by class size, in persons{mean}"

    def _list_attacks(self) -> list[str]:
        """Who may attack, as far as the config says so, and what was tried."""
        attackers, tests = self._say_attackers(), self._say_tests()
        known = [] if attackers == NOT_COVERED else [attackers]
        return [*known, *([] if tests == NOT_COVERED else [f"tried: {tests}, see Risks"])]

    def _say_recoding(self) -> str:
        """What became of identifiers."""
        own = [n for n, c in self._columns.items() if c["role"] == "identifier"]
        removed = ", ".join(n for n in own if not is_released(self._columns[n]))
        pseudonyms = self._list_pseudonyms()
        parts = [f"pseudonyms: {pseudonyms}" if pseudonyms else ""]
        return "; ".join(filter(None, [*parts, removed and f"removed: {removed}"])) or NOT_COVERED

    def _say_transformation(self) -> str:
        quasi = [c for c in self._columns.values() if c["role"] == "quasi_identifier"]
        forms = ", ".join(dict.fromkeys(describe_released(column) for column in quasi))
        return f"classes by {self._kernel}; quasi-identifiers are released as: {forms}"

    def _say_attackers(self) -> str:
        known = self._context.get("may_know")
        return f"attackers may know {', '.join(known)}" if known else NOT_COVERED

    def _say_risk(self, name: str, models: str) -> str:
        """What stands for one of the three risks: models, an attack, or nothing."""
        attacked = was_attacked(self._record, name)
        attack = "attacked, see Risks" if attacked else ""
        not_attacked = "" if attack or not models else "not attacked"
        return "; ".join(filter(None, [models, attack, not_attacked])) or NOT_COVERED

    def _say_tests(self) -> str:
        """The attacks and tests of which the risks show what was found."""
        made = [speak(name) for name in ATTACKS if was_attacked(self._record, name)]
        made += [text for name, text in _TESTS.items() if was_tested(self._record, name)]
        return ", ".join(made) or NOT_COVERED

    def _say_practices(self) -> str:
        gates = f"gates: {'; '.join(self._gates)}" if self._gates else "no gate is set"
        expires = self._context.get("expires")
        return f"{gates}; {f'to be reviewed by {expires}' if expires else 'no review is set'}"

    def _say_population(self) -> str:
        if was_measured(self._record, "population"):
            return "a table that lists the population"
        estimates = (self._measures.get("uniqueness") or {}).get("figures", ())
        known = any(e["name"] == "population_unique" and e["value"] is not None for e in estimates)
        n_persons = find_measure(self._record, "uniqueness").get("population")
        # Without a number, the measure takes the source for the population.
        if known and n_persons is not None:
            return (
                "the table itself, and uniqueness as estimated for a population of "
                f"{count_noun(int(n_persons), 'person')}"
            )
        return "the table itself is taken for the population"

    def _list_pseudonyms(self) -> str:
        return ", ".join(n for n, c in self._columns.items() if c.get("pseudonym"))

    def _count_roles(self) -> dict[str, int]:
        roles = [column["role"] for column in self._columns.values()]
        return {role: roles.count(role) for role in dict.fromkeys(roles)}

    def _counts_rows(self) -> bool:
        return read_persons(self._record).are_rows
