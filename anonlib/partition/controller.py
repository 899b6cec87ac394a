"""Data controllers: the rows of each are anonymized on their own."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, field_serializer, field_validator

from anonlib import registry
from anonlib.errors import ConfigError
from anonlib.partition import Partitioner
from anonlib.privacy import PrivacyModel


class Controller(Partitioner):
    """Keeps the rows of each value of `column` (a hospital, a country) apart. Later steps work on
    the rows of one controller at a time, and no cell has rows of two. It must be the first step.

    - `models` gives single controllers, by their value, further models for their rows, in addition
      to the config's.
    - If a controller's rows can't hold its models, they are suppressed within the suppression
      limit, or the run fails. With `merge`, the controller joins the nearest one instead (by the
      means of the numeric columns), and both count as one controller.
    - A missing value is a controller of its own.
    - The audit counts the rows of each controller separately. Combinations of insensitive columns
      are checked against the config's k, over all controllers.
    - The column is published only if it is a quasi-identifier.

    Reference: the parties of S. De Capitani di Vimercati et al., TA_DA, section III. Cost: a count
    of the controllers.
    """

    type: ClassVar[str] = "controller"
    column: str = Field(min_length=1, description="the column that says whose a row is")
    models: dict[str, tuple[PrivacyModel, ...]] = Field(
        default={}, description="further privacy models of single controllers, by their value"
    )
    merge: bool = Field(
        default=False, description="whether controllers that fail alone join the nearest one"
    )

    @field_validator("models", mode="before")
    @classmethod
    def _build(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {str(name): _build_models(specs) for name, specs in value.items()}

    @field_serializer("models")
    def _specs(self, models: dict[str, tuple[PrivacyModel, ...]]) -> dict[str, Any]:
        # Pydantic would dump the models as the bare base class.
        return {name: [registry.spec(model) for model in each] for name, each in models.items()}


def _build_models(specs: Any) -> Any:
    if not isinstance(specs, list | tuple):
        raise ValueError("each controller has a list of privacy models")
    return tuple(s if isinstance(s, PrivacyModel) else _model(s) for s in specs)


def _model(spec: Any) -> PrivacyModel:
    if not isinstance(spec, Mapping) or "type" not in spec:
        raise ValueError("name each privacy model by `type`")
    try:
        built: PrivacyModel = registry.build("privacy model", spec)
    except ConfigError as error:
        raise ValueError(error.line) from None
    return built
