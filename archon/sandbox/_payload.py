"""What is sent into a fresh environment: the job's files and stdin in one stream, and the command that unpacks them.

Files go over the program's own stdin, never through an engine's copy call: those fail on a read-only root and miss a
tmpfs. One shell line reads exactly the archive's length, unpacks it into the working folder and becomes the program,
so a job costs one start and the program's stdin begins where the archive ends. A job without files is just its command.
"""

from __future__ import annotations

import io
import secrets
import tarfile
from dataclasses import dataclass
from pathlib import PurePosixPath

from archon.sandbox.protocol import Job

WORK = "/work"
"""The working folder inside every engine."""
_SETUP_FAILED = 125
_UNPACK = (
    'head -c "$1" | tar -x -m -f - -C ' + WORK + ' || { echo "$2" >&2; exit ' + str(_SETUP_FAILED) + "; }; "
    "cd " + WORK + ' && shift 2 && exec "$@"'
)

ENVIRONMENT = {
    "HOME": WORK,
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TZ": "UTC",
}
"""The whole environment of a job. One thread for numerical libraries, which else start one per core of the machine
and meet the process limit; a fixed hash seed and time zone so that the same program gives the same result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One job, ready to send."""

    argv: tuple[str, ...]
    """The command that unpacks the files and becomes the job's program."""
    stdin: bytes
    """The archive, then the job's own stdin."""
    mark: bytes
    """What stands on stderr when unpacking failed; the program cannot know it. Empty: there was nothing to unpack."""
    bare: tuple[str, ...] | None = None
    """The job's own command where there is nothing to unpack, for an engine that can tell that a command is missing."""

    def setup_failed(self, exit_code: int | None, stderr: bytes) -> bool:
        """Return whether the engine's own unpacking failed rather than the program."""
        return exit_code == _SETUP_FAILED and self.mark != b"" and self.mark in stderr


def pack(job: Job) -> Payload:
    """Return a job's payload.

    Raises:
        ValueError: no command, a path that is not relative and plain, or files that do not fit `limits.disk_mb`.
    """
    if not job.argv:
        raise ValueError("a job needs a command; argv is empty")
    if not job.files:
        # Through a shell too, so that a command that does not exist ends with 127 in every engine.
        through_shell = ("/bin/sh", "-c", 'exec "$@"', "sh", *job.argv)
        return Payload(argv=through_shell, stdin=job.stdin, mark=b"", bare=job.argv)
    size = sum(len(content) for _, content in job.files)
    if size > job.limits.disk_mb << 20:
        raise ValueError(f"the job's files have {size} bytes and its folder holds disk_mb={job.limits.disk_mb!r}")
    archive = _archive(job.files)
    mark = secrets.token_hex(16)
    return Payload(
        argv=("/bin/sh", "-c", _UNPACK, "sh", str(len(archive)), mark, *job.argv),
        stdin=archive + job.stdin,
        mark=mark.encode(),
    )


def _archive(files: tuple[tuple[str, bytes], ...]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            path = PurePosixPath(name)
            if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
                raise ValueError(f"a job's file needs a relative path without '..', not {name!r}")
            entry = tarfile.TarInfo(str(path))
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
