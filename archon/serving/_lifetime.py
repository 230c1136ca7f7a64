"""The processes of one server: start them, wait until they answer, end them and prove them gone."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from archon.errors import ServingError
from archon.serving import _log
from archon.serving._processes import MARK, members, start_time
from archon.serving._register import ServerRecord
from archon.serving.command import Launch
from archon.serving.home import home
from archon.serving.options import ServeOptions
from archon.serving.sources import Progress

GRACE_S = 8.0
"""Seconds that a server has to end by itself; vLLM takes 2."""
END_TIMEOUT_S = 30.0
_JOIN_TIMEOUT_S = 60.0
"""Seconds that a running server may take to answer /health before it counts as hung; a full queue delays it."""
_PROGRESS_EVERY_S = 5.0


def free_port() -> int:
    """Return a port that nobody listens on now; another may take it before it is used."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def spawn(launch: Launch, port: int, server_id: str, users: Path) -> ServerRecord:
    """Start a server under a supervisor that lives as long as anybody holds the lock `users`."""
    logs = home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{launch.model.name}-{time.strftime('%Y%m%d-%H%M%S')}-{server_id[:6]}.log"
    # Sockets, rendezvous files and the like go to a folder of the server's own, which its supervisor removes.
    temporary = tempfile.mkdtemp(prefix="archon-")
    spec = {
        "argv": launch.argv(port),
        "users": str(users),
        "folder": temporary,
        "server_id": server_id,
        "grace_s": GRACE_S,
    }
    environment = {**os.environ, **launch.environment, MARK: server_id, "TMPDIR": temporary}
    supervisor = str(Path(__file__).with_name("_supervisor.py"))
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, supervisor, json.dumps(spec)],
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    return ServerRecord(
        model=launch.model.name,
        port=port,
        pid=pid,
        started_ticks=start_time(pid) or 0,
        server_id=server_id,
        parameters=launch.model.parameters,
        log_path=str(log),
    )


def wait_for_start(record: ServerRecord, options: ServeOptions, progress: Progress, cancelled: threading.Event) -> None:
    """Wait until a server that was just started answers.

    Raises:
        MissingExtra: vLLM is not installed.
        ServingError: it ended, did not answer in time, or the start was cancelled.
    """
    start = told = time.monotonic()
    while not _answers(record.port):
        now = time.monotonic()
        _reap(record.pid)
        if not record.is_alive:
            raise _log.failure(record.model, Path(record.log_path))
        if cancelled.is_set():
            raise ServingError(f"starting {record.model!r} was cancelled")
        if now - start > options.start_timeout_s:
            raise ServingError(
                f"the server of {record.model!r} did not answer within {options.start_timeout_s:.0f} s "
                f"(log: {record.log_path!r})"
            )
        if now - told >= _PROGRESS_EVERY_S:
            told = now
            step = _log.stage(_log.read_tail(Path(record.log_path)))
            progress(f"{record.model}: starting vLLM, {now - start:.0f} s: {step}")
        time.sleep(0.2)
    if not record.is_alive:  # something else answers at that port
        raise _log.failure(record.model, Path(record.log_path))


def wait_for_answer(record: ServerRecord) -> bool:
    """Return whether a server that was found running answers in the time that a full queue may take."""
    deadline = time.monotonic() + _JOIN_TIMEOUT_S
    while record.is_alive and time.monotonic() < deadline:
        if _answers(record.port):
            return True
        time.sleep(0.5)
    return False


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5.0) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def end(record: ServerRecord) -> None:
    """End a server and prove that nothing of it is left.

    Raises:
        ServingError: a process survived.
    """
    if record.is_alive:
        os.kill(record.pid, signal.SIGTERM)
    deadline = time.monotonic() + END_TIMEOUT_S
    while record.is_alive and time.monotonic() < deadline:
        _reap(record.pid)
        time.sleep(0.05)
    _reap(record.pid)
    left = members(record.pid, record.server_id)
    while left and time.monotonic() < deadline + 5.0:  # the supervisor itself was killed
        for pid in left:
            _kill(pid)
        time.sleep(0.05)
        left = members(record.pid, record.server_id)
    if left or record.is_alive:
        raise ServingError(f"processes of the server of {record.model!r} survived: {sorted(left) or [record.pid]}")


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has just ended
        return


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # another process started it, or it was collected before
        return
