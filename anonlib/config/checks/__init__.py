"""Checks of a config beyond the types of its fields, before any table is read."""

from anonlib.config.checks.attributes import check_attributes, check_hierarchies, check_names
from anonlib.config.checks.context_section import check_context, check_review
from anonlib.config.checks.evaluate_section import check_gates, check_measures
from anonlib.config.checks.partition_section import check_steps
from anonlib.config.checks.persons import check_persons, check_pseudonyms
from anonlib.config.checks.privacy_section import check_models, check_suppression, check_unit_models
from anonlib.config.checks.recode_section import check_recoders
from anonlib.config.checks.release_section import check_keys, check_ledger, check_partition_by
from anonlib.config.checks.source_section import check_source
from anonlib.config.checks.spark_section import check_spark
from anonlib.config.model import Config
from anonlib.config.places import check_places
from anonlib.config.policies.judgement import check_policy
from anonlib.errors import Problem


def check_config(config: Config) -> list[Problem]:
    """All problems that can be found without the source. Reads the files of hierarchies."""
    attributes, models = config.attributes, config.all_models
    return [
        *check_source(config.source),
        *check_spark(config.spark),
        *check_names(attributes),
        *check_attributes(attributes, config.kernel, config.privacy, models),
        *check_hierarchies(attributes, models),
        *check_persons(attributes, config.one_row_per_person, config.unit),
        *check_pseudonyms(
            attributes,
            config.pseudonyms,
            config.privacy,
            config.one_row_per_person,
            config.release,
        ),
        *check_keys(config.release, config.pseudonyms),
        *check_ledger(config.release, config.one_row_per_person, config.unit),
        *check_models(attributes, config.privacy, models),
        *check_unit_models(config.unit, models, config.release, config.partition.controller),
        *check_recoders(attributes, config.recode),
        *check_steps(config),
        *check_suppression(config.privacy, models),
        *check_partition_by(config.release.partition_by, attributes),
        *check_places(config),
        *check_measures(config.measures, attributes),
        *check_gates(config.gates, config.evaluate, attributes, models),
        *check_context(config.context, attributes, models, joint=config.privacy.joint),
        *check_policy(config),
        *check_review(config.review, attributes),
    ]
