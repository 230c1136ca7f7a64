"""Which processes belong to a server, read from /proc (Linux). Standard library only: the supervisor uses it too.

vLLM is three processes or more. They share the session that the supervisor opened, they inherit an environment
variable, and they descend from it; a process may leave the first (setsid) or overwrite the second (its title), so
`members` asks for any of the three.
"""

import os
from pathlib import Path

MARK = "ARCHON_SERVER"
"""The environment variable that every process of a server inherits."""


def start_time(pid: int) -> int | None:
    """Return when a living process started, in ticks since boot; None when it is gone or a zombie.

    A process id with its start time is never used twice.
    """
    stat = _stat(pid)
    return None if stat is None or stat[0] in "ZX" else int(stat[19])


def _stat(pid: int) -> list[str] | None:
    """Return /proc/PID/stat after the command name: state, parent, group, session, ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _has_mark(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # gone, or another user's
        return False


def members(supervisor: int, server_id: str) -> frozenset[int]:
    """Return the living processes of a server, its supervisor and this process left out."""
    mark = f"{MARK}={server_id}".encode()
    stats = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := _stat(int(name)))}
    family, grown = {supervisor}, True
    while grown:
        born = {pid for pid, stat in stats.items() if int(stat[1]) in family} - family
        family |= born
        grown = bool(born)
    alive = {pid for pid, stat in stats.items() if stat[0] not in "ZX"} - {supervisor, os.getpid()}
    return frozenset(pid for pid in alive if pid in family or int(stats[pid][3]) == supervisor or _has_mark(pid, mark))


def shared_memory(pids: frozenset[int]) -> frozenset[str]:
    """Return the named shared memory that processes have mapped: paths under /dev/shm that still exist."""
    found = set()
    for pid in pids:
        try:
            maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # gone, or another user's
            continue
        found |= {line[line.index("/dev/shm/") :] for line in maps.splitlines() if "/dev/shm/" in line}  # noqa: S108
    return frozenset(path for path in found if os.path.exists(path))
