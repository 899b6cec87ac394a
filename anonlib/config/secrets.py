"""Tells secrets by their names: settings, options of readers, environment variables, URLs."""

import re

#: Pattern of the names of secret settings, as Spark's redaction has it.
SECRET = (
    r"secret|passw|pwd|token|credential|signature"
    r"|(access|account|private|shared|api|encryption)[._-]?key"
)
_SECRET = re.compile(rf"{SECRET}|passphrase|(?<![a-z])(pass|sas|sig)(?![a-z])", re.IGNORECASE)
#: Ends of names of settings that tell where a secret is or what handles it, not the secret.
_ABOUT = re.compile(
    r"(provider|path|file|dir|class|type|enabled?|expiry|timeout|interval|binding|endpoint|impl"
    r"|ratio|wait)$|^spark\.kubernetes\..*\.(secrets|secretKeyRef)\.",
    re.IGNORECASE,
)
#: The account at the end of Azure's settings.
_ACCOUNT = re.compile(r"\.[\w-]+\.[a-z]+\.core\.windows\.net$", re.IGNORECASE)
#: Settings that set environment variables of executors and drivers.
_ENVIRONMENT = re.compile(r"^spark\.(executorEnv|yarn\.appMasterEnv|kubernetes\.driverEnv)\.")
#: The part of a URL before its host.
_USER = re.compile(r"://([^/\s?#;]*)@")
#: The beginning of a URL up to a password, which may have a slash; a port is no password.
_PASSWORD = re.compile(r"://[^:]*:(?!\d+/)")
_NO_USER = re.compile(r"[\s?#]")
#: A character that ends a name.
_NO_NAME = re.compile(r"[^\w.-]")
_VARIABLE = re.compile(
    rf"{SECRET}|passphrase|passcode|pass$|key$|^aws_"
    r"|(^|_)(pass|keys?|creds?|auth|sas|pin|dsn)(_|$)",
    re.IGNORECASE,
)
#: Variables that only look secret.
_HARMLESS = frozenset(
    {"PWD", "OLDPWD"}
    | {f"AWS_{n}" for n in ("REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ACCOUNT_ID")}
)
#: Ends of variables that tell where a secret is.
_PLACE = re.compile(r"_(file|path|dir|directory)$", re.IGNORECASE)


def is_secret_setting(name: str) -> bool:
    """Whether the value of a setting or option of this name is a secret."""
    if _ENVIRONMENT.match(name):
        return is_secret_variable(name.rpartition(".")[2])
    name = _ACCOUNT.sub("", name)
    return bool(_SECRET.search(name)) and not _ABOUT.search(name)


def has_secret(value: str) -> bool:
    """Whether a value contains a secret: `password=...`, as in URLs and options of a JVM, or the
    password of a URL."""
    names = (_NO_NAME.split(before.rstrip())[-1] for before in value.split("=")[:-1])
    return has_password(value) or any(map(is_secret_setting, names))


def has_password(url: str) -> bool:
    """Whether a user and a password stand before the host of a URL."""
    if any(":" in user for user in _USER.findall(url)):
        return True
    # In parts, in linear time: one pattern up to the @ would read a long text again and again.
    before = (_NO_USER.split(part)[-1] for part in url.split("@")[:-1])
    return any(map(_PASSWORD.search, before))


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable of this name holds a secret."""
    secret = _VARIABLE.search(name) and not _PLACE.search(name)
    return name not in _HARMLESS and bool(secret)
