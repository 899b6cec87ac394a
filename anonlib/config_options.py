"""Settings of Spark and of its readers, as configs have them."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from anonlib.secret_names import has_secret, is_secret_setting


def _option_text(value: Any) -> Any:
    """YAML's true and 1 as the text that Spark's options are."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


#: How to give what is no setting of a config.
_ELSEWHERE = (
    "give them in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in Spark's own "
    "settings (spark-submit --properties-file) or by the machine's role"
)
_STORES = re.compile(
    r"\bfs\.s3[an]?\..*(access\.?key|secret|session\.?token|password)"
    r"|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)"
    r"|-Daws\.(accessKeyId|secretAccessKey|sessionToken)",
    re.IGNORECASE,
)


def _no_credentials(options: dict[str, str]) -> dict[str, str]:
    """Settings without credentials: configs are copied, mailed and committed."""
    return _without(options, lambda key, value: bool(_STORES.search(f"{key} {value}")))


def _no_fail_fast(options: dict[str, str]) -> dict[str, str]:
    """Options of readers that do not end with the text of a row they can't read."""
    if found := [key for key, value in options.items() if value.strip().lower() == "failfast"]:
        said = "Spark's event log and UI would show the rows that can't be read"
        raise ValueError(f"remove {', '.join(found)}: FAILFAST: {said}")
    return options


def _no_secrets(settings: dict[str, str]) -> dict[str, str]:
    """The same for Spark's settings, of which none may be secret."""
    return _without(settings, _is_secret)


def _is_secret(key: str, value: str) -> bool:
    # The name of a key that a service keeps.
    named = value.startswith("arn:") or value.lower() in ("true", "false")
    return (is_secret_setting(key) and not named) or has_secret(value)


def _without(options: dict[str, str], secret: Callable[[str, str], bool]) -> dict[str, str]:
    if found := sorted(key for key, value in options.items() if secret(key, value)):
        text = f"credentials don't belong in a config: remove {', '.join(found)}, and {_ELSEWHERE}"
        raise ValueError(text)
    return options


_Texts = dict[str, Annotated[str, BeforeValidator(_option_text)]]
#: Options of readers. Which others are secret is told with the source.
Options = Annotated[_Texts, AfterValidator(_no_credentials), AfterValidator(_no_fail_fast)]
#: Spark's own.
Settings = Annotated[_Texts, AfterValidator(_no_credentials), AfterValidator(_no_secrets)]
