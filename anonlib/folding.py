"""The form in which sensitive text is compared."""


def fold(text: str) -> str:
    """The text trimmed and case-folded."""
    # By way of upper case, as the JVM folds (dotless i): what is one there must be one here.
    return text.strip().upper().lower().casefold()
