"""What measures need of the rows that workers release, beside their values."""

from dataclasses import dataclass, field

from anonlib.config.keys import new_token_key
from anonlib.config.model import EvaluateSection
from anonlib.measure.cell_sums import CellMeasure
from anonlib.measure.fidelity.overview import Overview


@dataclass(frozen=True)
class Marks:
    """Private columns that lead from released rows back to the source, and counts of cells.

    Attributes:
        link_key: Key of LINK, which a sample of the rows gets; empty for no links.
        share: The share of persons that HELD marks; 0 for none.
        counting: The measures that workers count cells for.
    """

    link_key: bytes = field(default=b"", repr=False)
    share: float = 0.0
    counting: tuple[CellMeasure, ...] = ()


#: No measure needs anything.
NO_MARKS = Marks()


def find_marks(evaluate: EvaluateSection | None) -> Marks:
    """What the measures of a config need, and the overview of its columns. Links have a fresh key,
    which is never written."""
    measures = () if evaluate is None else evaluate.measures
    counting = {each.type: each for each in measures if isinstance(each, CellMeasure)}
    return Marks(
        link_key=new_token_key() if any(measure.needs_pairs for measure in measures) else b"",
        share=max((measure.held_out for measure in measures), default=0.0),
        counting=tuple({Overview.type: Overview(), **counting}.values()),
    )
