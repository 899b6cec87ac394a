"""What can't be done with a number of rows."""

from collections.abc import Iterator
from math import ceil

from anonlib.arrays import Ints, count_share
from anonlib.config.model import MOST_SAMPLED, Config, PartitionSection
from anonlib.errors import ConfigError, Problem
from anonlib.partition.chain import FILL

#: The fewest sampled rows of a leaf that plans aim at.
MIN_PER_LEAF = 8
#: The most rows of a sample, if the config gives no number and the blocks need no more.
USUAL_SAMPLE = 100_000


def refuse_large(partition: PartitionSection, n_rows: Ints) -> None:
    """Raises ConfigError if a step that keeps a table whole gets too many rows.

    n_rows: int64[r]. The rows of each tree.
    """
    for i, step in enumerate(partition.steps):
        if step.max_block_rows is not None and n_rows.max() > step.max_block_rows:
            raise ConfigError(
                [
                    Problem(
                        f"partition.steps.{i}",
                        (
                            f"one block takes at most {step.max_block_rows} rows, the source has "
                            f"{n_rows.max()}; use kmeans"
                        ),
                    )
                ]
            )


def size_sample(partition: PartitionSection, n_rows: int) -> int:
    """The most rows of the sample of a table of n_rows rows."""
    usual = max(USUAL_SAMPLE, _least_sample(partition, n_rows))
    return partition.sample_rows or min(usual, MOST_SAMPLED)


def find_void_gates(config: Config, n_rows: int) -> Iterator[Problem]:
    """The gates that no release of so many rows passes, since it has no such figure.

    n_rows: The rows of the table.
    """
    evaluate = config.evaluate
    measures = {} if evaluate is None else {each.type: each for each in evaluate.measures}
    most = count_share(config.privacy.suppression_limit, n_rows)
    n_persons = 0 if config.unit else n_rows - most
    for i, gate in enumerate(config.gates):
        measure, _, figure = gate.figure.partition(".")
        if measure in measures and (
            why := measures[measure].explain_size(figure, n_rows, n_persons)
        ):
            yield Problem(f"gates.{i}.figure", f"no release passes: {measure} {why}")


def find_thin(partition: PartitionSection, n_rows: int) -> Iterator[Problem]:
    """Finds out whether a sample has too few rows per block: a plan can't aim at such blocks.

    n_rows: The rows of the table.
    """
    wanted = _least_sample(partition, n_rows)
    if size_sample(partition, n_rows) < min(wanted, n_rows):
        yield Problem(
            "partition.sample_rows",
            (
                f"blocks of max_rows need a sample of at least {wanted} rows of these {n_rows}; "
                f"a sample has at most {MOST_SAMPLED}: raise sample_rows or max_rows"
            ),
        )


def _least_sample(partition: PartitionSection, n_rows: int) -> int:
    """The fewest sampled rows that blocks of n_rows rows need. A search over tuples needs none."""
    if partition.by_tuples:
        return 0
    return ceil(MIN_PER_LEAF * n_rows / (FILL * partition.max_rows))
