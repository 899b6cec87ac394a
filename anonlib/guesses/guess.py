"""Guesses what a column is, from its name, its type and its counts.

Guesses err on the side of protection: a column that fits no rule becomes a quasi-identifier, never
insensitive.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from anonlib.identifiers.column_names import name_words, translate_name
from anonlib.identifiers.direct import LOOSE_SHARE, PERSONAL_KINDS, is_sure
from anonlib.table.layouts import DOUBTS
from anonlib.table.schema import Role, Scale
from anonlib.text import count_noun

#: A column of numbers with at most this many distinct values is nominal.
FEW = 12
#: Fewer values than this do not show that a column is unique.
MIN_UNIQUE = 20
#: An identifier with fewer values does not stand for persons: 20 are two classes of the k = 10 that
#: a draft has.
MIN_PERSONS = 20
#: Why a column is taken for an identifier by its name.
NAMED = "named like an identifier"
#: The share of distinct values above which a column's values hardly repeat.
NEARLY_UNIQUE = 0.9
#: The share of distinct values from which on an identifier's values may stand for persons.
MANY_SHARE = 0.5

_TIMES = ("date", "timestamp", "timestamp_ntz")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_IDENTIFIER = _words(
    "id ids uuid guid ssn nin nino pesel bsn cpf curp aadhaar passport email mail phone telephone "
    "tel mobile fax iban name surname forename firstname lastname fullname nickname username login "
    "address street url uri ip imei mrn licenseplate"
)
#: Those of what several persons may well have in common.
_IN_COMMON = _words(
    "name surname forename firstname lastname fullname nickname phone telephone tel mobile fax "
    "address street ip"
)
#: Those that say nothing of persons beside the name of a thing or place.
_GENERIC = _words("id ids name")
_THINGS = _words(
    "product station ward department file drug medication city county country region district "
    "shop store brand company stop route line article item category class"
)
#: Last words of names of what identifiers have, which are none.
_TRAITS = _words("type version count status")
#: Words for numbers of persons and their cars that mean days, wine or a course in other languages.
_AMBIGUOUS = _words("dni nif nip vin matricula")
#: The fewest values by which a name alone makes a column an identifier: fewer persons could not
#: fill a class of five.
_FEWEST = 5
#: Words of other languages that mean one of these may be numbers, too: French `nombre`, how many.
_TEXTS_ONLY = _words("name address")
_PERSON = _words(
    "patient person customer client member employee user student subject citizen national account "
    "card policy holder owner household respondent borrower participant pupil learner applicant "
    "claimant tenant voter taxpayer donor guest passenger driver resident worker staff"
)
_NUMBER = _words("id no nr num number key ref")
#: What stands for a person, too, beside a word for one.
_KEYS = _NUMBER | _words("token hash pseudonym code")
#: What stands for a person by itself: numbers that states and hospitals give, or `person`, by
#: `anonlib.identifiers.column_names`.
_PERSON_KEYS = _words("ssn nin nino pesel bsn cpf curp aadhaar mrn nhs uid oneperson")
#: Confidential by law (GDPR, articles 9 and 10), or to most people. Race is not among them: others
#: see it, and a quasi-identifier hides it in classes; a sensitive column is published as it is.
_SENSITIVE = _words(
    "diagnosis diagnoses disease illness disorder icd icd9 icd10 symptom symptoms medication drug "
    "treatment therapy hiv disability disabled pregnancy pregnant genotype genotypes genome "
    "genetic genetics religion religious faith belief political politics ethnicity ethnic "
    "orientation sexuality tradeunion conviction criminal offence offense income salary wage wages "
    "earnings debt allergy allergies cancer tumor tumour depression suicide addiction bmi caste"
)
#: What is treated, and no person.
_WATERS = _words("water wastewater sewage plant eau agua acqua wasser")
#: Names that Spark and pandas give to columns without one.
_UNNAMED = re.compile(r"_c\d+|Unnamed: \d+|__index_level_\d+__|index")
_POSTAL = _words("zip zipcode postcode postal plz")
#: What numbers that are codes are named: means of them say nothing.
_CODES = _POSTAL | {"code", "id", "ids"}


@dataclass(frozen=True)
class ColumnProfile:
    """Counts and types of a column, without values.

    Attributes:
        name: The name of the column.
        type: Its Spark type.
        n_present: Present values in the sample; 0 if they were not looked at.
        n_distinct: Distinct values in the sample; 0 if they were not looked at.
        unique: Whether every row of the whole table has a different value.
        parses_as: The Spark type that all texts of the column can be read as; None if there is
            none.
        layout: How the texts write values of that type (`anonlib.table.layouts`); None for the way
            of computers.
        kind: What most of its texts are, if they name or reach a person
            (`anonlib.identifiers.direct`).
        tokens: By text of TEXT_TOKENS and NUMBER_TOKENS that may stand for a missing value: the
            rows of the sample. They count as missing here.
        far: Numbers, or days, that may stand for a missing value since no others are near them, as
            texts. They do not count as missing here.
        doubt: What its values look like, but are not read as (`anonlib.table.layouts`).
        part: What of a date in another column it is, such as `the hour of visit`.
        is_seen: Whether its values were looked at.
    """

    name: str
    type: str
    n_present: int
    n_distinct: int
    unique: bool = False
    parses_as: str | None = None
    layout: str | None = None
    kind: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    far: tuple[str, ...] = ()
    doubt: str | None = None
    part: str | None = None
    is_seen: bool = True

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "ColumnProfile":
        found = json.loads(text)
        return ColumnProfile(**{**found, "far": tuple(found["far"])})

    @property
    def read_as(self) -> str:
        """The Spark type that the column is read as."""
        return self.parses_as or self.type

    @property
    def may_be_continuous(self) -> bool:
        kind = self.read_as
        return kind in (*_INTEGERS, *_TIMES, "float", "double") or kind.startswith("decimal")

    @property
    def is_text(self) -> bool:
        return self.read_as == "string" or self.read_as.startswith(("char(", "varchar("))

    @property
    def is_whole(self) -> bool:
        return self.read_as in _INTEGERS

    @property
    def is_time(self) -> bool:
        return self.read_as in _TIMES

    @property
    def distinct_share(self) -> float:
        """Distinct values, as a share of the present ones."""
        return self.n_distinct / max(1, self.n_present)

    @property
    def is_nearly_unique(self) -> bool:
        return self.n_present >= MIN_UNIQUE and self.distinct_share > NEARLY_UNIQUE

    @property
    def repeats(self) -> bool:
        """Whether several rows have a value, and there are enough values to stand for persons."""
        enough = self.n_distinct >= MIN_PERSONS
        return enough and not self.unique and self.distinct_share < 0.999

    @property
    def far_question(self) -> str:
        """What is asked about `far`, and what to do."""
        meaning = "missing, or no end" if self.is_time else "missing"
        return f"does {' or '.join(self.far)} mean {meaning}? Then make it null"

    @property
    def words(self) -> frozenset[str]:
        """The words of its name, and the English ones that they mean in other languages."""
        meant = translate_name(self.name) - (_TEXTS_ONLY if self.may_be_continuous else frozenset())
        return meant.union(name_words(self.name))

    @property
    def is_postal(self) -> bool:
        """Whether it is named as codes of postal areas are."""
        return bool(_POSTAL & self.words)

    @property
    def names_person(self) -> bool:
        """Whether each of its values stands for a person, by its name or by what its texts are."""
        return self.is_named_for_persons or _direct_kind(self) in PERSONAL_KINDS

    @property
    def may_stand_for_persons(self) -> bool:
        """Whether the values of a column that is an identifier are taken for persons: by its name,
        if that is of persons, or of a number and of no thing or place; or since they are many, and
        not what persons have in common."""
        is_number = self.is_numbered and not _THINGS & self.words
        is_likely = is_number or (self.distinct_share >= MANY_SHARE and not _IN_COMMON & self.words)
        return self.names_person or (is_likely and self.n_distinct >= MIN_PERSONS)

    @property
    def is_named_like_identifier(self) -> bool:
        """Whether its name is that of an identifier, whatever its values are."""
        own = name_words(self.name)
        words = self.words | {"".join(own)}
        known = _IDENTIFIER & words
        if len(own) == 2 and _THINGS & words:  # a nurse of a station has a name, too
            known -= _GENERIC
        if known and own[-1] not in _TRAITS:
            return True
        is_number = not _AMBIGUOUS.isdisjoint(own) and not (_PERSON | _NUMBER).isdisjoint(words)
        return is_number or self.is_named_for_persons

    @property
    def may_identify(self) -> bool:
        """Whether its values are enough to be those of persons: names mean other things, too."""
        return self.n_distinct >= _FEWEST or self.distinct_share > LOOSE_SHARE

    @property
    def is_named_for_persons(self) -> bool:
        """Whether its name says that each of its values stands for a person."""
        return _is_person_number(self.words)

    @property
    def is_numbered(self) -> bool:
        """Whether its name is that of a number or a key."""
        return bool(_NUMBER & self.words)


@dataclass(frozen=True)
class Guess:
    """The probable role and scale of a column, and why."""

    role: Role
    scale: Scale | None
    why: str


def guess_role(column: ColumnProfile) -> Guess:
    """Guesses the role and scale of a column by itself. The target, and copies of other columns,
    are guessed by `draft`, since this needs all columns."""
    return (
        _unfit(column)
        or _idle(column)
        or _identifier(column)
        or _sensitive(column)
        or guess_scale(column)
    )


def guess_scale(column: ColumnProfile) -> Guess:
    """Guesses the scale of a quasi-identifier by its type, its name and its counts."""
    guess = _guess_scale(column)
    if not column.is_named_like_identifier or column.may_identify or not column.n_present:
        return guess
    n, n_rows = count_noun(column.n_distinct, "value"), count_noun(column.n_present, "row")
    return replace(guess, why=f"{NAMED}, but {n} in {n_rows}")


def _guess_scale(column: ColumnProfile) -> Guess:
    if column.is_time:
        return Guess(Role.QUASI_IDENTIFIER, Scale.CONTINUOUS, "dates")
    if column.may_be_continuous and _CODES & column.words:
        return Guess(Role.QUASI_IDENTIFIER, Scale.NOMINAL, "named like a code")
    if column.may_be_continuous and column.n_distinct > FEW:
        return Guess(Role.QUASI_IDENTIFIER, Scale.CONTINUOUS, "numbers, many of them")
    if column.may_be_continuous:
        return Guess(Role.QUASI_IDENTIFIER, Scale.NOMINAL, "few numbers")
    return Guess(Role.QUASI_IDENTIFIER, Scale.NOMINAL, "categories")


def ask_of_doubt(column: ColumnProfile, guess: Guess) -> str:
    """What the values of a quasi-identifier look like that they are not read as, and what to do if
    they are that; empty for nothing."""
    if column.doubt is None or guess.role is not Role.QUASI_IDENTIFIER:
        return ""
    if column.may_be_continuous and guess.scale is not Scale.CONTINUOUS:
        return ""
    return f"{column.doubt}; if they are that, {DOUBTS[column.doubt][1]}"


def _unfit(column: ColumnProfile) -> Guess | None:
    if column.may_be_continuous or column.is_text or column.type == "boolean":
        return None
    return Guess(Role.DROP, None, "a type that can't be anonymized")


def _identifier(column: ColumnProfile) -> Guess | None:
    if column.is_named_like_identifier and column.may_identify:
        return Guess(Role.IDENTIFIER, None, NAMED)
    if (kind := _direct_kind(column)) is not None:
        return Guess(Role.IDENTIFIER, None, f"looks like {kind}")
    if column.is_postal:
        return None
    enough = column.n_present >= MIN_UNIQUE
    if column.is_text and enough and column.n_distinct == column.n_present:
        return Guess(Role.IDENTIFIER, None, "unique text")
    if column.is_text and column.n_distinct > 1_000 and column.distinct_share > 0.5:
        return Guess(Role.IDENTIFIER, None, "text that hardly repeats")
    if column.is_whole and column.unique:
        if _UNNAMED.fullmatch(column.name):
            return Guess(Role.IDENTIFIER, None, "no name, and in every row a number of its own")
        if column.n_present >= (MIN_UNIQUE if column.is_numbered else 1_000):
            return Guess(Role.IDENTIFIER, None, "every row has a whole number of its own")
    return None


def _is_person_number(words: frozenset[str]) -> bool:
    return bool(_PERSON_KEYS & words) or (bool(_PERSON & words) and bool(_KEYS & words))


def _direct_kind(column: ColumnProfile) -> str | None:
    """What the texts of the column are, if that is sure enough."""
    kind = column.kind
    is_number = column.may_be_continuous and column.parses_as is None
    if kind is None:
        return None
    sizes = (column.n_distinct, column.n_present)
    return kind if is_sure(kind, *sizes, words=column.words, is_number=is_number) else None


def _idle(column: ColumnProfile) -> Guess | None:
    """Columns that say nothing, or nothing of their own."""
    if not column.n_present:
        return Guess(Role.DROP, None, "always missing")
    if column.n_distinct == 1 and column.n_present >= MIN_UNIQUE:
        return Guess(Role.DROP, None, "constant where present")
    if column.part is not None:
        return Guess(Role.DROP, None, f"is {column.part}")
    return None


def _sensitive(column: ColumnProfile) -> Guess | None:
    found = _SENSITIVE & column.words
    if _WATERS & column.words:
        found -= {"treatment"}
    if found and column.n_distinct >= 2:
        return Guess(Role.SENSITIVE, None, "named like something confidential")
    return None
