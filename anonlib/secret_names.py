"""Which names stand for secrets: of settings, readers' options, parameters and variables."""

import re

#: Names of settings whose values are secrets, as Spark's redaction has them.
SECRET = (
    r"secret|passw|pwd|token|credential|signature"
    r"|(access|account|private|shared|api|encryption)[._-]?key"
)
_SECRET = re.compile(rf"{SECRET}|passphrase|\bpass\b|\bsas\b", re.IGNORECASE)
#: How names end that say where a secret is, or what handles it.
_ABOUT = re.compile(
    r"(provider|path|file|dir|class|type|enabled|expiry|timeout|interval|binding)$", re.IGNORECASE
)
#: What stands before the host of a URL.
_USER = re.compile(r"://([^/\s?#;]*)@")
#: What ends a name.
_NO_NAME = re.compile(r"[^\w.-]")
_VARIABLE = re.compile(
    rf"{SECRET}|passphrase|passcode|pass$|key$|^aws_"
    r"|(^|_)(pass|keys?|creds?|auth|sas|pin|dsn)(_|$)",
    re.IGNORECASE,
)
#: Variables that only look like it.
_HARMLESS = frozenset({"PWD", "OLDPWD", "AWS_REGION", "AWS_DEFAULT_REGION"})


def is_secret_setting(name: str) -> bool:
    """Whether the value of a setting or of an option is a secret, by its name."""
    return bool(_SECRET.search(name)) and not _ABOUT.search(name)


def has_secret(value: str) -> bool:
    """Whether a value has a secret in it: `password=...`, as URLs and options of a Java machine
    have it, or a URL's password."""
    given = (_NO_NAME.split(before.rstrip())[-1] for before in value.split("=")[:-1])
    return has_password(value) or any(map(is_secret_setting, given))


def has_password(url: str) -> bool:
    """Whether a user and a password stand before the host of a URL."""
    return any(":" in user for user in _USER.findall(url))


def is_secret_variable(name: str) -> bool:
    """Whether a variable of the environment holds a secret, by its name."""
    return name not in _HARMLESS and bool(_VARIABLE.search(name))
