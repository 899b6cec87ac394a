"""Phone numbers: texts of digits, told by a label, a country code, or the groups of a country.

Dates, times, spans of them, zip codes and codes of drugs can look like it, and are told apart. So
can codes of goods, accounts and places: what nothing but its digits tells is unmarked.
"""

import re
from typing import NamedTuple

#: Words before a phone number.
_LABEL = re.compile(
    r"(?:tel(?:e(?:f|ph)one?)?|tél(?:éphone)?|phone|ph|f[oa]n|mob(?:ile?)?(?:telefon|funk)?|cell|"
    r"handy|fax|tlf|whats ?app|call)\b[.:]*[\s-]*(?:(?:nr|no|number|nummer)\b[.:]*\s*)?",
    re.IGNORECASE,
)
#: What may follow it.
_EXTENSION = re.compile(r" ?(?:ext\.?|x|dw|durchwahl) ?\d{1,5}", re.IGNORECASE)
_MARKED = re.compile(r"\+?[\d ()/.-]+", re.ASCII)
#: Calling codes of countries but those of North America (ITU-T E.164, list of assigned codes).
_COUNTRY = (
    r"(?:7|2[07]|2[1-689]\d|3[0-469]|3[578]\d|4[013-9]|42\d|5[09]\d|5[1-8]|6[0-6]|6[7-9]\d|"
    r"8[1246]|8[0578]\d|9[0-58]|9[67]\d|99[2-68])"
)
_ABROAD = re.compile(rf"(?:\+|00)1\d{{10}}|\+{_COUNTRY}\d{{6,12}}|00{_COUNTRY}\d{{7,12}}")
#: Mobile numbers with the code of their country, by the numbering plans that countries give the
#: ITU (E.129): other digits alone are no sign of a phone.
_MOBILE = re.compile(
    r"1[2-9]\d\d[2-9]\d{6}|79\d{9}|316\d{8}|324\d{8}|33[67]\d{8}|34[67]\d{8}|3519\d{8}|"
    r"393\d{8,9}|417[4-9]\d{7}|420[67]\d{8}|436[4-9]\d{7,10}|447\d{9}|45[2-9]\d{7}|467[02369]\d{7}|"
    r"47[49]\d{7}|48[4-8]\d{8}|491[5-7]\d{8,9}|55\d\d9\d{8}|614\d{8}|861[3-9]\d{9}|91[6-9]\d{9}"
)
#: Five pairs, as in France: some look like dates.
_PAIRS = re.compile(r"0[1-9]([ .-])\d\d(?:\1\d\d){3}")
#: How countries write their own numbers.
_GROUPS = re.compile(
    r"\(?0[1-9]\d{0,4}\)?(?:[ ./-]+\d+)+"  # with a 0 before the area: most of Europe
    r"|0[1-9]\d{8,10}"
    r"|(?:1[ .-])?\(?[1-9]\d\d\)?[ .-]+\d{3}[ .-]\d{4}"  # North America
    r"|[1-9]\d\d([ -])\d{3}\1\d{3}"  # Poland, Spain, Portugal, Czechia
    r"|[679]\d\d \d\d \d\d \d\d|[89]\d \d{3} \d\d \d\d"  # Spain
    r"|3\d\d[ /]\d{6,7}|3\d\d \d{3} \d{3,4}"  # Italy
    r"|8[ -]?\(?9\d\d\)?[ -]?\d{3}[ -]?\d\d[ -]?\d\d"  # Russia
    r"|1[3-9]\d[ -]\d{4}[ -]\d{4}"  # China
    r"|\([1-9]\d{1,4}\) ?\d[\d .-]{4,}\d"  # Brazil and others: the area in brackets
)
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:19|20)\d\d"
#: Days, months of years, zip codes (ZIP+4) and drug codes (NDC) within a text.
_OTHERS = re.compile(
    rf"(?<!\d)(?:(?:{_DAY}([./-]){_MONTH}\1|{_MONTH}([./-]){_DAY}\2)(?:{_YEAR}|\d\d)"
    rf"|{_MONTH}[./-]{_YEAR}|{_YEAR}[./-]{_MONTH})(?!\d)"
    r"|^(?:\d{5}-\d{4}|\d{4}-\d{4}-\d\d|\d{5}-\d{3}-\d\d|\d{5}-\d{4}-\d{1,2})$"
)


#: Words of names of columns that have them.
PHONE_WORDS = frozenset(
    {
        *("phone", "telephone", "tel", "mobile", "fax", "contact", "kontakt", "contacto"),
        *("contatto", "cell", "cellphone", "celular", "gsm", "mobiel", "portable", "msisdn"),
        *("whatsapp", "sms"),
    }
)


class Phone(NamedTuple):
    """What a text has of a phone number.

    Attributes:
        is_one: Whether it is one.
        is_marked: Whether more than groups of digits tells it: a label, a country code after `+` or
            `00`, an area in brackets, an extension.
    """

    is_one: bool
    is_marked: bool = False


def find_phone(text: str) -> Phone:
    """Whether a text is a phone number, and whether something marks it. text: As `see_text` has
    it."""
    label = _LABEL.match(text)
    number = text[label.end() :] if label else text
    more = _EXTENSION.search(number)
    if more and more.end() == len(number):
        number = number[: more.start()]
    else:
        more = None
    number = number.replace("(0)", "").strip()
    if not _MARKED.fullmatch(number):
        return Phone(False)
    digits = re.sub(r"[^+\d]", "", number)
    if _ABROAD.fullmatch(digits) or (label and 6 <= len(digits) <= 15):
        # After `00`, the code of a country and a number there have ten digits: of less, both may be
        # zeros of a number of another kind.
        return Phone(True, is_marked=not re.fullmatch(r"00\d{,9}", number))
    if (number.isdigit() and _MOBILE.fullmatch(number)) or _PAIRS.fullmatch(number):
        return Phone(True, is_marked=more is not None)
    fits = 9 <= len(digits) <= 12 and bool(_GROUPS.fullmatch(number))
    is_one = fits and not _OTHERS.search(number)
    return Phone(is_one, is_marked=is_one and (more is not None or "(" in number))
