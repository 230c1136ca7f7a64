"""What a sandbox engine does: run one program from a set of files, under limits, and say how it ended.

An engine takes a `Job` and returns an `Outcome`; nothing of a job outlives it. Judging is built on top, in
`structured.py` (expected values never enter the sandbox) and `program.py` (a test program in the candidate's own
process: a lower level of trust).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

End = Literal["exited", "timeout", "oom", "output_limit", "infra_error"]
"""How a job ended: by itself (read `exit_code`), at a limit, or because the engine failed."""

Met = Literal["oom", "pids_limit", "disk_limit"]
"""A limit that part of a job met: a process was killed for want of memory, a fork was refused, a folder was full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one job may use."""

    wall_s: float = 10.0
    memory_mb: int = 512
    processes: int = 32
    output_bytes: int = 1_000_000
    """Per stream; what a job writes beyond it ends the job."""
    disk_mb: int = 64
    """The size of the writable folder, which is in memory and counts towards `memory_mb` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One program to run: the container starts with `files` in its working folder and nothing else that is writable."""

    argv: tuple[str, ...]
    files: tuple[tuple[str, bytes], ...] = ()
    """Relative path and content."""
    stdin: bytes = b""
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended and what it printed."""

    end: End
    exit_code: int | None
    """None unless it exited by itself."""
    stdout: bytes
    stderr: bytes
    wall_s: float
    detail: str = ""
    """For `infra_error`: what the engine said."""
    met: tuple[Met, ...] = ()
    """Limits on memory and processes that the kernel counted for this job, whether or not they ended it."""


@runtime_checkable
class Sandbox(Protocol):
    """An engine that contains untrusted programs: no network, a non-root user, limits on everything."""

    @property
    def engine(self) -> str:
        """Return `docker`, `bubblewrap`, or a test double's name, as reports show it."""
        ...

    @property
    def enforces(self) -> tuple[str, ...]:
        """Return what it holds jobs to, and what it cannot, in words for reports."""
        ...

    async def run(self, job: Job) -> Outcome:
        """Run one job in a fresh environment. Never raises for what the program does.

        Raises:
            SandboxFailed: the engine could not run it, after its own retries.
        """
        ...

    async def close(self) -> None:
        """Remove everything that the engine started; calling it twice is fine."""
        ...
