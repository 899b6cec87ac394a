"""Target-aware blocks: the leaves of a decision tree that predicts the target."""

from typing import ClassVar, Literal

from pydantic import Field

from anonlib.partition import Grower, Leaf, Sample, TreePartitioner


class TargetTree(TreePartitioner):
    """A decision tree on the quasi-identifiers, guided by the target. Rows of a block agree in what
    the target depends on, so generalizing the block loses little about the target.

    Cuts: numeric columns are cut between two values, nominal ones into two subsets of their
    categories (`subsets`). Both sides of a cut must hold all models. The best such cut is taken;
    ties go to the first column, then to the lowest boundary. With k-anonymity alone, every allowed
    boundary is searched. With other models, the next column is tried after the best 32 cuts of a
    column fail. For a numeric target the criterion is always variance.

    Samples: on a part of the table, models can't be judged. Instead, each side needs `min_rows`
    times the sampled share of rows, and at least 50 sampled rows. Exact counts prune the tree
    later. The tree is that of a table with only the sampled rows, and this least size of a side.
    It is the tree of the whole table if the cuts predict the target far above chance, except for
    thresholds: they lie at the first sampled value on the right.

    Evidence: a tree that is cut until its sides are too small fits noise. So a third of the
    persons, by their place in the sample, do not choose cuts but judge them. A cut is made only if
    their targets agree with it (exact test). If the target of a leaf is noise, the leaf is cut at
    all with a probability of at most `significance`. Each accepted cut doubles the significance
    below it, up to 1. At 1, the first cut tried is made if chance alone would agree as well with a
    probability of at most 1/2. `none` is the paper's tree.

    Cost O(m (p + q) log m) for m sampled rows and balanced cuts; in general m (p + q) times depth.
    Source: TA_DA, section IV-A, (k,l)-compliant decision tree. Added here: binary cuts, any models,
    and evidence.
    """

    type: ClassVar[str] = "target_tree"
    criterion: Literal["information_gain", "gain_ratio", "gini"] = Field(
        "information_gain", description="what the best cut of a target with classes has most of"
    )
    evidence: Literal["held_back", "none"] = Field(
        "held_back", description="what shows that a cut is not chance"
    )
    significance: float = Field(
        0.1, gt=0, le=1, description="most probable cut of a leaf whose target is noise"
    )

    @property
    def needs_target(self) -> bool:
        return True

    def grow(
        self, sample: Sample, grower: Grower, leaf: Leaf, most: float, seed: int
    ) -> list[Leaf]:
        from threadpoolctl import threadpool_limits

        from anonlib.partition.target_tree.search import TreeSearch

        significance = self.significance if self.evidence == "held_back" else None
        search = TreeSearch(sample, leaf.rows, self.criterion, significance)
        leaves = []
        nodes = [(leaf.id, 0, len(leaf.rows), 0)]
        # Products would depend on the number of threads. To set the limit takes milliseconds, so it
        # is set once.
        with threadpool_limits(1):
            while nodes:
                id, start, stop, depth = nodes.pop()
                found = search.best(start, stop, depth)
                if found is None:
                    leaves.append(Leaf(id, leaf.rows[search.order[-1, start:stop]]))
                    continue
                left, right = grower.cut(id, found.cut)
                middle = search.part(found, start, stop)
                nodes += [(right, middle, stop, depth + 1), (left, start, middle, depth + 1)]
        return leaves
