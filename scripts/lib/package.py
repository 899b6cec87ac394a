"""Packages anonlib for a cluster, for the Python and the machine that this runs on.

    scripts/package [--out dist] [--python-prefix /usr] [--advisories all.zip ...] [--require-audit]

The wheel and the zip have the same bytes at every run. The packed environment has the packages of
scripts/lock/runtime.txt, without pyspark, which the cluster brings.
"""

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from advisories import NotAuditedError, audited_offline, audited_online, report

from anonlib.spark.jars import POSTGRESQL, Jar, ensure_jars, ensure_postgresql_jar

ROOT = Path(__file__).resolve().parents[2]
RUNTIME, TOOLS = ROOT / ".venv" / "runtime", ROOT / ".venv" / "tools"
LOCK = ROOT / "scripts" / "lock" / "runtime.txt"
README = """# anonlib {version}, packaged

| file | what it is |
| --- | --- |
| {wheel} | the wheel: anonlib alone, for an environment that has its packages |
| {zip} | the same as a zip, for `--py-files`: comes before the environment's anonlib; every \
process compiles its kernels anew |
| {environment} | anonlib and all it needs but pyspark, for `--archives {environment}#environment` |
| jars/ | Delta's jars, PostgreSQL's driver, and S3's jars where they were fetched before, for \
`--jars` |
| jobs/ | what spark-submit starts |
| conf/ | settings, for `--properties-file` |
| sbom.cdx.json | the bill of materials (CycloneDX) of the environment and the jars |
| AUDIT.txt | which of them were looked up for known vulnerabilities, and what was found |
| SHA256SUMS | of all files: `sha256sum --check SHA256SUMS` |

The environment has links to a Python {python} below {prefix}, which must be there on every node
(`scripts/package --python-prefix` links to another place), and is for {platform}.

    mkdir environment && tar -xzf {environment} -C environment   # for the driver, beside it
    spark-submit --master spark://HOST:7077 --properties-file conf/standalone.conf \\
        --archives {environment}#environment --jars "$(ls jars/*.jar | paste -sd,)" \\
        jobs/release.py CONFIG.yaml
"""


