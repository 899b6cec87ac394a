"""The base of measures that fit models to tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from anonlib.errors import InputError
from anonlib.measure import Measure
from anonlib.measure.features import MOST_CATEGORIES, Features, NodeEncoding, fit
from anonlib.table.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa

    from anonlib.measure.case import Case


class ModelMeasure(Measure):
    """Fits models to features of the source's rows and of the release's rows.

    Tables of more than `sample_rows` rows are fitted by Spark ML. With `engine: sklearn`, and in
    memory, scikit-learn is fitted to samples of them.
    """

    encoding: NodeEncoding = Field(
        default="fill_parent", description="how nodes of hierarchies become features"
    )
    max_categories: int = Field(
        default=MOST_CATEGORIES, ge=1, le=10_000, description="categories of a column with features"
    )
    engine: Literal["auto", "sklearn", "spark"] = Field(
        default="auto", description="auto: sklearn for tables of at most `sample_rows` rows"
    )
    sample_rows: int = Field(
        default=100_000, ge=100, le=5_000_000, description="most rows for scikit-learn"
    )

    def features(self, columns: Sequence[Column], raw: "pa.Table") -> Features:
        """The features of columns, fitted on original rows."""
        return fit(columns, raw, encoding=self.encoding, max_categories=self.max_categories)

    def in_spark(self, case: "Case", n_most: int) -> bool:
        """Whether Spark ML fits tables of up to n_most rows; else scikit-learn does.

        Raises InputError if the config wants Spark ML, and it is not there.
        """
        if self.engine == "spark" and not case.has_spark:
            raise InputError(
                "`engine: spark` is there for releases in Spark only; take `engine: auto`"
            )
        large = case.has_spark and n_most > self.sample_rows
        return self.engine == "spark" or (self.engine == "auto" and large)


def round_figure(value: float | None) -> float | None:
    """Rounds to 6 digits. The last digits of a model depend on the order of Spark's sums."""
    return None if value is None else float(f"{value:.6g}")
