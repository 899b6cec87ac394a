"""Texts as terminals and pages may show them.

The form in which sensitive text is compared.
"""


def printable(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def fold(text: str) -> str:
    """The text trimmed and case-folded."""
    # By way of upper case, as the JVM folds (dotless i): what is one there must be one here.
    return text.strip().upper().lower().casefold()
