"""Postal addresses: streets of several languages with a number.

Some are sure by a word for a street. Others could be much else, such as a part and its size: a
column of them must have many different names.
"""

import re

_NUMBER = r"\d{1,4} ?[a-z]?\b(?! ?[%°])"
#: After a number: its flat or stair, and the place.
_REST = r"(?:[ ,/-].*)?"
#: At the end of the name of a street, before the number, as in German, Dutch and Nordic towns.
_ENDS = (
    r"(?:straße|strasse|str\.?|gasse|weg|allee|ufer|damm|steig|chaussee|graben|laan|straat|gracht|"
    r"gatan|vägen|vej)"
)
#: Words after the name, with the number before it.
_ENGLISH = (
    r"(?:street|st|road|rd|avenue|ave|lane|ln|drive|dr|court|ct|boulevard|blvd|way|square|sq|"
    r"terrace|crescent|close|place|pl|parkway|pkwy|highway|hwy|circle|cir|trail)"
)
#: Words before the name.
_ROMANCE = (
    r"(?:rue|avenue|av\.?|boulevard|bd\.?|chemin|impasse|allée|quai|place|calle|c/|avda\.?|avenida|"
    r"paseo|plaza|carrer|via|viale|corso|piazza|vicolo|rua|travessa|ulica|ul\.?|aleja|al\.|os\.)"
)
_NAME = r"[^\W\d][\w.'’-]*"
_SURE = re.compile(
    rf"(?:[^\d]+[ -])?[^\W\d]*{_ENDS} ?{_NUMBER}{_REST}"
    rf"|\d{{1,5}}[a-z]?,? (?:{_NAME} |\d+(?:st|nd|rd|th) ){{1,4}}{_ENGLISH}\b\.?(?:[ ,].*)?"
    rf"|{_ROMANCE}(?:(?<=[./]) ?| ){_NAME}(?: {_NAME}){{0,5}},? (?:n[o°º.]+ ?)?{_NUMBER}{_REST}"
    rf"|\d{{1,5}}(?: ?(?:bis|ter|[a-z]))?,? {_ROMANCE} [^\W\d].*",
    re.IGNORECASE,
)
_WORD = r"[A-ZÀ-ÖØ-ÞĀ-Ž][\w.'’-]*"
_PERHAPS = re.compile(
    rf"(?:Am|An|Im|In|Auf|Zum|Zur|Beim|Bei|Hinter|Unter|Vor)(?: de[rnm])? {_WORD}(?: {_WORD})* "
    rf"{_NUMBER}{_REST}"
    rf"|(?:{_WORD} )*(?:[^\W\d]*(?:ring|platz)|Ring|Platz) {_NUMBER}{_REST}"
    rf"|(?:{_WORD} )+\d{{1,4}}[a-zA-Z]?/\d{{1,4}}[a-zA-Z]?(?:, .*)?"
)


def is_address(text: str) -> bool:
    """Whether a text is a postal address by a word for a street."""
    return bool(_SURE.fullmatch(text))


def find_street(text: str) -> str:
    """The name of the street of a text that may be an address; empty if it can't be one."""
    if not _PERHAPS.fullmatch(text):
        return ""
    return re.split(r" ?\d", text, maxsplit=1)[0].lower()
