"""The machine around a sandbox, before and after a case: what a case may not change."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from archon.sandbox.docker import DockerSandbox
from archon.sandbox.protocol import Sandbox

MOST_GROWN_MB = 64
_SETTLE_S = 10.0
"""A daemon removes what was killed in its own time; on a busy machine that is seconds."""


class Surroundings:
    """One case's view of the machine: its mark, a file that it must not see, and this process's memory."""

    def __init__(self) -> None:
        self.mark = str(10**9 + secrets.randbelow(10**9))
        self.canary = ""
        self.grown_mb = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch one case: a secret in this process's environment, one in a file, and memory as it grows."""
        over = threading.Event()
        with tempfile.NamedTemporaryFile("w", prefix="archon-canary-") as file:
            file.write(self.mark)
            file.flush()
            Path(file.name).chmod(0o644)
            self.canary = file.name
            os.environ["ARCHON_CANARY"] = self.mark
            watch = threading.Thread(target=self._watch_memory, args=(resident_mb(), over))
            watch.start()
            try:
                yield
            finally:
                over.set()
                watch.join()
                del os.environ["ARCHON_CANARY"]
            if Path(file.name).read_text() != self.mark:
                raise SystemExit(f"a job changed {file.name!r}")

    def _watch_memory(self, before_mb: float, over: threading.Event) -> None:
        while True:
            self.grown_mb = max(self.grown_mb, resident_mb() - before_mb)
            if over.wait(0.05):
                return

    async def left(self, sandbox: Sandbox) -> tuple[str, ...]:
        """Return what a case left behind, once the engine has had its time to clear up."""
        found: list[str] = []
        until = time.monotonic() + _SETTLE_S
        while True:
            found = [*self._processes(), *self._files(), *await asyncio.to_thread(engine_leavings, sandbox)]
            if not found or time.monotonic() > until:
                return tuple(found)
            await asyncio.sleep(0.1)

    def _processes(self) -> list[str]:
        return [f"process {line!r}" for pid, line in processes() if self.mark in line and pid != os.getpid()]

    def _files(self) -> list[str]:
        folders = ("/tmp", "/dev/shm", "/var/tmp", "/work", Path.home(), Path.cwd())
        found = [path for folder in folders for path in Path(folder).glob(f"*{self.mark}*")]
        return [f"file {str(path)!r}" for path in found]


def resident_mb() -> float:
    """Return this process's resident memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def processes() -> Iterator[tuple[int, str]]:
    """Yield every process's id and command line, as this process sees them: those of all sandboxes too."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                yield (
                    int(folder.name),
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"),
                )
            except OSError:
                continue  # it ended meanwhile


def engine_leavings(sandbox: Sandbox) -> list[str]:
    """Return what an idle sandbox has beside its untouched warm containers: containers, processes, groups."""
    if isinstance(sandbox, DockerSandbox):
        label = next(f"{key}={value}" for key, value in sandbox._label.items())
        ours = {found["Id"] for found in sandbox._api.containers(all=True, filters={"label": label})}
        if sandbox._pending:
            return ["the engine is still clearing up"]
        warm = {container.id for pool in sandbox._pool.values() for container in pool}
        return [f"container {one[:12]}" for one in ours - warm]
    groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/archon-job-{os.getpid()}-*")]
    children = [f"process {line[:60]!r}" for pid, line in processes() if "bwrap" in line and parent(pid) == os.getpid()]
    return [*(f"control group {path!r}" for path in groups), *children]


def parent(pid: int) -> int:
    """Return a process's parent; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def dangling_mounts(live_containers: Callable[[], int]) -> list[str]:
    """Return mounts of the Docker engine beyond one for each of its live containers, after some patience."""
    until = time.monotonic() + _SETTLE_S
    while True:
        roots = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if "/merged " in line]
        if len(roots) <= live_containers() or time.monotonic() > until:
            return roots[live_containers() :]
        time.sleep(0.2)
