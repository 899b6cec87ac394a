"""Texts as terminals and pages may show them."""


def plain(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )
