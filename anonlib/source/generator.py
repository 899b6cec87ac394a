"""A seeded, census-like table of invented people, made in parallel by Spark SQL expressions only.

Row i is a function of (seed, i): every random number is a hash of the seed, the name of its stream
and i, so partitions and the number of rows change nothing. Only shifts, sums, StrictMath's exp and
log, and table look-ups stand between a hash and its value, so the machine changes nothing either.
A conditional distribution is one flat array: a slice of 2^bits values per group, each value as
often as its weight asks, looked up by the leading bits of a hash. Codes go through the steps, and
become text in the last one.

Expressions are SQL text: the thousands of Columns would take seconds to build through py4j.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from pyspark.sql import DataFrame, SparkSession


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: The columns in order; `generate` gives these and no others
COLUMNS = _words(
    "name national_id email birth_date age zip sex marital_status education hours capital_gain "
    "diagnosis income label"
)
#: The only ordinal text column, from low to high
EDUCATION_ORDER = _words(
    "none primary lower-secondary upper-secondary vocational bachelor master doctorate"
)
MARITAL_STATUSES = ("never-married", "married", "divorced", "separated", "widowed")
SEXES = ("female", "male")
LABELS = ("no", "yes")
#: Ages are those of 1 January of this year
REFERENCE_YEAR = 2026
AGES = range(17, 96)
N_ZIPS = 2000
# The last digit of a code's rank is its first, the region; the rest is scattered within the region
#: Zip codes, the most populous first
ZIPS = tuple(
    f"{rank % 10}{rank // 10 * 77 % 200 * 50 + rank // 10 % 47:04d}" for rank in range(N_ZIPS)
)

FIRST_NAMES = _words(
    # 64 given to women
    "Adaeze Aiko Alma Amara Amina Ana Anjali Astrid Ayesha Beatriz Bianca Camila Carmen Chiara "
    "Chloe Clara Dalia Daria Elena Elif Emma Esi Eva Farah Fatima Freya Greta Hana Helena Ingrid "
    "Irina Isabel Ivana Jana Julia Katya Kavya Lakshmi Layla Lena Lucia Mai Maja Marta Mei Mina "
    "Mira Nadia Naomi Noor Nora Olga Paula Petra Priya Rosa Sara Selma Sofia Tala Thandi Yara "
    "Yuki Zofia "
    # 64 given to men
    "Adam Ahmed Akira Alejandro Ali Anders Andrei Antonio Arjun Ben Bilal Boris Bruno Carlos "
    "Chen Daniel David Diego Dmitri Emeka Emil Enzo Erik Felix Filip Finn Gabor Giorgio Hamza "
    "Hans Haruto Hugo Ibrahim Igor Ivan Jakub Jamal Jan Jonas Jorge Kenji Kofi Kwame Lars Leo "
    "Luca Marco Mateo Mehmet Milan Minh Nikhil Oleg Omar Oscar Pablo Piotr Rafael Ravi Samir "
    "Stefan Tomas Viktor Yusuf"
)
LAST_NAMES = _words(
    "Abebe Ahmed Almeida Andersen Balogun Barros Bauer Bianchi Bogdanov Bondarenko Brandt Campos "
    "Castro Chanda Chaudhry Conti Cruz Delgado Demir Diallo Dubois Eriksson Fernandes Ferrari "
    "Fischer Fontaine Garcia Ghosh Gómez Greco Gupta Haddad Hansen Hoang Hoffmann Horvat Ito "
    "Ivanov Jansen Kaplan Khan Kim Kovács Kumar Larsen Laurent Lindqvist López Mancini Mbeki "
    "Mehta Mendes Meyer Moreau Müller Nakamura Ndiaye Nguyen Novák Núñez Okafor Okoye Olsen "
    "Papadakis Patel Petrov Popescu Rahman Ramos Rossi Sato Schäfer Sharma Silva Svensson Tanaka "
    "Torres Wójcik Yilmaz Zhang"
)
MAIL_DOMAINS = ("example.org", "mail.example.org", "post.example.org", "uni.example.org")

# Disease: weight at 17-24, weight at 65 and over, factor for women, factor for men
_DISEASES = {
    "allergy": (16, 5, 1, 1),
    "anemia": (6, 4, 2, 0.5),
    "anxiety": (12, 4, 1.4, 0.7),
    "arthritis": (1, 16, 1.3, 0.8),
    "asthma": (13, 5, 1, 1),
    "back pain": (8, 13, 1, 1.1),
    "breast cancer": (0.1, 3, 1.5, 0),
    "bronchitis": (6, 7, 1, 1),
    "cataract": (0, 6, 1, 1),
    "depression": (10, 6, 1.3, 0.8),
    "diabetes": (2, 15, 0.9, 1.2),
    "eczema": (9, 3, 1, 1),
    "gastritis": (7, 6, 1, 1),
    "gout": (0.2, 4, 0.4, 1.8),
    "heart disease": (0.3, 16, 0.8, 1.4),
    "hypertension": (1, 26, 1, 1.1),
    "influenza": (12, 8, 1, 1),
    "migraine": (9, 2, 1.7, 0.5),
    "prostate cancer": (0, 5, 0, 1.5),
    "stroke": (0.1, 5, 1, 1.1),
}
DIAGNOSES = tuple(_DISEASES)

# What follows is per age band: 17-24, 25-34, 35-49, 50-64, 65 and over
_BAND_STARTS = (25, 35, 50, 65)
_WOMEN = (49, 50, 50, 51, 57)
_MARRIAGES = (
    (90, 8, 1, 1, 0),
    (50, 42, 5, 3, 0),
    (22, 60, 13, 4, 1),
    (11, 63, 17, 4, 5),
    (6, 53, 11, 2, 28),
)
_SCHOOLS = (
    (1, 4, 26, 46, 12, 11, 0, 0),
    (1, 3, 9, 27, 22, 25, 11, 2),
    (1, 4, 11, 28, 24, 20, 10, 2),
    (2, 7, 16, 29, 23, 14, 7, 2),
    (4, 16, 24, 26, 16, 9, 4, 1),
)
_USUAL_HOURS = (24, 40, 42, 41, 18)
# Hours a week that people name, and how readily
_ROUND_HOURS = {
    4: 2, 8: 3, 10: 4, 12: 3, 15: 5, 16: 4, 20: 12, 24: 5, 25: 6, 30: 9, 32: 6, 35: 12, 36: 6,
    37: 5, 38: 9, 40: 80, 42: 5, 45: 14, 48: 6, 50: 16, 55: 6, 60: 9, 65: 2, 70: 3, 80: 2,
}  # fmt: skip
# Shares of missing values; hours are missing more often from 65 on
_MISSING = {"marital_status": 0.02, "education": 0.025, "capital_gain": 0.04, "diagnosis": 0.03}
_MISSING_HOURS = (0.02, 0.08)

# Weights are kept to one in 256, those of the 79 ages finer
_BITS, _AGE_BITS = 8, 11
_ROWS_PER_PARTITION = 250_000


def generate(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """`rows` invented people in the columns COLUMNS; 250,000 in each partition.

    The first rows of a longer table of the same seed are the rows of a shorter one. `national_id`
    and `email` are unique up to 8 * 10^9 rows, `name` up to 25 million. `seed` has 64 bits.
    """
    n_partitions = max(1, -(-rows // _ROWS_PER_PARTITION))
    people = spark.range(0, rows, 1, n_partitions).withColumnRenamed("id", "row")
    for steps in ((_place, _person), (_work, _money), (_identity,)):
        for step in steps:
            people = step(people, seed)
        # To as many partitions as there are: moves no row, but ends a generated method; HotSpot
        # leaves those above 8,000 bytes to its interpreter, which is many times slower
        people = people.coalesce(n_partitions)
    return _spell(people, seed).select(*COLUMNS)


def _place(people: DataFrame, seed: int) -> DataFrame:
    """The rank of the zip code by a shifted Zipf law, the wealth (0, 1, 2) of its area (the first
    two digits), age (younger in the 60 most populous zip codes) and its band."""
    # Inverse of a distribution whose density falls as 1 / (rank + 5); 402.43 > e^6 - 1
    spread = f"(exp(6 * {_uniform(seed, 'zip')}) - 1)"
    people = _with(people, rank=f"int({spread} * {N_ZIPS / 402.43}D)")
    areas = [int(code[:2]) for code in ZIPS]
    levels = [(29 * area * area + 17 * area) % 97 for area in areas]
    wealths = [(level > 35) + (level > 75) for level in levels]
    country = [min(age + 5, 45, max(2 * (97 - age) - 10, (97 - age) / 3)) for age in AGES]
    town = [
        weight * (2 if 20 <= age < 40 else 1) for age, weight in zip(AGES, country, strict=True)
    ]
    ages = _table(AGES, [country, town], _AGE_BITS)
    people = _with(
        people,
        wealth=_nth(wealths, "rank", "int"),
        age=_pick(seed, "age", ages, "int(rank < 60)", _AGE_BITS),
    )
    bands = [sum(age >= start for start in _BAND_STARTS) for age in range(AGES[-1] + 1)]
    return _with(people, band=_nth(bands, "age", "int"))


def _person(people: DataFrame, seed: int) -> DataFrame:
    """Codes of sex, marriage, education and its level (0, 1, 2); the day of birth."""
    sexes = _table((0, 1), [(women, 100 - women) for women in _WOMEN])
    marriages = _table(range(len(MARITAL_STATUSES)), _MARRIAGES)
    day = f"1 + int(365 * {_uniform(seed, 'birth_date')})"
    people = _with(
        people,
        man=_pick(seed, "sex", sexes, "band"),
        marriage=_pick(seed, "marital_status", marriages, "band"),
        school=_pick(seed, "education", _schools(), "band * 3 + wealth"),
        birth_date=f"date_add(make_date({REFERENCE_YEAR - 1} - age, 1, 1), {day})",
    )
    return _with(people, level="int(school > 2) + int(school > 4)")


def _schools() -> list[int]:
    """Education by band and wealth: wealth tilts the weights towards the higher ranks."""
    n = len(EDUCATION_ORDER)
    tilts = ([n + 1 - rank for rank in range(n)], [5] * n, [rank + 2 for rank in range(n)])
    groups = [
        [weight * factor for weight, factor in zip(weights, tilt, strict=True)]
        for weights in _SCHOOLS
        for tilt in tilts
    ]
    return _table(range(n), groups)


def _work(people: DataFrame, seed: int) -> DataFrame:
    """Hours by band and level of education, one in 25 at random, and diagnoses by band and sex."""
    usual = [hours + shift for hours in _USUAL_HOURS for shift in (-3, 0, 4)]
    groups = [
        [weight / (1 + ((h - mean) / 10) ** 2) ** 2 for h, weight in _ROUND_HOURS.items()]
        for mean in usual
    ]
    picked = _pick(seed, "hours", _table(list(_ROUND_HOURS), groups), "band * 3 + level")
    odd = f"1 + int(98 * {_uniform(seed, 'odd hours')})"
    return _with(
        people,
        worked=f"if({_uniform(seed, 'odd')} < 0.04D, {odd}, {picked})",
        illness=_pick(seed, "diagnosis", _illnesses(), "band * 2 + man"),
    )


def _illnesses() -> list[int]:
    bands = range(len(_BAND_STARTS) + 1)
    groups = [
        [
            (young * (bands[-1] - band) + old * band) * factors[man]
            for young, old, *factors in _DISEASES.values()
        ]
        for band in bands
        for man in (0, 1)
    ]
    return _table(range(len(DIAGNOSES)), groups)


def _money(people: DataFrame, seed: int) -> DataFrame:
    """Gains: none for most, else Pareto with exponent 1.25 from 400 on. Incomes: log-normal around
    a level set by education, wealth, age and hours. The label: a noisy rule with interactions of
    age and marriage, hours and education, age and wealth."""
    gainer = f"{_uniform(seed, 'gainer')} < 0.04D + 0.03D * level + 0.03D * wealth"
    tail = f"400 * exp(-0.8D * ln(1 - {_uniform(seed, 'capital_gain')}))"
    people = _with(
        people,
        gain=f"if({gainer}, floor(100 * least({tail}, 9999999.99D)) / 100D, 0D)",
        peak="1 - (age - 52) * (age - 52) / 3600D",
        log_income=f"9.75D + 0.14D * school + 0.12D * wealth + 0.42D * {_bell(seed, 'income')}",
    )
    score = f"""
        0.35D * (school - 3)
        + if(marriage = 1 and age between 30 and 64, 1.1D, 0D)
        + if(worked >= 45 and level > 0, 0.9D, 0D)
        - if(worked < 30, 1.2D, 0D)
        + 0.8D * (wealth - 1) * if(age < 50, 1, -1)
        + if(gain > 1000, 1.5D, 0D)
        + 0.7D * {_bell(seed, "label")}"""
    return _with(
        people,
        income=f"bigint(exp(log_income) * peak * (0.35D + {0.65 / 40}D * worked))",
        chosen=f"int({score} > 0.5D)",
    )


def _identity(people: DataFrame, seed: int) -> DataFrame:
    """Numbers for names and addresses, from bijections of the row number."""
    n_first, n_last = len(FIRST_NAMES) // 2, len(LAST_NAMES)
    low, high = n_first * (n_last - 1), n_last * (n_first - 1)
    people = _with(
        people,
        naming=_bijection(seed, "name", low, high),
        number=_bijection(seed, "national_id", 90_000, 90_000),
        address=_bijection(seed, "email", 90_000, 90_000),
    )
    people = _with(
        people,
        a=f"naming % {n_first}",
        b=f"naming div {n_first} % {n_first - 1}",
        c=f"naming div {n_first * (n_first - 1)} % {n_last}",
        d=f"naming div {n_first * (n_first - 1) * n_last}",
    )
    # A second name or surname differs from the first one
    return _with(
        people,
        first=f"man * {n_first} + a",
        second=f"man * {n_first} + (a + 1 + b) % {n_first}",
        last="c",
        other=f"(c + 1 + d) % {n_last}",
        host=f"shiftrightunsigned({_hash(seed, 'host')}, 62)",
    )


def _spell(people: DataFrame, seed: int) -> DataFrame:
    """The text of all codes, and the missing values."""
    names = [_nth(FIRST_NAMES, "first"), _nth(FIRST_NAMES, "second")]
    names += [_nth(LAST_NAMES, "last"), _nth(LAST_NAMES, "other")]
    user = _nth([name.lower() for name in FIRST_NAMES], "first")
    unknown = f"if(band = 4, {_MISSING_HOURS[1]}D, {_MISSING_HOURS[0]}D)"
    return _with(
        people,
        name=f"concat({names[0]}, ' ', {names[1]}, ' ', {names[2]}, '-', {names[3]})",
        national_id="concat(string(10000 + number div 90000), '-', string(10000 + number % 90000))",
        email=f"concat({user}, '.', string(address), '@', {_nth(MAIL_DOMAINS, 'host')})",
        zip=_nth(ZIPS, "rank"),
        sex=_nth(SEXES, "man"),
        marital_status=_some(seed, "marital_status", _nth(MARITAL_STATUSES, "marriage")),
        education=_some(seed, "education", _nth(EDUCATION_ORDER, "school")),
        hours=f"if({_uniform(seed, 'hours missing')} < {unknown}, null, worked)",
        capital_gain=_some(seed, "capital_gain", "gain"),
        diagnosis=_some(seed, "diagnosis", _nth(DIAGNOSES, "illness")),
        label=_nth(LABELS, "chosen"),
    )


# --- SQL text: random numbers and tables


def _with(people: DataFrame, **columns: str) -> DataFrame:
    return people.selectExpr("*", *(f"{sql} AS {name}" for name, sql in columns.items()))


def _key(seed: int, stream: str) -> str:
    """64 bits of the stream, folded to a literal by the optimizer."""
    return f"xxhash64({seed}L, '{stream}')"


def _hash(seed: int, stream: str) -> str:
    """64 random bits of the row."""
    return f"xxhash64({_key(seed, stream)}, row)"


def _uniform(seed: int, stream: str) -> str:
    """Uniform in [0, 1), 53 bits."""
    return f"(shiftrightunsigned({_hash(seed, stream)}, 11) * {2.0**-53}D)"


def _bell(seed: int, stream: str) -> str:
    """Near normal, mean 0, variance 1, within 3.5: the sum of four uniforms of 16 bits."""
    bits = _hash(seed, stream)
    parts = [f"(shiftrightunsigned({bits}, {shift}) & 65535)" for shift in (0, 16, 32, 48)]
    return f"(({' + '.join(parts)} - 131070) * {3**0.5 / 2**16}D)"


def _bijection(seed: int, stream: str, low: int, high: int) -> str:
    """The row number scrambled within 0 .. low * high - 1: each of its two digits in turn is
    shifted by a hash of the other."""
    digit = f"(row % {low})"
    shift = f"shiftrightunsigned(xxhash64({_key(seed, stream)}, {digit}), 2)"
    upper = f"((row div {low} % {high} + {shift}) % {high})"
    shift = f"shiftrightunsigned(xxhash64({_key(seed, stream)}, {upper}), 2)"
    return f"{upper} * {low} + ({digit} + {shift}) % {low}"


def _table(
    values: Sequence[int], groups: Iterable[Sequence[float]], bits: int = _BITS
) -> list[int]:
    """For every group of weights, 2^bits values in proportion to them."""
    result: list[int] = []
    for weights in groups:
        sums = list(accumulate(weights))
        ends = [round(2**bits * total / sums[-1]) for total in sums]
        for value, start, end in zip(values, [0, *ends[:-1]], ends, strict=True):
            result += [value] * (end - start)
    return result


def _nth(values: Sequence[object], index: str, kind: str = "string") -> str:
    """The value of that index, from 0; the array is folded to a literal by the optimizer."""
    text = ",".join(str(value) for value in values)
    return f"cast(split('{text}', ',') AS array<{kind}>)[{index}]"


def _pick(seed: int, stream: str, table: Sequence[int], group: str, bits: int = _BITS) -> str:
    """A value at random from the group's slice of the table."""
    slot = f"shiftrightunsigned({_hash(seed, stream)}, {64 - bits})"
    return _nth(table, f"({group}) * {2**bits} + {slot}", "int")


def _some(seed: int, column: str, value: str) -> str:
    """The value, or null for the column's share of rows."""
    return f"if({_uniform(seed, f'{column} missing')} < {_MISSING[column]}D, null, {value})"
