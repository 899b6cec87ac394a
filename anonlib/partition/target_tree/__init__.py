"""Target-aware blocks: the leaves of a decision tree that predicts the target."""

from typing import ClassVar, Literal

from pydantic import Field

from anonlib.partition import Grower, Leaf, Sample, TreePartitioner


class TargetTree(TreePartitioner):
    """A decision tree on the quasi-identifiers, guided by the target: rows of a block agree in what
    the target depends on, so that generalizing the block spares it.

    Numeric columns are cut between two values, nominal ones by subsets of their categories
    (`_target_subsets`). A cut leaves sides that both hold all models; the best one that does so is
    taken, the first column, the lowest boundary of several. By k-anonymity alone every allowed
    boundary is searched; where other models refuse a column's best 32 cuts, the next column is.
    A numeric target is guided by its variance, whatever the criterion.

    Of a part of the table, models can't be judged: each side has `min_rows` times the share of the
    rows that are sampled, and at least 50 of them; exact counts prune the tree later. It is the
    tree of a table of these rows alone that asks for as many rows on a side. So it is that of the
    whole table where the target is told by cuts far above chance, but for thresholds, which lie at
    the first sampled value on the right.

    Evidence: a tree goes on until its sides are too small, and fits noise. So a third of the
    persons, by their place in the sample, does not choose the cuts but judges them: a cut counts
    only if their target agrees (exact test). A leaf whose target is noise is cut at all with a
    probability of `significance` at most. With each cut that counts less is asked for below it, in
    the end only agreement that is likelier than not. `none` is the paper's tree.

    Cost O(m (p + q) log m) for m sampled rows and balanced cuts; in general m (p + q) times depth.
    Source: TA_DA, section IV-A, (k,l)-compliant decision tree; with binary cuts, any models, and
    evidence besides.
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
        done = []
        nodes = [(leaf.id, 0, len(leaf.rows), 0)]
        # Products over threads would depend on their number. Once: to set it takes milliseconds.
        with threadpool_limits(1):
            while nodes:
                id, start, stop, depth = nodes.pop()
                found = search.best(start, stop, depth)
                if found is None:
                    done.append(Leaf(id, leaf.rows[search.order[-1, start:stop]]))
                    continue
                left, right = grower.cut(id, found.cut)
                middle = search.part(found, start, stop)
                nodes += [(right, middle, stop, depth + 1), (left, start, middle, depth + 1)]
        return done
