"""The identity of persons: one text for each person, however the source writes it.

Units, unique identifiers, pseudonyms and the ledger all use this text.
"""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F

from anonlib.auditing.canonical import BLANKS, INVISIBLE, SIMPLE_TEXT

#: Collations whose equality is known here. Those that end in CI or LCASE ignore case.
_COLLATION = re.compile(r"string(?: collate (UTF8_BINARY|UTF8_LCASE|UNICODE|UNICODE_CI)(_RTRIM)?)?")
#: Invisible characters, without line breaks and tabs, which are blanks.
_HIDDEN = f"(?:(?!{BLANKS}){INVISIBLE.removesuffix('+')})+"


def is_known_equality(source_type: str) -> bool:
    """Whether this module knows which texts of a column of this type are equal."""
    return not source_type.startswith("string") or _COLLATION.fullmatch(source_type) is not None


def is_folded(source_type: str, fold_case: bool) -> bool:
    """Whether texts that differ only in case are one person."""
    found = _COLLATION.fullmatch(source_type)
    collation = "" if found is None else found[1] or ""
    return found is not None and (fold_case or collation in ("UTF8_LCASE", "UNICODE_CI"))


def identify_person(column: Column, source_type: str, fold_case: bool) -> Column:
    """The identity of persons from a column that identifies them.

    Text is put into NFC, invisible characters and surrounding blanks are removed, and blank text is
    null. Case is folded if the column's collation ignores it. Columns of other types are
    returned unchanged.

    Spark takes the result for nondeterministic: select it before you group or aggregate by it.

    Args:
        column: The column.
        source_type: Its type, as Spark writes it.
        fold_case: Whether to fold case for every collation.
    """
    if not source_type.startswith("string"):
        return column
    text = column if source_type == "string" else F.collate(column, "UTF8_BINARY")
    normal = _icu("text.Normalizer", "compose", F.regexp_replace(text, _HIDDEN, ""), False)
    trimmed = F.regexp_replace(normal, f"^{BLANKS}|{BLANKS}$", "")
    plain = F.trim(text)
    if is_folded(source_type, fold_case):
        upper = F.upper(trimmed)
        folded = _icu("lang.UCharacter", "foldCase", upper, True)
        trimmed = _icu("text.Normalizer", "compose", folded, False)
        plain = F.lower(plain)
    found = F.when(text.rlike(SIMPLE_TEXT), plain).when(text.isNotNull(), trimmed)
    return F.nullif(found, F.lit(""))


def _icu(name: str, method: str, text: Column, option: bool) -> Column:
    call = (F.lit(f"com.ibm.icu.{name}"), F.lit(method), text, F.lit(option))
    return F.call_function("java_method", *call)
