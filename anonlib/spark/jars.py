"""The jars of Delta, and on demand those of S3 and PostgreSQL's driver. They are fetched once, and
checked by sha256 at every use.

`python -m anonlib.spark.jars` fetches missing jars and prints all paths. With `--s3` it also
fetches those for `s3a://` paths (12 MB). From then on every session of anonlib has them.

Environment variables:

- ANONLIB_JARS: the folder of the jars.
- ANONLIB_MAVEN_URL: the base URL of a Maven repository. By default jars come from Maven Central,
  through the Ivy that Spark ships.
"""

import argparse
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
from importlib.resources import files
from pathlib import Path
from xml.sax.saxutils import quoteattr

from anonlib.errors import AnonlibError, InputError
from anonlib.progress import Wait
from anonlib.spark.java import require_java

TIMEOUT_SECONDS = 300


@dataclass(frozen=True)
class Jar:
    """The Maven coordinates of a jar, and the sha256 of its content."""

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


DELTA = "4.4.0"
STORAGE_SHA256 = "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc"
#: Delta is built for each version of Spark.
SPARK_SHA256 = {
    "4.0": "49e899667168b9412f83cbe894ce264107d7b896d6c5e12edca4e216845c1104",
    "4.1": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "4.2": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
}
#: The version of Hadoop that S3's jars belong to.
HADOOP = "3.5.0"
#: PostgreSQL's driver. It is fetched when a config reads from such a database.
POSTGRESQL = Jar(
    "org.postgresql",
    "postgresql",
    "42.7.14",
    "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
)


def list_jars(spark: str) -> tuple[Jar, ...]:
    """Delta's jars for a version of Spark, such as 4.2.0. Raises InputError if there are none."""
    minor = ".".join(spark.split(".")[:2])
    if minor not in SPARK_SHA256:
        raise InputError(
            f"this is Spark {spark}; there are Delta's jars for "
            f"{', '.join(SPARK_SHA256)}: install one of these versions of pyspark"
        )
    return (
        Jar("io.delta", f"delta-spark_{minor}_2.13", DELTA, SPARK_SHA256[minor]),
        Jar("io.delta", "delta-storage", DELTA, STORAGE_SHA256),
    )


def find_jar_folder() -> Path:
    """The folder of the jars: ANONLIB_JARS, else one in the virtual environment, else in the user's
    cache. Raises InputError where the user has no home folder, as in some containers."""
    try:
        if named := os.environ.get("ANONLIB_JARS"):
            return Path(named).expanduser().absolute()
        own = Path(sys.prefix) / "anonlib-jars"
        if own.is_dir() or os.access(sys.prefix, os.W_OK):
            return own
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Path(cache) / "anonlib" / "jars"
    except RuntimeError as error:
        raise InputError(
            "there is no home folder to keep jars in: HOME is not set, and this user is not in the "
            "list of users; set ANONLIB_JARS to the whole path of a folder for them"
        ) from error


def list_s3_jars() -> list[Jar]:
    """Hadoop's S3A and the modules of the AWS SDK that it uses. Spark has all else that they need.

    Raises:
        InputError: This Spark has another version of Hadoop.
    """
    if (there := _hadoop()) != HADOOP:
        raise InputError(
            f"s3a:// needs a Spark with Hadoop {HADOOP}, as 4.2 has; this one has "
            f"{there}, whose S3A lacks what leases rest on"
        )
    lines = (files("anonlib.spark") / "s3_jars.txt").read_text("ascii").splitlines()
    found = []
    for line in lines:
        sha256, coordinates = line.split()
        group, artifact, version = coordinates.split(":")
        found.append(Jar(group, artifact, version, sha256))
    return found


def _hadoop() -> str:
    """The version of Hadoop among Spark's jars."""
    import pyspark

    home = Path(pyspark.__file__).parent / "jars"
    found = next(iter(sorted(home.glob("hadoop-client-api-*.jar"))), None)
    return found.stem.rpartition("-")[2] if found else "none"


def ensure_postgresql_jar() -> Path:
    """The path of PostgreSQL's driver, verified, and fetched if it is missing. Raises InputError
    like `ensure_jars`."""
    path = find_jar_folder() / POSTGRESQL.name
    ensure({path: POSTGRESQL})
    return path


def ensure_jars(*, s3: bool | None = None) -> dict[Path, Jar]:
    """The jars of all sessions, by their paths in `jar_dir()`. Missing ones are fetched, and
    all are verified.

    Args:
        s3: Whether to include those of S3. By default they are included if they were fetched
            before, and this Spark can use them.

    Raises:
        InputError: There are no jars for this Spark; a jar can't be fetched; or a jar has the wrong
            content (it is then removed).
    """
    from pyspark import __version__ as spark

    folder = find_jar_folder()
    wanted = {folder / jar.name: jar for jar in list_jars(spark)}
    if (folder / "s3").is_dir() and _hadoop() == HADOOP if s3 is None else s3:
        wanted |= {folder / "s3" / jar.name: jar for jar in list_s3_jars()}
    ensure(wanted)
    return wanted


