"""What a certificate must not tell: how many rows are suppressed where they are fewer than k."""

from anonlib.measure.attempts import RISK_NAMES
from anonlib.pages.specs import ATTACKS, Record, is_k_anonymity, list_verdicts, read_findings
from anonlib.text import is_few

#: The figures that are the same whatever rows were suppressed: they are counted on the released
#: rows, which their reader has, or they are of attacks, which are made on other releases without
#: persons who are held out at random. All others may tell how many were suppressed:
#: that one category lost the share of 3 of 1000 rows tells of 3 rows.
_TOLD = frozenset(
    {
        *(f"{attack}.{name}" for attack in ATTACKS for name in RISK_NAMES),
        *("reidentification.prosecutor_max", "reidentification.prosecutor_mean"),
        *("reidentification.prosecutor_at_risk", "reidentification.marketer"),
        *("reidentification.journalist_max", "reidentification.journalist_at_risk"),
        *("population.k_map", "population.journalist_max", "population.journalist_mean"),
        *("population.presence_min", "population.presence_max"),
        *("disclosure.correct", "disclosure.base", "disclosure.gain", "disclosure.certainty"),
        *("disclosure.certain", "disclosure.lone"),
        *("dominance.nk_cells", "dominance.nk_rows", "dominance.p_cells", "dominance.p_rows"),
        *("uniqueness.release_unique", "special_uniques.singled_out_after"),
        *("special_uniques.score_after", "linkage.cell_guess", "linkage.record_guess"),
        *("linkage.record_bound", "fairness.worst_risk", "fairness.risk_gap"),
        *("order.correlation", "order.chance"),
    }
)


def find_k(record: Record) -> int:
    """The largest k that a verdict required; 0 without one."""
    required = [each["required"] for each in list_verdicts(record) if is_k_anonymity(each)]
    return int(max(required, default=0))


def has_few(record: Record) -> bool:
    """Whether few rows are suppressed: so few that their number is not told."""
    return is_few(record["n_suppressed"], find_k(record))


def tells_few(record: Record, figure: str) -> bool:
    """Whether MEASURE.FIGURE would tell of few suppressed rows, of all or of a group."""
    if figure in _TOLD:
        return False
    measure = figure.partition(".")[0]
    return has_few(record) or (measure == "fairness" and _has_small_group(record))


def withhold(record: Record) -> str:
    """What stands in place of a figure that would tell."""
    return f"withheld: it would tell of fewer than {find_k(record)} suppressed rows"


def _has_small_group(record: Record) -> bool:
    """Whether a group of the measure fairness has few suppressed rows."""
    for series in (read_findings(record).get("fairness") or {}).get("series", ()):
        if series["name"] == "groups":
            for row in series["rows"]:
                if _lost_few(dict(zip(series["heads"], row, strict=True)), find_k(record)):
                    return True
    return False


def _lost_few(group: Record, k: int) -> bool:
    share = group["suppressed"]
    if share >= 1:  # how many rows it had is not known
        return False
    return is_few(round(group["rows released"] * share / (1 - share)), k)
