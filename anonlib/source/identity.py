"""The identity of persons: one text for each person, whatever the ways to write it.

Units, unique identifiers, pseudonyms and the ledger all see this text.
"""

import re
from unicodedata import normalize

from pyspark.sql import Column
from pyspark.sql import functions as F

from anonlib.auditing.canonical import BLANKS

#: Collations whose equality is known here. Those that end in CI or LCASE do not tell case apart.
_COLLATION = re.compile(r"string(?: collate (UTF8_BINARY|UTF8_LCASE|UNICODE|UNICODE_CI)(_RTRIM)?)?")
_ENDS = re.compile(r"^[\s\u2800]+|[\s\u2800]+$")


def is_known_equality(source_type: str) -> bool:
    """Whether it is known here which texts of a column of this type are equal."""
    return not source_type.startswith("string") or _COLLATION.fullmatch(source_type) is not None


def is_folded(source_type: str, fold_case: bool) -> bool:
    """Whether texts that differ in case only are one person."""
    found = _COLLATION.fullmatch(source_type)
    collation = "" if found is None else found[1] or ""
    return found is not None and (fold_case or collation in ("UTF8_LCASE", "UNICODE_CI"))


def canonical_identity(column: Column, source_type: str, fold_case: bool) -> Column:
    """A column that tells persons apart: text in NFC, without blanks around it, folded where the
    column does not tell case apart; null where blank. Other types stay as they are.

    Spark takes it for nondeterministic: project it before it is grouped or aggregated.

    Args:
        column: The column.
        source_type: Its type, as Spark writes it.
        fold_case: Whether case is folded whatever the column's collation is.
    """
    if not source_type.startswith("string"):
        return column
    text = column if source_type == "string" else F.collate(column, "UTF8_BINARY")
    normal = _icu("text.Normalizer", "compose", text, False)
    trimmed = F.regexp_replace(normal, f"^{BLANKS}|{BLANKS}$", "")
    plain = F.trim(text)
    if is_folded(source_type, fold_case):
        upper = F.upper(trimmed)
        folded = _icu("lang.UCharacter", "foldCase", upper, True)
        trimmed = _icu("text.Normalizer", "compose", folded, False)
        plain = F.lower(plain)
    found = F.when(text.rlike("^[ -~]*$"), plain).when(text.isNotNull(), trimmed)
    return F.nullif(found, F.lit(""))


def identify(text: str, *, folded: bool) -> str:
    """The identity of one text, as `canonical_identity` has it; empty where blank."""
    found = _ENDS.sub("", normalize("NFC", text))
    return normalize("NFC", found.upper().casefold()) if folded else found


def _icu(name: str, method: str, text: Column, option: bool) -> Column:
    call = (F.lit(f"com.ibm.icu.{name}"), F.lit(method), text, F.lit(option))
    return F.call_function("java_method", *call)
