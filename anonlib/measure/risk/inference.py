"""An attack: guesses sensitive values from the nearest released rows."""

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from anonlib.measure import Figure, Subjects
from anonlib.measure.risk._attack import SecretAttack, list_attempts
from anonlib.measure.risk._guesses import GuessRule, keep_present, make_guess
from anonlib.measure.risk._passes import search_release
from anonlib.measure.risk._reach import Search
from anonlib.table.schema import Column, Role

if TYPE_CHECKING:
    import pyarrow as pa

    from anonlib.measure.case import Case


class Inference(SecretAttack):
    """How often sensitive values are guessed from the released rows nearest to a person.

    For each sensitive column, and for the target if it has its own privacy model: an attacker knows
    the quasi-identifiers of persons, looks for the nearest released rows, and guesses their most
    frequent value; of equally frequent ones the first in the order of texts. Of values, the
    MOST_VALUES most frequent ones among the persons to attack are guessed. Persons without a value
    are left out.

    Numbers of few values are such values, too: MOST_VALUES at most, with half of the persons or
    more not alone with theirs. So are those of a target with another scale than `continuous`. Of
    other numbers the mean is guessed, or a number that 1 in 100 persons has, if a fifth of the
    nearest rows have it. The mean is right within `tolerance` of itself, but not farther off than
    this share of the range of the persons' numbers.

    A guess from what the release says of people in general succeeds with the persons held out, too.
    So `risk` is what a guess gains from the person's own row.

    Distances are those of the measure `linkage`.
    Cost: one pass over the release. For each column, a bounded number of persons is compared with
    its classes.
    """

    type: ClassVar[str] = "inference"
    subjects: ClassVar[Subjects] = "columns"
    reference: ClassVar[str] = (
        "M. Giomi et al., A unified framework for quantifying privacy risk in synthetic data, "
        "PoPETs 2023(2), section 5.3; there, the value of the first of the nearest rows is taken"
    )
    tolerance: float = Field(
        default=0.05, ge=0, lt=1, description="how far the mean may be off as a guess, as a share"
    )

    def attack(
        self, case: "Case", known: tuple[Column, ...], secrets: tuple[Column, ...]
    ) -> list[Figure] | str:
        if not known:
            return "there is no quasi-identifier to guess from"
        tables = self.tables(case)
        if not tables.n_released:
            return "nothing was released to guess from"
        persons = [
            self.draw(case, tables, known, partial(keep_present, column)) for column in secrets
        ]
        guesses = [
            self._make_guess(case, column, each.table)
            for column, each in zip(secrets, persons, strict=True)
        ]
        searches = [
            Search(
                persons=each.table,
                groups=(known,),
                encodings=case.encodings,
                payload=guess.payload,
                payload_ids=(column.id,),
                n_payload=guess.width,
            )
            for column, each, guess in zip(secrets, persons, guesses, strict=True)
        ]
        every = search_release(searches, tables.fold_released)
        right = [
            guess.are_right(found.total, each.table)
            for each, guess, found in zip(persons, guesses, every, strict=True)
        ]
        return [*list_attempts(secrets, persons, right, [guess.note for guess in guesses])]

    def _make_guess(self, case: "Case", column: Column, persons: "pa.Table") -> GuessRule:
        scale = case.target_scale if column.role is Role.TARGET else column.scale
        return make_guess(column, scale, persons, self.tolerance)
