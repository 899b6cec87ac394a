"""Fields of a config that are set and change nothing: notes say so, since their writer thinks
otherwise."""

from collections.abc import Iterator

from anonlib.config.model import Config, bind_models
from anonlib.table.schema import Role

#: The `release.path` of a config for a table in memory that names none.
UNUSED_PATH = "released"
#: By section: its fields that only a run in Spark reads.
SPARK_ONLY = {
    "release": (
        *("path", "mode", "ledger", "backlog", "acknowledge_overwrite", "record", "run_id"),
        *("partition_by", "catalog_table", "rows_per_file", "order"),
    ),
    "spark": ("grouped_map", "partitions", "conf"),
}


def note_unused(config: Config) -> Iterator[str]:
    """Notes on what the rest of the config leaves without effect, and on sensitive columns that no
    model looks at."""
    attributes = config.attributes
    bound = bind_models(config.all_models, attributes)
    modelled = {model.column for model in bound}
    sensitive = [n for n, a in attributes.items() if a.role is Role.SENSITIVE]
    if bare := [name for name in sensitive if name not in modelled]:
        listed = ", ".join(bare)
        yield f"no model protects {listed}: released as it is (l_diversity would protect it)"
    for name, attribute in attributes.items():
        quasi = attribute.role is Role.QUASI_IDENTIFIER
        by_it = any(model.by_hierarchy and model.column == name for model in bound)
        if attribute.hierarchy is not None and not quasi and not by_it:
            yield (
                f"attributes.{name}.hierarchy: changes nothing, since no model measures by it "
                "(t_closeness with `distance: hierarchical` does)"
            )
    kernel = config.kernel
    trees = [a.hierarchy for a in attributes.values() if a.role is Role.QUASI_IDENTIFIER]
    for parameter in () if any(trees) else kernel.for_hierarchies:
        yield f"kernel.{parameter}: changes nothing, since no quasi-identifier has a hierarchy"
    named = any(a.role is Role.IDENTIFIER and a.pseudonym for a in attributes.values())
    if config.pseudonyms is not None and not named:
        yield "pseudonyms: changes nothing, since no identifier has `pseudonym: true`"
    if config.privacy.acknowledge_linked and not named:
        yield (
            "privacy.acknowledge_linked: changes nothing, since no identifier has `pseudonym: true`"
        )
    if config.person.fold_case and config.one_row_per_person is True and not named:
        yield (
            "person.fold_case: changes nothing, since no column says who a person is: "
            "one_row_per_person is true, and no identifier has `pseudonym: true`"
        )


def note_unused_in_memory(config: Config) -> Iterator[str]:
    """A note on what says where and how Spark works, for a table in memory."""
    places = [
        f"{section}.{name}"
        for section, names in SPARK_ONLY.items()
        for name in names
        if name in getattr(config, section).model_fields_set
    ]
    if config.release.path == UNUSED_PATH:
        places.remove("release.path")
    if config.evaluate is not None and config.evaluate.metrics is not None:
        places.append("evaluate.metrics")
    if places:
        listed = ", ".join(places)
        yield f"a release in memory is written nowhere, so this changes nothing: {listed}"
