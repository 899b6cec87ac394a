"""Processes of drivers, told from those of other hosts, containers and times."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def identity() -> dict[str, Any]:
    """This process, for others to look it up: host, its boot, the container's numbers of processes,
    pid, when it was born."""
    pid = os.getpid()
    return {**_numbering(), "pid": pid, "born": born(pid)}


def is_running(process: Mapping[str, Any]) -> bool | None:
    """Whether the process of an `identity` runs; None where it can't be looked up from here."""
    # Containers of one name, or with the name of their host, see only their own processes.
    if any(process.get(key) != value for key, value in _numbering().items()):
        return None
    pid = process.get("pid")
    # A number is used again after a while: the process must also be as old as it says.
    if not isinstance(pid, int) or born(pid) != process.get("born"):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def born(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty where the system does not say."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    return ""


def _numbering() -> dict[str, str]:
    """What two processes share that know each other by number."""
    boot = namespace = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return {"host": socket.gethostname(), "boot": boot, "namespace": namespace}
