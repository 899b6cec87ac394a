"""Which names stand for secrets: of settings, readers' options, parameters and variables."""

import re

#: Names of settings whose values are secrets, as Spark's redaction has them.
SECRET = (
    r"secret|passw|pwd|token|credential|signature"
    r"|(access|account|private|shared|api|encryption)[._-]?key"
)
_SECRET = re.compile(rf"{SECRET}|passphrase|(?<![a-z])(pass|sas|sig)(?![a-z])", re.IGNORECASE)
#: How names end that say where a secret is, or what handles it.
_ABOUT = re.compile(
    r"(provider|path|file|dir|class|type|enabled?|expiry|timeout|interval|binding|endpoint|impl"
    r"|ratio|wait)$|^spark\.kubernetes\..*\.(secrets|secretKeyRef)\.",
    re.IGNORECASE,
)
#: The account that Azure's settings end with.
_ACCOUNT = re.compile(r"\.[\w-]+\.[a-z]+\.core\.windows\.net$", re.IGNORECASE)
#: Settings that are variables of the environment elsewhere.
_ENVIRONMENT = re.compile(r"^spark\.(executorEnv|yarn\.appMasterEnv|kubernetes\.driverEnv)\.")
#: What stands before the host of a URL.
_USER = re.compile(r"://([^/\s?#;]*)@")
#: The same, before an @, with a slash in the password; what stands before a port is none.
_PASSWORD = re.compile(r"://[^:]*:(?!\d+/)")
_NO_USER = re.compile(r"[\s?#]")
#: What ends a name.
_NO_NAME = re.compile(r"[^\w.-]")
_VARIABLE = re.compile(
    rf"{SECRET}|passphrase|passcode|pass$|key$|^aws_"
    r"|(^|_)(pass|keys?|creds?|auth|sas|pin|dsn)(_|$)",
    re.IGNORECASE,
)
#: Variables that only look like it, and how those end that say where it is.
_HARMLESS = frozenset(
    {"PWD", "OLDPWD"}
    | {f"AWS_{n}" for n in ("REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ACCOUNT_ID")}
)
_PLACE = re.compile(r"_(file|path|dir|directory)$", re.IGNORECASE)


def is_secret_setting(name: str) -> bool:
    """Whether the value of a setting or of an option is a secret, by its name."""
    if _ENVIRONMENT.match(name):
        return is_secret_variable(name.rpartition(".")[2])
    name = _ACCOUNT.sub("", name)
    return bool(_SECRET.search(name)) and not _ABOUT.search(name)


def has_secret(value: str) -> bool:
    """Whether a value has a secret in it: `password=...`, as URLs and options of a Java machine
    have it, or a URL's password."""
    given = (_NO_NAME.split(before.rstrip())[-1] for before in value.split("=")[:-1])
    return has_password(value) or any(map(is_secret_setting, given))


def has_password(url: str) -> bool:
    """Whether a user and a password stand before the host of a URL."""
    if any(":" in user for user in _USER.findall(url)):
        return True
    # In parts: a search for all of it, up to the @, would read a long text again and again.
    before = (_NO_USER.split(part)[-1] for part in url.split("@")[:-1])
    return any(map(_PASSWORD.search, before))


def is_secret_variable(name: str) -> bool:
    """Whether a variable of the environment holds a secret, by its name."""
    found = _VARIABLE.search(name) and not _PLACE.search(name)
    return name not in _HARMLESS and bool(found)
