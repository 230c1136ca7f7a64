"""Durable code-fix jobs: one folder each, with everything that the job needs to be run or gone on with.

A job's folder holds the request, a snapshot of the tree taken when it was submitted, and the run itself. Its state is
not stored but read off: a result means done, a cancel mark means cancelled, a held lock means running, anything else is
waiting, whether it never began or its process was killed. So no crash can leave a state that is not true.
"""

from __future__ import annotations

import fcntl
import io
import secrets
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from archon.codefix._write import write_atomically
from archon.codefix.archives import read_archive
from archon.codefix.types import Instance, Tree
from archon.errors import RunError, nearest
from archon.run.codec import dumps, loads

JobState = Literal["waiting", "running", "done", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked for: enough to run the job on another day."""

    id: str
    repository: str
    """Where the tree was read from; the job itself works on its snapshot."""
    submitted_utc: str
    statement: str
    test_command: tuple[str, ...]
    pipeline_yaml: str
    rounds: int
    repeats: int
    seed: int
    test_seconds: float
    budget_tokens: int | None = None
    budget_usd: float | None = None
    budget_seconds: float | None = None
    budget_calls: int | None = None
    links: tuple[str, ...] = ()
    """Symlinks and nested repositories of the folder, which no patch may touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a job ended."""

    status: str
    """A grade's status; `no_patch` when no candidate could be applied."""
    fixed: bool
    detail: str = ""
    calls: int = 0
    tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The jobs of one folder. Several processes may submit, list and cancel at once; each job runs in one at a time."""

    folder: Path

    def submit(self, request: Request, tree: Tree) -> Request:
        """Store a job and return its request with the id that it got.

        Raises:
            RunError: the folder cannot be written; nothing of the job is left then.
        """
        identity = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        request = replace(request, id=identity)
        try:
            home = self.folder / identity
            home.mkdir(parents=True)
            (home / "tree.tar").write_bytes(_packed(tree))
            # The request comes last: a folder without one is no job.
            write_atomically(home / "request.json", dumps(request).decode())
        except OSError as error:
            raise RunError(f"cannot store a job in {str(self.folder)!r}: {error.strerror or error}") from error
        return request

    def __iter__(self) -> Iterator[Request]:
        """Return the jobs, oldest first."""
        if self.folder.is_dir():
            for home in sorted(self.folder.iterdir()):
                if (home / "request.json").is_file():
                    yield self.request(home.name)

    def home(self, identity: str) -> Path:
        """Return a job's folder.

        Raises:
            RunError: there is no such job.
        """
        home = self.folder / identity
        if "/" in identity or not (home / "request.json").is_file():
            known = [each.parent.name for each in self.folder.glob("*/request.json")]
            raise RunError(f"no job {identity!r} in {str(self.folder)!r}; {nearest(identity, known)}")
        return home

    def request(self, identity: str) -> Request:
        """Return what was asked for.

        Raises:
            RunError: there is no such job, or its request is damaged.
        """
        path = self.home(identity) / "request.json"
        try:
            return loads(Request, path.read_bytes())
        except ValueError as error:
            raise RunError(f"{str(path)!r} is damaged: {error}; submit the job again") from error

    def instance(self, identity: str) -> Instance:
        """Return a job's instance, with the tree as it was when the job was submitted."""
        asked = self.request(identity)
        return Instance(
            id=identity,
            tree=read_archive(self.home(identity) / "tree.tar"),
            statement=asked.statement,
            test_command=asked.test_command,
        )

    def state(self, identity: str) -> JobState:
        """Return where a job stands."""
        home = self.home(identity)
        if (home / "result.json").is_file():
            return "done"
        if _is_locked(home / "lock"):
            return "running"
        return "cancelled" if self.is_cancelled(identity) else "waiting"

    def result(self, identity: str) -> Result | None:
        """Return how a job ended; None while it has not."""
        with suppress(OSError, ValueError):
            return loads(Result, (self.home(identity) / "result.json").read_bytes())
        return None

    def finish(self, identity: str, result: Result) -> None:
        """Store how a job ended."""
        write_atomically(self.home(identity) / "result.json", dumps(result).decode())

    def cancel(self, identity: str) -> JobState:
        """Mark a job as cancelled and return its state: one that runs stops within about a second."""
        if self.state(identity) != "done":
            (self.home(identity) / "cancelled").touch()
        return self.state(identity)

    def is_cancelled(self, identity: str) -> bool:
        """Return whether somebody cancelled a job."""
        return (self.home(identity) / "cancelled").exists()

    def revive(self, identity: str) -> None:
        """Take a cancel mark away, so that the job may be gone on with."""
        (self.home(identity) / "cancelled").unlink(missing_ok=True)


def _is_locked(path: Path) -> bool:
    try:
        with path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _packed(tree: Tree) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file in tree:
            member = tarfile.TarInfo(file.path)
            member.size, member.mode = len(file.content), 0o755 if file.executable else 0o644
            archive.addfile(member, io.BytesIO(file.content))
    return buffer.getvalue()
