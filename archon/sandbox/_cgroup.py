"""A control group for one job: memory and processes in total, where this process may make groups.

Both hierarchies are served: version 1 (a folder per controller) and version 2 (one folder, whose parent must hand
the controllers down). Where neither can be written, `find` returns None and the engine says so in `enforces`.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from archon.sandbox.protocol import Met

_PREFIX = "archon-job-"
_REMOVE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Where groups can be made."""

    version: int
    memory: Path
    pids: Path
    """The same folder as `memory` under version 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The group of one job."""

    version: int
    memory: Path
    pids: Path

    @property
    def entrances(self) -> tuple[Path, ...]:
        """Return the files into which a process writes its id to come under the limits."""
        return tuple(folder / "cgroup.procs" for folder in dict.fromkeys((self.memory, self.pids)))

    def oom_kills(self) -> int:
        """Return how many of the job's processes the kernel ended for want of memory."""
        return _field(self.memory / ("memory.oom_control" if self.version == 1 else "memory.events"), "oom_kill")

    def met(self) -> tuple[Met, ...]:
        """Return the limits that the group met so far.

        Raises:
            OSError: the group is gone.
        """
        refused = _field(self.pids / "pids.events", "max") if (self.pids / "pids.events").exists() else 0
        return (*(("oom",) if self.oom_kills() else ()), *(("pids_limit",) if refused else ()))

    def remove(self) -> None:
        """End whatever is still in the group, and remove it.

        Raises:
            OSError: something in it still lives after five seconds.
        """
        until = time.monotonic() + _REMOVE_S
        for folder in dict.fromkeys((self.memory, self.pids)):
            while True:
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    pass
                except OSError:
                    if time.monotonic() < until:
                        kill_all(folder)
                        time.sleep(0.005)
                        continue
                    raise
                break


def find(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Hierarchy | None:
    """Return where this process can make groups with memory and process limits, tried by making one; None: nowhere."""
    for hierarchy in _candidates(root, own):
        _sweep(hierarchy)
        try:
            make(hierarchy, memory_mb=64, processes=8).remove()
        except OSError:
            continue
        return hierarchy
    return None


def make(hierarchy: Hierarchy, *, memory_mb: int, processes: int) -> Group:
    """Make a job's group.

    Raises:
        OSError: it cannot be made, or a limit cannot be set.
    """
    name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
    group = Group(version=hierarchy.version, memory=hierarchy.memory / name, pids=hierarchy.pids / name)
    try:
        for folder in dict.fromkeys((group.memory, group.pids)):
            folder.mkdir()
        limit = str(memory_mb << 20)
        # Opened for update: a limit file that does not exist must be an error, not a new file.
        if group.version == 1:
            _set(group.memory / "memory.limit_in_bytes", limit)
            if (group.memory / "memory.memsw.limit_in_bytes").exists():
                _set(group.memory / "memory.memsw.limit_in_bytes", limit)
        else:
            _set(group.memory / "memory.max", limit)
            if (group.memory / "memory.swap.max").exists():
                _set(group.memory / "memory.swap.max", "0")
        _set(group.pids / "pids.max", str(processes))
    except OSError:
        with suppress(OSError):
            group.remove()
        raise
    return group


def of_process(pid: int, name: str, root: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")) -> Group | None:
    """Return the group of a process of this machine that has `name` in its path; None where it cannot be read here.

    A daemon on another machine gives ids that mean other processes here, or none: the name tells.
    """
    with suppress(OSError):
        for place in _candidates(root, proc / str(pid) / "cgroup"):
            group = Group(version=place.version, memory=place.memory, pids=place.pids)
            if name in str(place.memory) and name in str(place.pids):
                group.met()
                return group
    return None


def kill_all(folder: Path) -> None:
    """Send SIGKILL to every process of a group; called again until none is left, so one that forks is caught too."""
    for pid in (folder / "cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _set(path: Path, value: str) -> None:
    with path.open("r+") as file:
        file.write(value)


def _candidates(root: Path, own: Path) -> list[Hierarchy]:
    """Return the places to try: below this process's own group first, then at the root."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return []
    paths = {name: path.lstrip("/") for _, names, path in lines for name in names.split(",")}
    found: list[Hierarchy] = []
    if "memory" in paths and "pids" in paths:
        below = Hierarchy(version=1, memory=root / "memory" / paths["memory"], pids=root / "pids" / paths["pids"])
        found += [below, Hierarchy(version=1, memory=root / "memory", pids=root / "pids")]
    elif "" in paths:
        found += [Hierarchy(version=2, memory=root / path, pids=root / path) for path in (paths[""], "")]
    return found


def _sweep(hierarchy: Hierarchy) -> None:
    """Remove the groups whose maker no longer exists, and end what is in them.

    The maker's id stands in the name. Where ids are reused the group waits for the next sweep.
    """
    for folder in dict.fromkeys((hierarchy.memory, hierarchy.pids)):
        for left in folder.glob(f"{_PREFIX}*"):
            pid = left.name.removeprefix(_PREFIX).partition("-")[0]
            if not Path("/proc", pid).exists():
                with suppress(OSError):  # another process sweeps it at the same time, or the kernel needs a moment
                    kill_all(left)
                    left.rmdir()


def _field(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return 0
