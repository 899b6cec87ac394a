"""Delta's jars, and PostgreSQL's driver: fetched once, checked by sha256 at every use.

`python -m anonlib.spark.jars` fetches what is missing and prints the paths.

Environment: ANONLIB_JARS, the folder that holds them; ANONLIB_MAVEN_URL, the base URL of a Maven
repository to download from, instead of Maven Central through the Ivy that Spark ships.
"""

import contextlib
import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anonlib.errors import AnonlibError, InputError

TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Jar:
    """Maven coordinates of one jar, and the sha256 of its content."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path_in_repository(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


JARS = (
    Jar(
        "io.delta",
        "delta-spark_4.2_2.13",
        "4.4.0",
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
    Jar(
        "io.delta",
        "delta-storage",
        "4.4.0",
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
)
#: Fetched when a config reads from such a database.
POSTGRESQL = Jar(
    "org.postgresql",
    "postgresql",
    "42.7.14",
    "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
)


def jar_dir() -> Path:
    """The folder of the jars: ANONLIB_JARS, else the environment's own, else the user's cache."""
    if named := os.environ.get("ANONLIB_JARS"):
        return Path(named).expanduser().absolute()
    own = Path(sys.prefix) / "anonlib-jars"
    if own.is_dir() or os.access(sys.prefix, os.W_OK):
        return own
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "anonlib" / "jars"


def ensure_jars(jars: Sequence[Jar] = JARS) -> list[Path]:
    """Paths of the jars in `jar_dir()`, each verified; what is missing is fetched.

    Raises InputError when a jar can't be fetched, or has not the content it should have (it is
    removed then).
    """
    folder = jar_dir()
    paths = [folder / jar.name for jar in jars]
    for jar, path in zip(jars, paths, strict=True):
        try:
            if not path.is_file():
                _fetch(jar, path)
            _verify(jar, path)
        except OSError as error:
            raise InputError(
                f"{path}: {error.strerror or error}. Set ANONLIB_JARS to a folder that can be "
                "written, or that holds the jars."
            ) from error
    return paths


def _verify(jar: Jar, path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != jar.sha256:
        path.unlink()
        raise InputError(
            f"{path}: sha256 is {found}, expected {jar.sha256}; the file was removed. "
            "Run again to fetch it anew, or put the right file there."
        )


def _fetch(jar: Jar, path: Path) -> None:
    """Fetch and verify into a temporary folder beside `path`, then move into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetch-") as work:
        got = Path(work) / jar.name
        if base := os.environ.get("ANONLIB_MAVEN_URL"):
            _download(f"{base.rstrip('/')}/{jar.path_in_repository}", jar, got)
        else:
            _retrieve(jar, got)
        _verify(jar, got)
        got.replace(path)


def _download(url: str, jar: Jar, target: Path) -> None:
    try:
        if urllib.parse.urlsplit(url).scheme not in ("https", "http", "file"):
            raise ValueError("not an https URL")
        with (
            urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(response, file)
    except (OSError, ValueError) as error:
        raise _unreachable(jar, f"ANONLIB_MAVEN_URL gave {type(error).__name__}: {error}") from None


def _retrieve(jar: Jar, target: Path) -> None:
    """With the Ivy among pyspark's own jars: its built-in settings know Maven Central."""
    import pyspark

    home = Path(pyspark.__file__).parent / "jars"
    ivy = next(iter(sorted(home.glob("ivy-*.jar"))), None)
    java_home = os.environ.get("JAVA_HOME")
    java = Path(java_home, "bin", "java") if java_home else shutil.which("java")
    if ivy is None:
        raise _unreachable(jar, f"no Ivy among Spark's jars in {home}")
    if java is None:
        raise _unreachable(jar, "no Java found, set JAVA_HOME")
    arguments = ["-cp", str(ivy), "org.apache.ivy.Main"]
    arguments += ["-warn", "-notransitive", "-confs", "default", "-types", "jar"]
    arguments += ["-cache", str(target.parent / "cache")]
    arguments += ["-dependency", jar.group, jar.artifact, jar.version]
    arguments += ["-retrieve", str(target.parent / "[artifact]-[revision].[ext]")]
    options = [str(java), *_proxy_options(os.environ)]
    said = _run([*options, *arguments], jar)
    if "PKIX" in said and not target.is_file():
        # Java's own list of authorities lacks one that this machine trusts.
        said = _run([*options, *_trust_options(target.parent / "trust.p12"), *arguments], jar)
    if not target.is_file():
        reason = "the repository can't be reached or does not have it"
        if "PKIX" in said:
            reason = "Java does not trust the repository's certificate"
        raise _unreachable(jar, reason)


def _run(command: list[str], jar: Jar) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _unreachable(jar, f"no answer in {TIMEOUT_SECONDS} seconds") from None
    return done.stdout


def _trust_options(store: Path) -> list[str]:
    """Make Java trust the authorities Python trusts (SSL_CERT_FILE, else the system's)."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    authorities: list[pkcs12.PKCS12Certificate] = []
    for der in ssl.create_default_context().get_ca_certs(binary_form=True):
        with contextlib.suppress(ValueError):  # one this library can't read
            authorities.append(
                pkcs12.PKCS12Certificate(
                    x509.load_der_x509_certificate(der), b"%d" % len(authorities)
                )
            )
    if not authorities:
        return []
    password = "anonlib"  # of a file with public certificates that lives for seconds
    content = pkcs12.serialize_java_truststore(
        authorities, BestAvailableEncryption(password.encode())
    )
    store.write_bytes(content)
    return [
        f"-Djavax.net.ssl.trustStore={store}",
        "-Djavax.net.ssl.trustStoreType=PKCS12",
        f"-Djavax.net.ssl.trustStorePassword={password}",
    ]


def _proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Java's form of the proxy in https_proxy, which it does not read."""
    proxy = environ.get("https_proxy") or environ.get("HTTPS_PROXY") or ""
    parts = urllib.parse.urlsplit(proxy)
    if not parts.hostname:
        return []
    return [f"-Dhttps.proxyHost={parts.hostname}", f"-Dhttps.proxyPort={parts.port or 80}"]


def _unreachable(jar: Jar, reason: str) -> InputError:
    return InputError(
        f"can't fetch {jar.group}:{jar.artifact}:{jar.version} ({reason}). Check the network, or "
        "set ANONLIB_MAVEN_URL to the base URL of a Maven repository that can be reached, or put "
        f"{jar.name} into {jar_dir()}."
    )


def main() -> int:
    """Fetch what is missing and print the paths."""
    try:
        paths = ensure_jars()
    except AnonlibError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.writelines(f"{path}\n" for path in paths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
