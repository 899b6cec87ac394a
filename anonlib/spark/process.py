"""The process of a driver, as others can look it up: across hosts, containers and boots."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def identify_process() -> dict[str, Any]:
    """The identity of this process, for `is_running`: host, boot, namespace of process ids, process
    id, time of birth."""
    pid = os.getpid()
    return {**_numbering(), "pid": pid, "born": find_birth(pid)}


def is_running(process: Mapping[str, Any]) -> bool | None:
    """Whether a process that identified itself runs; None if it can't be looked up from here."""
    # Two containers, or a container and its host, can share a name but not their processes.
    if any(process.get(key) != value for key, value in _numbering().items()):
        return None
    pid = process.get("pid")
    # Process ids are reused. So the time of birth must be the same too.
    if not isinstance(pid, int) or find_birth(pid) != process.get("born"):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def find_birth(pid: int) -> str:
    """When a process began, in kernel ticks; empty if unknown."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    return ""


def _numbering() -> dict[str, str]:
    """Host, boot and namespace. Process ids are unique among processes that share all three."""
    boot = namespace = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    with suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return {"host": socket.gethostname(), "boot": boot, "namespace": namespace}
