"""Start, share and end local servers.

A server belongs to those who use it. Each user holds a shared lock; `ensure_server` joins a running server of the same
model and options, or starts one; `stop` lets go, and the last to let go ends it and proves it gone. A user that is
killed lets go too, because the kernel frees its lock (see `_supervisor`).

Under Archon's home, `servers/KEY/` holds for each model-with-options: `lock` (held while anybody joins, starts or
ends), `users-ID` (the shared lock of one server), `server.json` (who and where).
"""

from __future__ import annotations

import asyncio
import hashlib
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
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from archon.errors import ServingError
from archon.serving import _log
from archon.serving._lock import Lock, held
from archon.serving._processes import MARK, members, start_time
from archon.serving.command import Launch, plan_launch, resolve
from archon.serving.home import home
from archon.serving.options import ServeOptions
from archon.serving.sources import Progress
from archon.serving.store import to_stderr

__all__ = ["RunningServer", "ServeOptions", "ServerRecord", "ensure_server", "running_servers", "serve"]

_GRACE_S = 8.0
"""Seconds that a server has to end by itself; vLLM takes 2."""
_END_TIMEOUT_S = 30.0
_JOIN_TIMEOUT_S = 60.0
"""Seconds that a running server may take to answer /health before it counts as hung; a full queue delays it."""
_PROGRESS_EVERY_S = 5.0
_START_ATTEMPTS = 3


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


class RunningServer:
    """A hold on a server that answers. Let go with `stop`, or use it in `async with`."""

    def __init__(self, record: ServerRecord, folder: Path, users: Lock, *, reused: bool) -> None:
        self._folder = folder
        self._users: Lock | None = users
        self.record = record
        self.reused = reused

    @property
    def name(self) -> str:
        """Return the model id that the endpoint serves."""
        return self.record.model

    @property
    def base_url(self) -> str:
        """Return the endpoint, up to and including the version."""
        return self.record.base_url

    @property
    def pid(self) -> int:
        """Return the supervisor's process id."""
        return self.record.pid

    @property
    def parameters(self) -> int | None:
        """Return the weights that one token is multiplied with; None: not known."""
        return self.record.parameters

    @property
    def log_path(self) -> Path:
        """Return where the server writes its log."""
        return Path(self.record.log_path)

    async def stop(self) -> None:
        """Let go of the server; the last user ends it and waits until every process of it is gone.

        Calling it twice is fine.

        Raises:
            ServingError: a process of the server survived.
        """
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        users, self._users = self._users, None
        if users is None:
            return
        with held(self._folder / "lock", timeout_s=_END_TIMEOUT_S):
            try:
                if users.try_take() or not users.try_take(shared=True):
                    # Either nobody else uses it, or its supervisor has taken the lock because it is ending.
                    _end(self.record)
                    _forget(self._folder, self.record)
            finally:
                users.close()

    async def __aenter__(self) -> RunningServer:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.stop()


async def ensure_server(
    name: str, *, options: ServeOptions | None = None, progress: Progress = to_stderr
) -> RunningServer:
    """Return a hold on a server for a model that answers: a running one with equal options, or a new one.

    Args:
        name: A model of the catalogue (fetched when it is not here), a Hugging Face folder, or a hub repository.
        options: How to serve; None: the defaults.
        progress: Is given a line every few seconds while there is something to wait for.

    Raises:
        ConfigError: no such model.
        MissingExtra: vLLM is not installed.
        ServingError: the model cannot be fetched, or its server ended or did not answer in time.
    """
    chosen = options or ServeOptions()
    cancelled = threading.Event()

    def work() -> RunningServer:
        launch = plan_launch(resolve(name, progress), chosen)
        return obtain(launch, chosen, progress, cancelled)

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancelled.set()
        raise


@asynccontextmanager
async def serve(
    name: str, *, options: ServeOptions | None = None, progress: Progress = to_stderr
) -> AsyncIterator[RunningServer]:
    """Use a server for the length of a block; see `ensure_server`."""
    server = await ensure_server(name, options=options, progress=progress)
    async with server:
        yield server


def running_servers() -> tuple[ServerRecord, ...]:
    """Return the servers that run on this machine under this home."""
    records = (_read_record(path.parent) for path in sorted((home() / "servers").glob("*/server.json")))
    return tuple(record for record in records if record is not None and record.is_alive)


def obtain(launch: Launch, options: ServeOptions, progress: Progress, cancelled: threading.Event) -> RunningServer:
    """Join or start the server of a launch; blocks. See `ensure_server`."""
    folder = home() / "servers" / _key(launch, options)
    waiting = f"{launch.model.name}: another process is starting or ending this server; waiting"
    with held(folder / "lock", timeout_s=options.start_timeout_s, waiting=lambda: progress(waiting)):
        server = _join(folder, progress) or _start(folder, launch, options, progress, cancelled)
    if cancelled.is_set():  # nobody waits for it any more
        server._stop()
        raise ServingError(f"starting {launch.model.name!r} was cancelled")
    return server


