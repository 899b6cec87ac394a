"""How far clusters of the release agree with clusters of the original rows."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from anonlib.measure import Figure, Findings, Subjects
from anonlib.measure.agreement import measure_agreement
from anonlib.measure.features import list_predictors
from anonlib.measure.fidelity._models import ModelMeasure, round_figure
from anonlib.table.schema import Role

if TYPE_CHECKING:
    from anonlib.measure.case import Case


class Clustering(ModelMeasure):
    """How far clusters found in the release agree with those found in the original rows.

    k-means finds centres in the release and in the source. Each original row is assigned to the
    nearest centre of the release, and to the nearest centre of the source. Then these two
    clusterings are compared. So released rows need no link to persons, and all rows count. The
    figures show whether segments found in the release are segments of the people behind it.

    - `ari`: the adjusted Rand index.
    - `nmi`: the normalized mutual information.
    - `raw_ari`, `raw_nmi`: the same for two k-means runs on the original rows, from different
      starts. The release can't be expected to be better.

    Tables of more than `sample_rows` rows are clustered by Spark ML, or with `engine: sklearn` by
    scikit-learn on samples. Features are fitted on original rows. Figures are rounded to 6 digits.
    Reference: TA_DA, section VI-C, which compares the cluster of each released row with that of its
    original row.
    Cost: O(n f k) per step, and a pass over the source.
    """

    type: ClassVar[str] = "clustering"
    usual: ClassVar[bool] = False
    subjects: ClassVar[Subjects] = "table"
    names: ClassVar[Mapping[str, str]] = {
        "ari": "adjusted Rand index of the clusters of the release and of the source; 1 the same, "
        "about 0 by chance, less is worse",
        "nmi": "normalized mutual information of the clusters of the release and of the source; 0 "
        "to 1 (the same), less is worse",
        "raw_ari": "adjusted Rand index of the source's clusters and of its own from another "
        "start; 1 at most, what `ari` can be expected to reach",
        "raw_nmi": "normalized mutual information of the source's clusters and of its own from "
        "another start; 0 to 1, what `nmi` can be expected to reach",
    }
    clusters: int = Field(default=8, ge=2, le=1000, description="the number of clusters")
    columns: Literal["released", "quasi_identifiers"] = Field(
        default="quasi_identifiers", description="what rows are clustered by; targets are left out"
    )
    max_iter: int = Field(default=100, ge=1, description="most steps of k-means")

    def explain_size(self, figure: str, n_rows: int, n_persons: int) -> str:
        if self.clusters <= n_rows:
            return ""
        return f"asks for {self.clusters} `clusters` of {n_rows} rows"

    def measure(self, case: "Case") -> Findings:
        targets = [column.id for column in case.schema.of(Role.TARGET)]
        columns = list_predictors(case.schema, targets, self.columns)
        if not columns:
            return self.nothing("the release has no column to cluster by")
        if min(case.n_source, case.n_released) < max(self.clusters, case.k):
            return self.nothing("fewer rows than clusters, or than k")
        how = [column.id for column in columns], self.sample_rows
        raw = case.part(*how, released=False)
        released = case.part(*how, released=True)
        n_least = min(part.sample.num_rows for part in (raw, released))
        if n_least < self.clusters and not self.in_spark(case, max(raw.n, released.n)):
            return self.nothing("`sample_rows` is less than `clusters`")
        features = self.features(columns, raw.sample)
        in_spark = self.in_spark(case, max(raw.n, released.n))
        found = case.cluster(
            raw, released, features, self.clusters, self.max_iter, in_spark=in_spark
        )
        return Findings(
            tuple(
                Figure(f"{prefix}{name}", round_figure(value))
                for prefix, contingency in zip(("", "raw_"), found, strict=True)
                for name, value in measure_agreement(contingency)._asdict().items()
            )
        )
