"""Numbers of accounts, cards and persons, by the check digits that they have.

They are sought within texts. What has their form is told from what passes their check: of other
numbers of one digit to check, one in ten passes by chance.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle

#: Where a number may begin: a word with a digit, or the letter of a NIE. No letter or digit comes
#: before it or after it, nor more digits beyond a mark; but a year may, with a hyphen between.
_YEAR = r"(?:19|20)\d\d"
_START = re.compile(
    rf"(?<![^\W_])(?:(?<!\d[-.])|(?<=\b{_YEAR}-))(?<!\d,)"
    r"(?:[A-Za-z]{0,15}\d|[X-Zx-z](?=[ -]\d{7}))",
    re.ASCII,
)
_END = rf"(?![^\W_])(?![.,]\d)(?!-(?!{_YEAR}\b)\d)"
#: Days and months of numbers that begin with a date of birth.
_DD, _MM = r"(?:0[1-9]|[12]\d|3[01])", r"(?:0[1-9]|1[0-2])"


@dataclass(frozen=True)
class CheckedForm:
    """Numbers of one kind.

    Attributes:
        form: Their letters, digits and marks.
        plain: What their letters and digits alone must look like to pass, such as a date; what has
            the form need not.
        check: Whether letters and digits of the form, in capitals, pass.
        whole: Whether they count only as whole texts, since their form is that of many others.
    """

    form: re.Pattern[str]
    plain: re.Pattern[str]
    check: Callable[[str], bool]
    whole: bool = False

    def look(self, text: str, start: int) -> tuple[str, bool] | None:
        """What has the form at a place of a text, by its letters and digits alone, and whether it
        passes; None if nothing has."""
        match = self.form.match(text, start)
        if match is None or (self.whole and match.group() != text):
            return None
        plain = re.sub(r"[^0-9A-Z]", "", match.group().upper())
        return plain, bool(self.plain.fullmatch(plain)) and self.check(plain)


def _form(
    form: str, check: Callable[[str], bool], plain: str = ".*", whole: bool = False
) -> CheckedForm:
    pattern = re.compile(f"(?:{form}){_END}", re.ASCII | re.IGNORECASE)
    return CheckedForm(pattern, re.compile(plain, re.ASCII), check, whole)


def _weigh(digits: str, weights: tuple[int, ...]) -> int:
    """The sum of digits times weights, which begin again when they are used up."""
    return sum(int(digit) * weight for digit, weight in zip(digits, cycle(weights), strict=False))


def _fits(weights: tuple[int, ...], modulus: int, digits: str) -> bool:
    """Whether the weighted sum of all digits is a multiple of the modulus, and not all are 0."""
    return bool(digits.strip("0")) and _weigh(digits, weights) % modulus == 0


def passes_luhn(digits: str) -> bool:
    """Every second digit from the right counts twice (ISO/IEC 7812-1, annex B)."""
    doubled = "".join(str(int(d) * (1 + i % 2)) for i, d in enumerate(reversed(digits)))
    return _fits((1,), 10, doubled)


#: By country: the length of an IBAN (SWIFT, IBAN Registry, release 101).
_IBAN_LENGTHS = re.findall(
    "([A-Z]{2})([0-9]{2})",
    (
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 "
        "DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 "
        "HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 "
        "MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 "
        "RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 "
        "VA22 VG24 XK20 YE30"
    ),
)


def _is_iban(text: str) -> bool:
    """ISO 13616-1: the number that its letters and digits spell is 1 modulo 97."""
    return int("".join(str(int(c, 36)) for c in text[4:] + text[:4])) % 97 == 1


_IBANS = {
    country: _form(rf"{country}\d\d(?:[ .-]?[A-Z0-9]){{{int(length) - 4}}}", _is_iban)
    for country, length in _IBAN_LENGTHS
}
#: ISO/IEC 7812-1: 13 to 19 digits, in groups or not, of which the first tells the industry. Numbers
#: of companies, devices and payments have the same check digit: cards begin as those of Visa,
#: Mastercard, Maestro, UnionPay, American Express, Diners Club and JCB do, and have their lengths.
_CARD = _form(
    r"[2-6](?:[ .-]?\d){12,18}",
    passes_luhn,
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|(?:5[06-8]|6\d)\d{14,17}"
    r"|3[47]\d{13}|(?:30[0-5]|3[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}",
)


def _is_pesel(digits: str) -> bool:
    return _fits((1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10, digits)


def _is_tax_number(digits: str) -> bool:
    """ISO 7064, MOD 11,10; of the first ten digits one is there twice or three times."""
    counts = sorted(digits[:10].count(digit) for digit in set(digits[:10]))
    rest = 10
    for digit in digits[:10]:
        rest = (int(digit) + rest) % 10 or 10
        rest = rest * 2 % 11
    return counts[-2:] in ([1, 2], [1, 3]) and (11 - rest) % 10 == int(digits[10])


def _is_belgian(digits: str) -> bool:
    """Who is born since 2000 has a 2 put before the number."""
    key = 97 - int(digits[9:])
    return key in (int(digits[:9]) % 97, int("2" + digits[:9]) % 97)


def _is_nir(text: str) -> bool:
    """Corsica's letters count as numbers of departments."""
    number = text[:13].replace("2A", "19").replace("2B", "18")
    return number.isdigit() and 97 - int(number) % 97 == int(text[13:])


def _is_dni(text: str) -> bool:
    """The letter tells the number modulo 23; X, Y and Z before the numbers of foreigners are 0 to
    2."""
    digits = text[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23] == text[-1]


