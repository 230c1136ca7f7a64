"""Who started a container: enough to tell, after a crash, whether that process still lives.

A process id alone is reused; with the machine's boot id, the process's start time and its pid namespace it names one
process for ever. Of a process in another namespace or on another boot nothing can be said, so it counts as alive and
only the expiry time frees what it left.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

_PREFIX = "archon.sandbox"
EXPIRES = f"{_PREFIX}.expires_at"
PID = f"{_PREFIX}.owner_pid"
BOOT = f"{_PREFIX}.owner_boot_id"
START = f"{_PREFIX}.owner_start"
NAMESPACE = f"{_PREFIX}.owner_pid_namespace"


def labels(ttl_s: float) -> dict[str, str]:
    """Return the labels of something that this process starts now and that may live for `ttl_s` seconds."""
    pid = os.getpid()
    return {
        PID: str(pid),
        BOOT: _boot_id(),
        START: _start_ticks(pid) or "",
        NAMESPACE: _namespace(),
        EXPIRES: f"{time.time() + ttl_s:.0f}",
    }


def is_orphan(given: Mapping[str, str], now: float) -> bool:
    """Return whether what carries these labels has expired or was left by a process that is surely dead."""
    if PID not in given:
        return False
    if float(given.get(EXPIRES, "inf")) < now:
        return True
    if given.get(BOOT) != _boot_id() or given.get(NAMESPACE) != _namespace():
        return False
    return _start_ticks(int(given[PID])) != given.get(START)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


def _start_ticks(pid: int) -> str | None:
    """Return a process's start time in clock ticks since boot; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, in parentheses, may hold spaces and parentheses itself; start time is field 22 of the line.
    return stat.rpartition(")")[2].split()[19]
