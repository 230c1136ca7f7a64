"""The register of the servers on this machine: who they are and where they answer.

Under Archon's home, `servers/KEY/` holds for each model-with-options: `lock` (held while anybody joins, starts or
ends), `users-ID` (the shared lock of one server), `server.json` (who and where).
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from archon.serving._processes import start_time
from archon.serving.command import Launch
from archon.serving.home import home
from archon.serving.options import ServeOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """A server that was started on this machine, as the register has it."""

    model: str
    port: int
    pid: int
    """The supervisor's."""
    started_ticks: int
    """The supervisor's start time, which tells it from a later process of the same id."""
    server_id: str
    parameters: int | None
    log_path: str

    @property
    def base_url(self) -> str:
        """Return the endpoint, up to and including the version."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def is_alive(self) -> bool:
        """Return whether its supervisor runs."""
        return start_time(self.pid) == self.started_ticks


def running_servers() -> tuple[ServerRecord, ...]:
    """Return the servers that run on this machine under this home."""
    records = (read_record(path.parent) for path in sorted((home() / "servers").glob("*/server.json")))
    return tuple(record for record in records if record is not None and record.is_alive)


def folder_of(launch: Launch, options: ServeOptions) -> Path:
    """Return a launch's folder: the same for equal models and options, whatever the time-out."""
    same = asdict(replace(options, start_timeout_s=1.0))
    text = json.dumps([launch.model.source, sys.prefix, same], sort_keys=True)
    return home() / "servers" / f"{launch.model.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def users_path(folder: Path, server_id: str) -> Path:
    """Return the lock that a server's users share."""
    return folder / f"users-{server_id}"


def read_record(folder: Path) -> ServerRecord | None:
    """Return a folder's server, whether it runs or not; None when there is none to trust."""
    try:
        return ServerRecord(**json.loads(_record_path(folder).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):  # none, or written by another version: its lock decides
        return None


def write_record(folder: Path, record: ServerRecord) -> None:
    """Enter a server, at once or not at all."""
    temporary = folder / "server.json.tmp"
    temporary.write_text(json.dumps(asdict(record)), encoding="utf-8")
    temporary.replace(_record_path(folder))


def forget(folder: Path, record: ServerRecord) -> None:
    """Take a server that has ended out of the register, unless another has taken its place."""
    if read_record(folder) == record:
        _record_path(folder).unlink()
    users_path(folder, record.server_id).unlink(missing_ok=True)


def _record_path(folder: Path) -> Path:
    return folder / "server.json"