#: What a letter of a codice fiscale counts at odd places; a digit counts as the letter of its rank.
_ODD = (
    1,
    0,
    5,
    7,
    9,
    13,
    15,
    17,
    19,
    21,
    2,
    4,
    18,
    20,
    11,
    3,
    6,
    8,
    12,
    14,
    16,
    10,
    22,
    25,
    24,
    23,
)


def _is_fiscal_code(text: str) -> bool:
    ranks = [int(c) if c.isdigit() else ord(c) - ord("A") for c in text]
    total = sum(_ODD[rank] for rank in ranks[:15:2]) + sum(ranks[1:15:2])
    return total % 26 == ranks[15]


def _is_finnish(text: str) -> bool:
    """The century's mark is not there any more."""
    digits = text[:6] + text[-4:-1]
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(digits) % 31] == text[-1]


def _is_norwegian(digits: str) -> bool:
    first = _fits((3, 7, 6, 1, 8, 9, 4, 5, 2, 1), 11, digits[:10])
    return first and _fits((5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1), 11, digits)


def _is_austrian(digits: str) -> bool:
    return _weigh(digits, (3, 7, 9, 0, 5, 8, 4, 2, 1, 6)) % 11 == int(digits[3])


def _is_nhs(digits: str) -> bool:
    return _fits((10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11, digits)


def _is_brazilian(digits: str) -> bool:
    """Each of the last two digits is 11 minus what the ones before it give, or 0."""
    if len(set(digits)) == 1:
        return False
    return all(
        (-_weigh(digits[:n], tuple(range(n + 1, 1, -1))) % 11) % 10 == int(digits[n])
        for n in (9, 10)
    )


#: Numbers that states give to persons, with who describes their check digits.
_NATIONAL_NUMBERS = (
    # Poland: Ministry of Digital Affairs, gov.pl, "What is a PESEL number"
    _form(r"\d{6}[ -]?\d{5}", _is_pesel, rf"\d\d[02468][1-9]{_DD}.*|\d\d[13579][0-2]{_DD}.*"),
    # Germany: Federal Central Tax Office, identification number under section 139b AO
    _form(r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}", _is_tax_number),
    # Belgium: National Register, royal decree of 3 April 1984 on its number
    _form(r"\d\d\.?\d\d\.?\d\d-?\d{3}[.-]?\d\d", _is_belgian, r"\d\d[0-5]\d[0-3]\d.*"),
    # Switzerland: Central Compensation Office, OASI number, with the check digit of GS1's EAN-13
    _form(r"756(?:[. ]?\d{4}){2}[. ]?\d\d", partial(_fits, (1, 3), 10)),
    # France: INSEE, registration number in the national directory (NIR) and its key
    _form(r"[1-478] ?\d\d ?\d\d ?(?:\d\d|2[AB]) ?\d{3} ?\d{3} ?\d\d", _is_nir),
    # Netherlands: National Office for Identity Data, logical design of the BSN
    _form(
        r"\d{9}|\d{4}[. ]\d\d[. ]\d{3}",
        partial(_fits, (9, 8, 7, 6, 5, 4, 3, 2, -1), 11),
        whole=True,
    ),
    # Italy: Ministry of Finance, decree of 23 December 1976; letters may stand for digits
    _form(
        r"[A-Z]{6}[0-9L-NP-V]{2}[A-EHLMPR-T][0-9L-NP-V]{2}[A-Z][0-9L-NP-V]{3}[A-Z]", _is_fiscal_code
    ),
    # Spain: Ministry of the Interior, letters of the DNI and the NIE
    _form(r"(?:\d{8}|[XYZ][ -]?\d{7})[ -]?[A-HJ-NP-TV-Z]", _is_dni),
    # Austria: Main Association of Social Security Institutions, insurance number
    _form(r"[1-9]\d{3}[ -]?\d{6}", _is_austrian, rf"\d{{4}}{_DD}(?:0[1-9]|1[0-5])\d\d"),
    # United Kingdom: NHS Data Model and Dictionary, NHS number. ISBNs of ten digits have the same
    # check digit: without groups, only numbers that England gives, and Scotland's, which begin with
    # a day and a month, are of persons.
    _form(r"\d{3}([ -])\d{3}\1\d{4}", _is_nhs, whole=True),
    _form(r"\d{10}", _is_nhs, rf"[467]\d{{9}}|{_DD}{_MM}\d{{6}}", whole=True),
    # Sweden: Swedish Tax Agency, SKV 704
    _form(
        r"(?:19|20)?\d{6}[-+]?\d{4}",
        lambda digits: passes_luhn(digits[-10:]),
        rf"(?:19|20)?\d\d{_MM}(?:0[1-9]|[1278]\d|[3469][01]|6[1-9])\d{{4}}",
    ),
    # Norway: Norwegian Tax Administration, national identity number and D number
    _form(r"\d{6} ?\d{5}", _is_norwegian, r"[0-7]\d[014589]\d.*"),
    # Finland: Digital and Population Data Services Agency, personal identity code
    _form(r"\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y]", _is_finnish, rf"{_DD}{_MM}.*"),
    # Brazil: Federal Revenue Service, CPF
    _form(r"\d{3}\.?\d{3}\.?\d{3}-?\d\d", _is_brazilian),
)


def find_numbers(text: str) -> Iterator[tuple[str, str, bool]]:
    """What has the form of a number in a text: its kind, its letters and digits alone, and whether
    it passes its check.

    Cost: O(n), and some microseconds for each word with a digit.
    """
    for start in (match.start() for match in _START.finditer(text)):
        iban = _IBANS.get(text[start : start + 2].upper())
        if iban is not None and (found := iban.look(text, start)):
            yield "IBANs", *found
        if found := _CARD.look(text, start):
            yield "card numbers", *found
        for form in _NATIONAL_NUMBERS:
            if found := form.look(text, start):
                yield "national numbers of persons", *found
