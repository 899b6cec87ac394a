"""Settings of Spark and of its readers, as configs have them."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator


def _option_text(value: Any) -> Any:
    """YAML's true and 1 as the text that Spark's options are."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_CREDENTIALS = re.compile(
    r"\bfs\.s3[an]?\..*(access\.?key|secret|session\.?token|password)"
    r"|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)"
    r"|-Daws\.(accessKeyId|secretAccessKey|sessionToken)",
    re.IGNORECASE,
)


def _no_credentials(options: dict[str, str]) -> dict[str, str]:
    """Settings without the keys of an object store: configs are copied, mailed and committed."""
    named = (key for key, value in options.items() if _CREDENTIALS.search(f"{key} {value}"))
    if found := sorted(named):
        raise ValueError(
            f"credentials don't belong in a config: remove {', '.join(found)}, and give them in "
            "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or by the machine's role"
        )
    return options


Options = Annotated[
    dict[str, Annotated[str, BeforeValidator(_option_text)]], AfterValidator(_no_credentials)
]
