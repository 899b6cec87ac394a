"""Partitioners: each fits a frozen plan on a sample; plans give every row its block, row by row."""

from abc import abstractmethod
from typing import ClassVar

from anonlib.partition._plan import Cuts, Sample
from anonlib.registry import Plugin

__all__ = ["Cuts", "Partitioner", "Sample"]


class Partitioner(Plugin):
    """Cuts a table into blocks that tasks anonymize apart."""

    family: ClassVar[str] = "partitioner"

    @property
    def whole(self) -> int | None:
        """The most rows of a table that it keeps in one block; None where it cuts."""
        return None

    @abstractmethod
    def fit(self, sample: Sample, n_leaves: int, seed: int) -> Cuts:
        """A tree of at most `n_leaves` leaves over the sample's features.

        A pure function of its arguments: `sample` comes in an order of its own.
        """
