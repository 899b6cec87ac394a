"""Known vulnerabilities of packages, from a vulnerability service or from OSV records."""

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from packaging.version import InvalidVersion, Version

TIMEOUT_SECONDS = 300
#: How OSV names what the types of package URLs stand for.
ECOSYSTEMS = {"pypi": "PyPI", "maven": "Maven"}
OTHERWISE = "Give OSV's exports with --advisories (the zips of the ecosystems PyPI and Maven)."


class NotAuditedError(Exception):
    """The packages could not be audited; the text says why."""


@dataclass(frozen=True)
class Found:
    """by: who was asked; packages, jars: how many were looked up; vulnerabilities: (package, id);
    not_audited: the jars that nobody was asked about."""

    by: str
    packages: int
    jars: int
    vulnerabilities: tuple[tuple[str, str], ...]
    not_audited: int = 0

    @property
    def clean(self) -> bool:
        """Whether all packages were audited and none has a known vulnerability."""
        return not self.vulnerabilities and not self.not_audited


def report(found: Found) -> str:
    """Text: the audited packages, their known vulnerabilities, the packages that were not
    audited."""
    what = f"{found.packages} Python packages" + (f" and {found.jars} jars" if found.jars else "")
    verdict = "KNOWN VULNERABILITIES:" if found.vulnerabilities else "no vulnerability is known"
    lines = [f"audited: {what} by {found.by}; {verdict}"]
    lines += [f"{package}: {id}" for package, id in found.vulnerabilities]
    if found.not_audited:
        lines.append(f"NOT AUDITED: {found.not_audited} jars. {OTHERWISE}")
    return "\n".join(lines) + "\n"


def audited_online(tool: Path, lock: Path, purls: Sequence[str]) -> Found:
    """Asks pip-audit, which knows Python packages only; jars count as not audited. Raises
    NotAuditedError when there is no answer."""
    command = [str(tool), "--requirement", str(lock), "--disable-pip", "--format", "json"]
    command += ["--progress-spinner", "off", "--timeout", "15"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        asked = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        text = f"the vulnerability service gave no answer: is the network there? {OTHERWISE}"
        raise NotAuditedError(text) from None
    if skipped := [package["name"] for package in asked if "vulns" not in package]:
        some = ", ".join(skipped[:5])
        raise NotAuditedError(
            f"the vulnerability service knows nothing of {len(skipped)} of {len(asked)} packages "
            f"({some}, ...). {OTHERWISE}"
        )
    known = [
        (f"{package['name']} {package['version']}", vulnerability["id"])
        for package in asked
        for vulnerability in package["vulns"]
    ]
    jars = sum(ecosystem == "Maven" for ecosystem, _, _ in map(parts, purls))
    return Found("pip-audit", len(asked), 0, tuple(sorted(known)), not_audited=jars)


def audited_offline(purls: Sequence[str], paths: Sequence[Path]) -> Found:
    """Looks packages up in OSV records. Raises NotAuditedError if an ecosystem has no records."""
    wanted = {(ecosystem, name): version for ecosystem, name, version in map(parts, purls)}
    seen: set[str] = set()
    known = set()
    for record in records(paths):
        for affected in record.get("affected", ()):
            package = affected.get("package", {})
            ecosystem = package.get("ecosystem", "")
            seen.add(ecosystem)
            name = normal(ecosystem, package.get("name", ""))
            version = wanted.get((ecosystem, name))
            if version and "withdrawn" not in record and affects(affected, ecosystem, version):
                known.add((f"{name} {version}", record["id"]))
    if missing := sorted({ecosystem for ecosystem, _ in wanted} - seen):
        raise NotAuditedError(f"--advisories has no records of {', '.join(missing)}")
    jars = sum(ecosystem == "Maven" for ecosystem, _ in wanted)
    return Found("OSV records", len(wanted) - jars, jars, tuple(sorted(known)))


def parts(purl: str) -> tuple[str, str, str]:
    """Ecosystem, name and version of a package URL."""
    type, _, rest = purl.removeprefix("pkg:").partition("/")
    name, _, version = rest.partition("?")[0].rpartition("@")
    name = unquote(name)
    ecosystem = ECOSYSTEMS[type]
    return ecosystem, normal(ecosystem, name.replace("/", ":")), unquote(version)


def normal(ecosystem: str, name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower() if ecosystem == "PyPI" else name


def records(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Raises NotAuditedError for what can't be read."""
    for path in paths:
        try:
            if path.is_dir():
                for file in sorted(path.rglob("*.json")):
                    yield json.loads(file.read_bytes())
            else:
                with zipfile.ZipFile(path) as archive:
                    for name in archive.namelist():
                        if name.endswith(".json"):
                            yield json.loads(archive.read(name))
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise NotAuditedError(f"{path}: no OSV records ({type(error).__name__})") from None


def affects(affected: Mapping[str, Any], ecosystem: str, version: str) -> bool:
    """Whether a version is listed, or lies in a range."""
    if version in affected.get("versions", ()):
        return True
    ranges = [r for r in affected.get("ranges", ()) if r.get("type") in ("ECOSYSTEM", "SEMVER")]
    return any(within(r.get("events", ()), ecosystem, version) for r in ranges)


def within(events: Sequence[Mapping[str, str]], ecosystem: str, version: str) -> bool:
    """OSV's rule: of the events in order of version, the last one at or below this version
    counts."""
    ours = order(ecosystem, version)
    hit = False
    for event in sorted(events, key=lambda event: order(ecosystem, next(iter(event.values())))):
        ((kind, at),) = event.items()
        place = order(ecosystem, at)
        if kind == "introduced" and place <= ours:
            hit = True
        elif (kind == "fixed" and place <= ours) or (kind == "last_affected" and place < ours):
            hit = False
    return hit


def order(ecosystem: str, version: str) -> Any:
    """A key to compare versions of one ecosystem by."""
    if version == "0":  # before all
        return (0,)
    if ecosystem == "PyPI":
        try:
            return (1, Version(version))
        except InvalidVersion:
            return (0,)  # rather affected than not
    return (1, *[int(part) for part in re.findall(r"\d+", version)])
