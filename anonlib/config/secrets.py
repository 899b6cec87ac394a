"""Recognises secrets: in settings, options of readers, environment variables and URLs."""

import re

#: The pattern of names of secret settings, in the form of Spark's redaction.
SECRET = (
    r"secret|passw|pwd|token|credential|signature"
    r"|(access|account|private|shared|api|encryption)[._-]?key"
)
_SECRET = re.compile(rf"{SECRET}|passphrase|(?<![a-z])(pass|sas|sig)(?![a-z])", re.IGNORECASE)
#: Ends of names of settings that tell where a secret is, or what handles it. They hold no secret.
_ABOUT = re.compile(
    r"(provider|path|file|dir|class|type|enabled?|expiry|timeout|interval|binding|endpoint|impl"
    r"|ratio|wait)$|^spark\.kubernetes\..*\.(secrets|secretKeyRef)\.",
    re.IGNORECASE,
)
#: The account, at the end of names of Azure's settings.
_ACCOUNT = re.compile(r"\.[\w-]+\.[a-z]+\.core\.windows\.net$", re.IGNORECASE)
#: Settings that set environment variables of executors and drivers.
_ENVIRONMENT = re.compile(r"^spark\.(executorEnv|yarn\.appMasterEnv|kubernetes\.driverEnv)\.")
#: The part of a URL before its host.
_USER = re.compile(r"://([^/\s?#;]*)@")
#: The part of a URL before a password. A password may contain a slash. A port is no password.
_PASSWORD = re.compile(r"://[^:]*:(?!\d+/)")
_NO_USER = re.compile(r"[\s?#]")
#: A character that can't be in a name.
_NO_NAME = re.compile(r"[^\w.-]")
_VARIABLE = re.compile(
    rf"{SECRET}|passphrase|passcode|pass$|key$|^aws_"
    r"|(^|_)(pass|keys?|creds?|auth|sas|pin|dsn)(_|$)",
    re.IGNORECASE,
)
#: Variables whose names only look secret.
_HARMLESS = frozenset(
    {"PWD", "OLDPWD"}
    | {f"AWS_{n}" for n in ("REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ACCOUNT_ID")}
)
#: Ends of names of variables that tell where a secret is.
_PLACE = re.compile(r"_(file|path|dir|directory)$", re.IGNORECASE)


def is_secret_setting(name: str) -> bool:
    """Whether a setting or option with this name holds a secret."""
    if _ENVIRONMENT.match(name):
        return is_secret_variable(name.rpartition(".")[2])
    name = _ACCOUNT.sub("", name)
    return bool(_SECRET.search(name)) and not _ABOUT.search(name)


def has_secret(value: str) -> bool:
    """Whether a value contains a secret: the password of a URL, or `password=...`, as in URLs and
    options of a JVM."""
    names = (_NO_NAME.split(before.rstrip())[-1] for before in value.split("=")[:-1])
    return has_password(value) or any(map(is_secret_setting, names))


def has_password(url: str) -> bool:
    """Whether a URL has a user and a password before its host."""
    if any(":" in user for user in _USER.findall(url)):
        return True
    # Parts take linear time. One pattern up to the @ would read a long text again and again.
    before = (_NO_USER.split(part)[-1] for part in url.split("@")[:-1])
    return any(map(_PASSWORD.search, before))


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable with this name holds a secret."""
    secret = _VARIABLE.search(name) and not _PLACE.search(name)
    return name not in _HARMLESS and bool(secret)
