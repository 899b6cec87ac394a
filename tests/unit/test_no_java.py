"""Machines without a Java that Spark runs on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "there is no java on PATH, and JAVA_HOME is not set"),
        ("exit 1", "bin/java does not run"),
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "bin/java is Java 11"),
        ("echo 'java version \"1.8.0_292\"' >&2", "bin/java is Java 8"),
    ],
)
def test_no_java(tmp_path: Path, script: str | None, said: str) -> None:
    """In a process of its own, which has no JVM."""
    code = (
        "from anonlib.errors import InputError\n"
        "from anonlib.spark.java import require_java\n"
        "try:\n    require_java()\nexcept InputError as error:\n    print(error)\n"
    )
    environment = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}
    environment["PATH"] = str(tmp_path)
    if script is not None:
        (tmp_path / "bin").mkdir()
        java = tmp_path / "bin" / "java"
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        environment["JAVA_HOME"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.startswith("no Java 17 found: ")
    assert said in done.stdout
    assert "apt-get install default-jre-headless" in done.stdout