def main() -> int:
    args = arguments()
    out = args.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    with (
        (ROOT / ".venv" / "package.lock").open("w") as file,
        tempfile.TemporaryDirectory(dir=out, prefix=".package-") as work,
    ):
        fcntl.flock(file, fcntl.LOCK_EX)  # one at a time: all use the same environment
        made = Path(work)
        wheel = build_wheel(made)
        shutil.copy(wheel, made / f"anonlib-{version(wheel)}.zip")
        install(args.uv, wheel)
        pack(made / f"anonlib-{version(wheel)}-environment.tar.gz", args.python_prefix)
        jars = {**ensure_jars(), ensure_postgresql_jar(): POSTGRESQL}
        copy_rest(made, jars)
        write_bill(made / "sbom.cdx.json", jars.values())
        clean = audit(made, args.advisories)
        write_readme(made, wheel, args.python_prefix)
        write_checksums(made)
        put(made, out)
    say(f"done: {out}")
    return 0 if clean or not args.require_audit else 1


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/package", description="Makes what a cluster needs of anonlib."
    )
    parser.add_argument("--uv", default="uv", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder (dist)")
    parser.add_argument(
        "--python-prefix",
        metavar="DIR",
        help="where the nodes' Python is, /usr for /usr/bin/python3",
    )
    parser.add_argument(
        "--advisories",
        type=Path,
        nargs="+",
        default=[],
        metavar="PATH",
        help="OSV records to audit by, without a network: folders or zips, as OSV exports them for "
        "PyPI and Maven",
    )
    parser.add_argument(
        "--require-audit",
        action="store_true",
        help="exit with 1 if a package or a jar was not audited, or a vulnerability is known; "
        "jars are audited by --advisories only",
    )
    return parser.parse_args()


def build_wheel(folder: Path) -> Path:
    """Builds the wheel; hatchling gives the same bytes for the same files."""
    run("wheel", sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (wheel,) = folder.glob("*.whl")
    return wheel


def version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def install(uv: str, wheel: Path) -> None:
    """Installs into the environment to pack. Python code is compiled here once, not by every
    executor; its checks go by content, since unpacking may change times."""
    python, packages = str(RUNTIME / "bin" / "python"), RUNTIME / "lib"
    pip = [uv, "pip", "install", "--quiet", "--no-deps", "--reinstall", "--python", python]
    run("install", *pip, str(wheel))
    done = RUNTIME / "anonlib-compiled"  # of the other packages, which stay
    folders = packages.glob("*/site-packages/anonlib") if done.exists() else [packages]
    compiled = ["-m", "compileall", "-q", "-x", "/tests/", "--invalidation-mode", "unchecked-hash"]
    # Some packages have files for other versions of Python, which don't compile.
    run("compile", python, *compiled, *map(str, folders), may_fail=True)
    done.touch()


def pack(archive: Path, python_prefix: str | None) -> None:
    """Packs the environment without the packages' own tests (120 MB)."""
    prefix = [] if python_prefix is None else ["--python-prefix", python_prefix]
    tool = [str(TOOLS / "bin" / "venv-pack"), "--quiet", "--prefix", str(RUNTIME)]
    tool += ["--output", str(archive), "--compress-level", "1", "--exclude", "*/tests/*"]
    run("packed environment", *tool, *prefix)
    archive.chmod(0o644)


def copy_rest(folder: Path, jars: Iterable[Path]) -> None:
    for name, paths in {
        "jars": jars,
        "jobs": sorted((ROOT / "jobs").glob("*.py")),
        "conf": sorted((ROOT / "conf" / "spark").glob("*.conf")),
    }.items():
        (folder / name).mkdir()
        for path in paths:
            shutil.copy(path, folder / name)


def write_bill(path: Path, jars: Iterable[Jar]) -> None:
    """Writes the bill of materials: packages as installed, jars as pinned."""
    tool = [str(TOOLS / "bin" / "cyclonedx-py"), "environment", "--output-reproducible"]
    tool += ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library"]
    run("bill of materials", *tool, "-o", str(path), str(RUNTIME / "bin" / "python"))
    bill = json.loads(path.read_text("utf-8"))
    bill["components"] += [jar_component(jar) for jar in jars]
    path.write_text(json.dumps(bill, indent=2) + "\n", "utf-8")


def jar_component(jar: Jar) -> dict[str, Any]:
    purl = f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "group": jar.group,
        "name": jar.artifact,
        "version": jar.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
    }


def audit(folder: Path, advisories: list[Path]) -> bool:
    """Writes the known vulnerabilities of packages and jars; True if all were audited and none has
    any."""
    bill = json.loads((folder / "sbom.cdx.json").read_text("utf-8"))
    purls = [part["purl"] for part in bill["components"] if "purl" in part]
    try:
        if advisories:
            found = audited_offline(purls, advisories)
        else:
            found = audited_online(TOOLS / "bin" / "pip-audit", LOCK, purls)
    except NotAuditedError as error:
        text, clean = f"NOT AUDITED: {error}\n", False
    else:
        text, clean = report(found), found.clean
    (folder / "AUDIT.txt").write_text(text, "utf-8")
    say(text.rstrip())
    return clean


def write_readme(folder: Path, wheel: Path, python_prefix: str | None) -> None:
    home = Path(sys.base_prefix)
    text = README.format(
        version=version(wheel),
        wheel=wheel.name,
        zip=f"anonlib-{version(wheel)}.zip",
        environment=f"anonlib-{version(wheel)}-environment.tar.gz",
        python=f"{sys.version_info.major}.{sys.version_info.minor}",
        prefix=python_prefix or home,
        platform=f"{os.uname().sysname} on {os.uname().machine}",
    )
    (folder / "README.md").write_text(text, "utf-8")


def write_checksums(folder: Path) -> None:
    lines = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        lines.append(f"{digest}  {path.relative_to(folder)}\n")
    (folder / "SHA256SUMS").write_text("".join(lines), "utf-8")


def put(made: Path, out: Path) -> None:
    """Replaces the files of an earlier run; other files of the folder stay."""
    for path in sorted(made.iterdir()):
        there = out / path.name
        if there.is_dir():
            shutil.rmtree(there)
        path.replace(there)


def run(what: str, *command: str, may_fail: bool = False) -> None:
    """Runs a tool; shows its output if it fails."""
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode and not may_fail:
        sys.exit(f"package: {what} failed:\n{done.stdout}{done.stderr}")
    say(f"{what}: {time.monotonic() - began:.0f} s")


def say(text: str) -> None:
    sys.stderr.write(f"package: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