def _key(launch: Launch, options: ServeOptions) -> str:
    """Name the register's folder: equal for equal models and options, whatever the time-out."""
    same = asdict(replace(options, start_timeout_s=1.0))
    text = json.dumps([launch.model.source, sys.prefix, same], sort_keys=True)
    return f"{launch.model.name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _join(folder: Path, progress: Progress) -> RunningServer | None:
    """Take a share in the running server; None when there is none, and then nothing of an old one is left."""
    record = _read_record(folder)
    if record is None:
        return None
    users = Lock(_users_path(folder, record.server_id))
    try:
        if record.is_alive and users.try_take(shared=True):
            if _wait_for_answer(record):
                progress(f"{record.model}: using the server that runs at {record.base_url}")
                return RunningServer(record, folder, users, reused=True)
            if record.is_alive and not users.try_take():
                raise ServingError(
                    f"the server of {record.model!r} at {record.base_url} (process {record.pid}) does not answer, "
                    f"and others use it (log: {record.log_path!r})"
                )
        _end(record)
        _forget(folder, record)
    except BaseException:
        users.close()
        raise
    users.close()
    return None


def _wait_for_answer(record: ServerRecord) -> bool:
    deadline = time.monotonic() + _JOIN_TIMEOUT_S
    while record.is_alive and time.monotonic() < deadline:
        if _answers(record.port):
            return True
        time.sleep(0.5)
    return False


def _start(
    folder: Path, launch: Launch, options: ServeOptions, progress: Progress, cancelled: threading.Event
) -> RunningServer:
    """Start a server and wait until it answers; where a free port was taken meanwhile, try again."""
    for attempt in range(_START_ATTEMPTS):
        try:
            return _start_once(folder, launch, options, progress, cancelled)
        except ServingError as error:
            taken = "address already in use" in str(error).lower()
            if not taken or options.port is not None or attempt == _START_ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


def _start_once(
    folder: Path, launch: Launch, options: ServeOptions, progress: Progress, cancelled: threading.Event
) -> RunningServer:
    server_id = uuid.uuid4().hex
    users = Lock(_users_path(folder, server_id))
    assert users.try_take(shared=True), "the lock of a new server is free"
    record = _spawn(folder, launch, options.port or _free_port(), server_id)
    try:
        _write_record(folder, record)
        _wait(record, options, progress, cancelled)
    except BaseException:
        _end(record)
        _forget(folder, record)
        users.close()
        raise
    progress(f"{record.model}: answers at {record.base_url}")
    return RunningServer(record, folder, users, reused=False)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _spawn(folder: Path, launch: Launch, port: int, server_id: str) -> ServerRecord:
    logs = home() / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{launch.model.name}-{time.strftime('%Y%m%d-%H%M%S')}-{server_id[:6]}.log"
    # Sockets, rendezvous files and the like go to a folder of the server's own, which its supervisor removes.
    temporary = tempfile.mkdtemp(prefix="archon-")
    spec = {
        "argv": launch.argv(port),
        "users": str(_users_path(folder, server_id)),
        "folder": temporary,
        "server_id": server_id,
        "grace_s": _GRACE_S,
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


def _wait(record: ServerRecord, options: ServeOptions, progress: Progress, cancelled: threading.Event) -> None:
    """Wait until the server answers."""
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


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5.0) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def _end(record: ServerRecord) -> None:
    """End a server and prove that nothing of it is left.

    Raises:
        ServingError: a process survived.
    """
    if record.is_alive:
        os.kill(record.pid, signal.SIGTERM)
    deadline = time.monotonic() + _END_TIMEOUT_S
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


def _record_path(folder: Path) -> Path:
    return folder / "server.json"


def _users_path(folder: Path, server_id: str) -> Path:
    return folder / f"users-{server_id}"


def _forget(folder: Path, record: ServerRecord) -> None:
    """Take a server that has ended out of the register, unless another has taken its place."""
    if _read_record(folder) == record:
        _record_path(folder).unlink()
    _users_path(folder, record.server_id).unlink(missing_ok=True)


def _read_record(folder: Path) -> ServerRecord | None:
    try:
        return ServerRecord(**json.loads(_record_path(folder).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, TypeError):  # none, or written by another version: its lock decides
        return None


def _write_record(folder: Path, record: ServerRecord) -> None:
    temporary = folder / "server.json.tmp"
    temporary.write_text(json.dumps(asdict(record)), encoding="utf-8")
    temporary.replace(_record_path(folder))
