"""Texts: what stands for a missing value, what may be shown, how sensitive text is compared."""

#: Texts that mean a missing value in columns of text, where a config names no others.
MISSING_TOKENS = ("?", "")


def printable(text: str) -> str:
    """The text on one line, with control characters escaped, so that a terminal obeys none."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def fold_text(text: str) -> str:
    """The text trimmed and case-folded."""
    # Through upper case, as the JVM folds (dotless i): texts equal there must be equal here.
    return text.strip().upper().lower().casefold()
