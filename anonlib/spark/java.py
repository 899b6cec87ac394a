"""The Java that Spark runs on. anonlib brings none."""

import os
import re
from shutil import which
from subprocess import CalledProcessError, run

from anonlib.errors import InputError

#: The oldest Java that Spark runs on.
OLDEST_JAVA = 17


def require_java() -> str:
    """The path of the Java that Spark will find. Raises InputError unless Spark can run on it."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else which("java")
    said = "there is no java on PATH, and JAVA_HOME is not set"
    if java:
        try:
            version = run([java, "-version"], capture_output=True, text=True, check=True).stderr
        except (OSError, CalledProcessError):
            said = f"{java} does not run"
        else:
            found = re.search(r'version "(?:1\.)?(\d+)', version)
            if found is None or int(found[1]) >= OLDEST_JAVA:
                return java
            said = f"{java} is Java {found[1]}"
    raise InputError(
        f"no Java {OLDEST_JAVA} found: {said}; install one (17, 21 or 25), and put it on PATH or "
        "set JAVA_HOME. Debian, Ubuntu: apt-get install default-jre-headless; Fedora: dnf install "
        "java-21-openjdk-headless; conda: conda install openjdk=21; macOS: brew install openjdk@21"
    )
