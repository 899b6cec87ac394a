"""Texts: what stands for a missing value, what looks like a number, what may be shown, how
sensitive text is compared."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unicodedata import category, normalize

#: Texts that mean a missing value in columns of text, where a config names no others.
MISSING_TOKENS = ("?", "")
#: Words that stand for a missing value, and hardly ever for anything else, by language: those
#: between commas, with blanks or underscores. Without accents, too, where people leave them out.
_MISSING_WORDS = {
    "en": "missing, unknown, not known, not recorded, not reported, not stated, not specified, "
    "unspecified, not provided, not disclosed, not available, not applicable, not collected, "
    "no data, no information, no answer, no response, don't know, do not know, prefer not to say, "
    "prefer not to answer, undisclosed, undefined",
    "de": "unbekannt, nicht bekannt, keine Angabe, keine Angaben, ohne Angabe, ohne Angaben, "
    "nicht erhoben, nicht erfasst, nicht angegeben, nicht dokumentiert, nicht verfügbar, "
    "nicht verfuegbar, nicht zutreffend, trifft nicht zu, keine Daten, "
    "keine Auskunft, keine Antwort, weiß nicht, fehlend",
    "fr": "inconnu, inconnue, non connu, non connue, non renseigné, non renseignée, non renseigne, "
    "non précisé, non precise, non spécifié, non specifie, non communiqué, non communique, "
    "non disponible, non applicable, sans objet, sans réponse, sans reponse, ne sait pas, "
    "manquant, manquante, pas de données, pas de donnees",
    "pl": "nieznany, nieznana, nieznane, nie wiadomo, nie podano, brak danych, brak informacji, "
    "brak odpowiedzi, nie dotyczy, niedostępne, niedostepne, nie określono, nie okreslono",
    "es": "desconocido, desconocida, no conocido, sin datos, sin dato, sin información, "
    "sin informacion, no consta, no disponible, no aplica, no aplicable, no especificado, "
    "no informado, no contesta, no responde, no sabe, se desconoce",
    "it": "sconosciuto, sconosciuta, non noto, non nota, ignoto, non disponibile, non applicabile, "
    "non specificato, non indicato, non rilevato, non pervenuto, dato mancante, mancante, "
    "nessun dato, nessuna risposta, non risponde, non sa",
    "nl": "onbekend, niet bekend, niet ingevuld, niet opgegeven, niet vermeld, niet geregistreerd, "
    "niet beschikbaar, niet van toepassing, geen gegevens, geen opgave, geen antwoord, weet niet, "
    "ontbreekt",
}
#: Abbreviations of such words, which people write with points and blanks as they like.
_MISSING_LETTERS = ("kA", "oA", "nb", "nv", "ne", "bd", "nd", "nc", "nr", "sd", "nvt", "na")
#: Those that are no word, state or code without points.
_PLAIN_LETTERS = ("kA", "bd", "nd", "nvt")


def _spell_letters(letters: str) -> tuple[str, ...]:
    """The ways that an abbreviation is written, such as `k.A.`, `k. A.`, `k A`, `k/A`."""
    plain = (letters,) if letters in _PLAIN_LETTERS else ()
    joined = (sign.join(letters) for sign in (".", ". ", " ", "/"))
    return (".".join(letters) + ".", ". ".join(letters) + ".", *joined, *plain)


def _spell_words() -> Iterator[str]:
    for words in _MISSING_WORDS.values():
        for text in words.split(", "):
            yield from dict.fromkeys((text, text.replace(" ", "_")))


#: Texts that may stand for a missing value, as `fold_text` shows them and as a config names them.
TEXT_TOKENS = {
    text.upper().casefold(): text
    for text in (
        *(text for letters in _MISSING_LETTERS for text in _spell_letters(letters)),
        *(
            "NA",
            "N/A",
            "n.a.",
            "#N/A",
            "<NA>",
            "#NV",
            "NaN",
            "null",
            "(null)",
            "none",
            "nil",
            "\\N",
        ),
        *("-", "--", "---", "\u2014", ".", "..", "...", "??", "???"),
        *_spell_words(),
    )
}
#: Numbers that may stand for a missing value in a column without other negative numbers.
NUMBERS_MISSING = (-9, -99, -999, -9999, -99999)
#: The ways that these are written, the plain one first.
NUMBER_TOKENS = tuple(f"{n}{end}" for end in ("", ".0", ".00") for n in NUMBERS_MISSING)
#: All texts that may stand for a missing value, folded.
ALL_TOKENS = frozenset((*MISSING_TOKENS, *TEXT_TOKENS, *NUMBER_TOKENS))
#: Numbers that may stand for a missing value where no other number is near them.
FAR_NUMBERS = (-1, 97, 98, 99, 999, 9999, 99999)
#: Days that may stand for a missing one, or for no end, where no other day is near them.
FAR_DAYS = ("0001-01-01", "1900-01-01", "2099-12-31", "2999-12-31", "9999-12-31")
#: Texts of two letters, as people see them: codes of states, countries and the like.
TWO_LETTERS = "^[a-z]{2}$"

#: Texts of whole numbers. Casts alone accept too much: for Spark "1d" is a double, and a time is a
#: date. These patterns mean the same in Java, Python and Arrow.
WHOLE_TEXT = r"^[+-]?(0|[1-9][0-9]{0,17})$"
#: Texts of numbers.
DECIMAL_TEXT = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
#: Texts of dates.
DATE_TEXT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
#: Texts of dates with a time.
TIME_TEXT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9:]+)?$"
)
#: By the type that Spark may read texts as, the narrowest first: what such texts look like.
TEXT_TYPES = {
    "bigint": WHOLE_TEXT,
    "double": DECIMAL_TEXT,
    "date": DATE_TEXT,
    "timestamp": TIME_TEXT,
}

#: Ranges of characters that are no format characters, but have no picture either: joiners, Hangul
#: and Khmer fillers, variation selectors (Unicode's Default_Ignorable_Code_Point).
FILLERS = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2065, 0x2065),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
)

#: Signs that look like one of a keyboard, which editors put in its place: hyphens, short dashes and
#: the minus; apostrophes; quotes.
_SIGNS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-")
    | dict.fromkeys("\u02bc\u2018\u2019\u201b", "'")
    | dict.fromkeys("\u201c\u201d", '"')
)
#: Blanks at the ends of a text; with the Braille pattern without a dot.
_ENDS = re.compile(r"^[\s\u2800]+|[\s\u2800]+$")


def printable(text: str) -> str:
    """The text on one line, with control characters escaped, so that a terminal obeys none."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def is_few(n: int, k: int) -> bool:
    """Whether a number of rows is so small that readers of a release are not told it."""
    return 0 < n < k