def ensure(jars: Mapping[Path, Jar]) -> None:
    """Verifies jars, by their paths in or below `jar_dir()`, and fetches missing ones. Raises
    InputError like `ensure_jars`."""
    folder = find_jar_folder()
    try:
        if missing := {path: jar for path, jar in jars.items() if not path.is_file()}:
            _fetch(missing, folder)
        for path, jar in jars.items():
            _verify(jar, path)
    except OSError as error:
        raise InputError(
            f"{folder}: {error.strerror or error}. Set ANONLIB_JARS to a folder that can be "
            "written, or that holds the jars."
        ) from error


def _verify(jar: Jar, path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != jar.sha256:
        path.unlink()
        raise InputError(
            f"{path}: sha256 is {found}, expected {jar.sha256}; the file was removed. "
            "Run again to fetch it anew, or put the right file there."
        )


def _fetch(missing: Mapping[Path, Jar], folder: Path) -> None:
    """Fetches jars into a temporary folder beside the others, verifies them, and moves them."""
    folder.mkdir(parents=True, exist_ok=True)
    what = f"{len(missing)} jars, fetched once"
    with Wait(what) as wait, tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as work:
        wait.show()
        if base := os.environ.get("ANONLIB_MAVEN_URL"):
            for jar in missing.values():
                _download(f"{base.rstrip('/')}/{jar.path_in_repository}", jar, Path(work, jar.name))
        else:
            _retrieve([*missing.values()], Path(work))
        for jar in missing.values():
            _verify(jar, Path(work, jar.name))
        for path, jar in missing.items():
            path.parent.mkdir(exist_ok=True)
            Path(work, jar.name).replace(path)


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


def _retrieve(jars: Sequence[Jar], folder: Path) -> None:
    """Fetches jars by the Ivy among pyspark's own jars. Its default settings use Maven Central."""
    import pyspark

    home = Path(pyspark.__file__).parent / "jars"
    ivy = next(iter(sorted(home.glob("ivy-*.jar"))), None)
    if ivy is None:
        raise _unreachable(jars[0], f"no Ivy among Spark's jars in {home}")
    wanted = folder / "ivy.xml"
    wanted.write_text(_ivy_file(jars), "utf-8")
    arguments = ["-cp", str(ivy), "org.apache.ivy.Main", "-warn", "-ivy", str(wanted)]
    arguments += ["-types", "jar", "-cache", str(folder / "cache")]
    arguments += ["-retrieve", str(folder / "[artifact]-[revision].[ext]")]
    options = [require_java(), *_proxy_options(os.environ)]
    said = _run([*options, *arguments], jars[0])
    if "PKIX" in said and _lacking(jars, folder):
        # Java's own list lacks a certificate authority that this machine trusts.
        said = _run([*options, *_trust_options(folder / "trust.p12"), *arguments], jars[0])
    if lacking := _lacking(jars, folder):
        reason = "the repository can't be reached or does not have it"
        if "PKIX" in said:
            reason = "Java does not trust the repository's certificate"
        raise _unreachable(lacking[0], reason)


def _ivy_file(jars: Sequence[Jar]) -> str:
    """An Ivy file that lists some jars without their dependencies."""
    lines = [
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} "
        f'rev={quoteattr(jar.version)} transitive="false" conf="default"/>'
        for jar in jars
    ]
    about = '<info organisation="anonlib" module="jars"/><dependencies>'
    return f'<ivy-module version="2.0">{about}{"".join(lines)}</dependencies></ivy-module>'


def _lacking(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    return [jar for jar in jars if not (folder / jar.name).is_file()]


def _run(command: list[str], jar: Jar) -> str:
    try:
        process = subprocess.run(
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
    return process.stdout


def _trust_options(store: Path) -> list[str]:
    """Options that make Java trust the authorities that Python trusts: those in SSL_CERT_FILE, else
    the system's."""
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
    password = "anonlib"  # of a short-lived file with public certificates
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
    """The proxy of https_proxy as options of Java, which does not read that variable."""
    proxy = environ.get("https_proxy") or environ.get("HTTPS_PROXY") or ""
    parts = urllib.parse.urlsplit(proxy)
    if not parts.hostname:
        return []
    return [f"-Dhttps.proxyHost={parts.hostname}", f"-Dhttps.proxyPort={parts.port or 80}"]


def _unreachable(jar: Jar, reason: str) -> InputError:
    return InputError(
        f"can't fetch {jar.group}:{jar.artifact}:{jar.version} ({reason}). Check the network, or "
        "set ANONLIB_MAVEN_URL to the base URL of a Maven repository that can be reached, or put "
        f"{jar.name} into {find_jar_folder()}."
    )


def fetch_jars(argv: Sequence[str] | None = None) -> int:
    """Fetch what is missing and print the paths."""
    parser = argparse.ArgumentParser("python -m anonlib.spark.jars", description=fetch_jars.__doc__)
    parser.add_argument("--s3", action="store_true", help="those for s3a:// paths too")
    try:
        paths = ensure_jars(s3=parser.parse_args(argv).s3)
    except AnonlibError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.writelines(f"{path}\n" for path in paths)
    return 0


if __name__ == "__main__":
    sys.exit(fetch_jars())
