"""Asks in the terminal about what a draft has guessed. Answers settle places of the draft; an empty
answer takes the guess, `?` leaves it for later."""

from collections.abc import Callable
from dataclasses import replace

from anonlib.guesses.draft import Draft, Persons, explain_guess, write_scalar
from anonlib.guesses.guess import ColumnProfile, Guess
from anonlib.table.schema import Role, Scale

#: By letter: roles, and scales of quasi-identifiers.
_ROLES = {
    "i": Role.IDENTIFIER,
    "q": Role.QUASI_IDENTIFIER,
    "s": Role.SENSITIVE,
    "t": Role.TARGET,
    "n": Role.INSENSITIVE,
    "d": Role.DROP,
}
_SCALES = {"c": Scale.CONTINUOUS, "n": Scale.NOMINAL, "o": Scale.ORDINAL}
_LATER = "?"

#: Puts a question and returns the answer.
Ask = Callable[[str], str]
#: Prints a line.
Say = Callable[[str], None]


def ask_all(draft: Draft, ask: Ask, say: Say) -> Draft:
    """The draft with a person's answers."""
    say("Enter takes the guess in brackets, ? leaves it for later.")
    say("Roles: " + ", ".join(f"{letter} {role}" for letter, role in _ROLES.items()))
    for column in draft.profile.columns:
        say(f"\n{write_scalar(column.name)}: {explain_guess(draft, column)}")
        draft = _ask_column(draft, column, ask, say)
    draft = _ask_persons(draft, ask, say)
    say("\nHow many persons must share their quasi-identifiers, at least?")
    answer = _choose("k", str(draft.k), _is_k, "a whole number, at least 2", ask, say)
    if answer is not None:
        draft = replace(draft, k=int(answer), answers=draft.answers | {"privacy.models"})
    return draft


def _is_k(text: str) -> bool:
    return text.isascii() and text.isdigit() and 2 <= int(text) < 2**31


def _choose(
    name: str, guess: str, fits: Callable[[str], bool], allowed: str, ask: Ask, say: Say
) -> str | None:
    """The answer, or the guess for an empty one; None to leave it for later."""
    while True:
        answer = ask(f"{name} [{guess}]: ").strip() or guess
        if answer == _LATER:
            return None
        if fits(answer):
            return answer
        say(f"{allowed}, or {_LATER} to leave it for later")


def _ask_column(draft: Draft, column: ColumnProfile, ask: Ask, say: Say) -> Draft:
    guess = draft.guesses[column.name]
    letter = next(letter for letter, role in _ROLES.items() if role is guess.role)
    answer = _choose("role", letter, _ROLES.__contains__, f"one of {', '.join(_ROLES)}", ask, say)
    if answer is None:
        return draft
    role, scale = _ROLES[answer], None
    if role is Role.QUASI_IDENTIFIER:
        default = guess.scale or (Scale.CONTINUOUS if column.may_be_continuous else Scale.NOMINAL)
        scales = {k: s for k, s in _SCALES.items() if _may_be(s, column)}
        letter = next(k for k, s in _SCALES.items() if s is default)
        words = ", ".join(f"{k} {s}" for k, s in scales.items())
        chosen = _choose(f"scale ({words})", letter, scales.__contains__, words, ask, say)
        if chosen is None:
            return draft
        scale = _SCALES[chosen]
    why = guess.why if role is guess.role else "as was answered"
    guesses = {**draft.guesses, column.name: Guess(role, scale, why)}
    return replace(draft, guesses=guesses, answers=draft.answers | {f"attributes.{column.name}"})


def _may_be(scale: Scale, column: ColumnProfile) -> bool:
    """Whether a column can have a scale. The order of texts is to be written into the file."""
    return scale is Scale.NOMINAL or column.may_be_continuous


def _ask_persons(draft: Draft, ask: Ask, say: Say) -> Draft:
    """Asks how persons are counted, by the columns that are not released."""
    hidden = [name for role in (Role.IDENTIFIER, Role.DROP) for name in draft.list_by_role(role)]
    persons = draft.persons
    say("\nWhich column says who a person is? Type its name; - if each row is another person.")
    named = persons.unit[0] if persons.unit else (persons.column or "-")
    guess = named if named in (*hidden, "-") else "-"
    allowed = f"- or one of {', '.join(map(write_scalar, hidden))}"
    who = _choose("person", guess, [*hidden, "-"].__contains__, allowed, ask, say)
    declared = Persons((), None, "")
    if who is None:  # a column that is released now can't count persons
        return draft if guess == named else replace(draft, persons=declared)
    column = next((c for c in draft.profile.columns if c.name == who), None)
    found = declared if column is None else _count_by(column, draft.guesses[who].role)
    return replace(draft, persons=found, answers=draft.answers | {found.place})


def _count_by(column: ColumnProfile, role: Role) -> Persons:
    """Only an identifier that is another one in every row can be checked to be so."""
    if column.unique and role is Role.IDENTIFIER:
        return Persons((), column.name, "unique")
    return Persons((column.name,), None, "a person may have several rows")