def join_names(names: Iterable[str]) -> str:
    """Names of columns in a line, blank ones in quotes."""
    return ", ".join(name if name.strip() else repr(name) for name in names)


def find_alike(names: Iterable[str]) -> frozenset[str]:
    """The names that differ from another one in case only, as Spark and Delta see it: to them
    `straße` and `strasse` are two names."""
    counts = Counter(map(str.lower, names := [*names]))
    return frozenset(name for name in names if counts[name.lower()] > 1)


def count_noun(n: int, one: str, many: str = "") -> str:
    """`1 row`, `2,997 rows`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def write_canonical(value: Any) -> str:
    """A value of a config as JSON, the same for equal values: keys are sorted, and 5.0 is 5."""
    return json.dumps(_without_points(value), sort_keys=True, ensure_ascii=False, default=str)


def _without_points(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_points(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_points(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_worse(meaning: str) -> str:
    """The worse direction that the meaning of a figure tells: "more" or "less"; empty if it tells
    none, as of figures that are for comparison."""
    said = meaning.rpartition(";")[2]
    if re.search(r"\bless is safer\b|\bmore is worse\b", said):
        return "more"
    return "less" if re.search(r"\bmore is safer\b|\bless is worse\b", said) else ""


def spell_bound(value: float) -> str:
    """A bound with all its digits: 0.20000004 is no 0.2."""
    return repr(float(value)).removesuffix(".0")


def spell_figure(value: float | None, absent: str = "–") -> str:
    """A figure in few digits: `2,997`, `0.05651`, `3.0e-07`.

    Args:
        value: The figure.
        absent: What stands for None, NaN and infinity.
    """
    if value is None or not math.isfinite(value):
        return absent
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-4 else f"{value:.1e}"


def tell_apart(value: float, bounds: Iterable[float]) -> str:
    """A value with four digits, or with as many more as it takes that it reads above, at or below
    the bounds as it is: never as a bound that it is beyond."""

    def order(number: float) -> list[tuple[bool, bool]]:
        return [(number < bound, number > bound) for bound in bounds]

    texts = (f"{value:.{n}g}" for n in range(4, 17))
    return next((text for text in texts if order(float(text)) == order(value)), f"{value:.17g}")


def is_share(meaning: str) -> bool:
    """Whether the meaning of a figure says that it is from 0 to 1."""
    return meaning.rpartition(";")[2].strip().startswith("0 to 1")


def read_range(meaning: str) -> tuple[float, float] | None:
    """The least and the greatest value that the meaning of a figure tells, as in `0 to 1` and
    `0 or more`; None if it tells none."""
    said = meaning.rpartition(";")[2].strip()
    found = re.match(r"(-?\d+(?:\.\d+)?) (?:to (-?\d+(?:\.\d+)?)\b|or more\b)", said)
    return found and (float(found[1]), float(found[2] or "inf"))


def fold_text(text: str) -> str:
    """The text as people see it: texts that look the same are equal.

    Compatible characters are one (NFKC: full width, ligatures, composed and decomposed letters),
    case is folded, characters without a picture (format, control, fillers, selectors) are gone,
    hyphens and short dashes are one, and so are quotes of a kind, and blanks count once, between
    words only. Text of invisible characters is empty.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.lower().split())
    seen = text.translate(_VISIBLE)
    # Through upper case, as the JVM folds (dotless i): texts equal there must be equal here.
    folded = normalize("NFKC", normalize("NFKC", seen).upper().casefold())
    return " ".join(folded.translate(_SIGNS).split())


def see_text(text: str) -> str:
    """The text as people see it: like `fold_text`, but in its own case."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    seen = normalize("NFKC", text.translate(_VISIBLE))
    return " ".join(seen.translate(_SIGNS).split())


def show(text: str) -> str:
    """The text without characters that have no picture; white space stays as it is."""
    return text.translate(_PICTURES)


def identify(text: str, *, folded: bool) -> str:
    """The identity of one text, as `identify_person` makes it in Spark; empty if it is blank."""
    found = _ENDS.sub("", normalize("NFC", show(text)))
    return normalize("NFC", found.upper().casefold()) if folded else found


class _Visible(dict[int, str]):
    """By code of a character: the character; a blank for all white space, nothing for what has no
    picture. Found once for each character."""

    def __missing__(self, code: int) -> str:
        self[code] = _show_character(chr(code))
        return self[code]


_VISIBLE = _Visible()


class _Picture(dict[int, str]):
    """By code of a character: the character; nothing for what has no picture."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_shown = character.isspace() or _VISIBLE[code]
        self[code] = character if is_shown else ""
        return self[code]


_PICTURES = _Picture()


def _show_character(character: str) -> str:
    if character.isspace() or character == "\u2800":  # the Braille pattern without a dot
        return " "
    code = ord(character)
    hidden = category(character) in ("Cc", "Cf") or any(
        low <= code <= high for low, high in FILLERS
    )
    return "" if hidden else character


def drop_file_scheme(path: str) -> str:
    """A path on this machine's disks as Python's `open` takes it: `/a` for Spark's `file:/a`. Other
    paths stay as they are."""
    return "/" + path.removeprefix("file:").lstrip("/") if path.startswith("file:") else path
