"""Start, share and end local servers.

A server belongs to those who use it. Each user holds a shared lock; `ensure_server` joins a running server of the same
model and options, or starts one; `stop` lets go, and the last to let go ends it and proves it gone. A user that is
killed lets go too, because the kernel frees its lock (see `_supervisor`). What is shared, and how, is decided here;
`_register` says which servers there are, `_lifetime` starts and ends their processes.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from archon.errors import ServingError
from archon.serving import _lifetime
from archon.serving._lock import Lock, held
from archon.serving._register import (
    ServerRecord,
    folder_of,
    forget,
    read_record,
    running_servers,
    users_path,
    write_record,
)
from archon.serving.command import Launch, plan_launch, resolve
from archon.serving.options import ServeOptions
from archon.serving.sources import Progress
from archon.serving.store import to_stderr

__all__ = ["RunningServer", "ServeOptions", "ServerRecord", "ensure_server", "running_servers", "serve"]

_START_ATTEMPTS = 3


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
        with held(self._folder / "lock", timeout_s=_lifetime.END_TIMEOUT_S):
            try:
                if users.try_take() or not users.try_take(shared=True):
                    # Either nobody else uses it, or its supervisor has taken the lock because it is ending.
                    _lifetime.end(self.record)
                    forget(self._folder, self.record)
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


def obtain(launch: Launch, options: ServeOptions, progress: Progress, cancelled: threading.Event) -> RunningServer:
    """Join or start the server of a launch; blocks. See `ensure_server`."""
    folder = folder_of(launch, options)
    waiting = f"{launch.model.name}: another process is starting or ending this server; waiting"
    with held(folder / "lock", timeout_s=options.start_timeout_s, waiting=lambda: progress(waiting)):
        server = _join(folder, progress) or _start(folder, launch, options, progress, cancelled)
    if cancelled.is_set():  # nobody waits for it any more
        server._stop()
        raise ServingError(f"starting {launch.model.name!r} was cancelled")
    return server


def _join(folder: Path, progress: Progress) -> RunningServer | None:
    """Take a share in the running server; None when there is none, and then nothing of an old one is left."""
    record = read_record(folder)
    if record is None:
        return None
    users = Lock(users_path(folder, record.server_id))
    try:
        if record.is_alive and users.try_take(shared=True):
            if _lifetime.wait_for_answer(record):
                progress(f"{record.model}: using the server that runs at {record.base_url}")
                return RunningServer(record, folder, users, reused=True)
            if record.is_alive and not users.try_take():
                raise ServingError(
                    f"the server of {record.model!r} at {record.base_url} (process {record.pid}) does not answer, "
                    f"and others use it (log: {record.log_path!r})"
                )
        _lifetime.end(record)
        forget(folder, record)
    except BaseException:
        users.close()
        raise
    users.close()
    return None


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
    shared = users_path(folder, server_id)
    users = Lock(shared)
    assert users.try_take(shared=True), "the lock of a new server is free"
    record = _lifetime.spawn(launch, options.port or _lifetime.free_port(), server_id, shared)
    try:
        write_record(folder, record)
        _lifetime.wait_for_start(record, options, progress, cancelled)
    except BaseException:
        _lifetime.end(record)
        forget(folder, record)
        users.close()
        raise
    progress(f"{record.model}: answers at {record.base_url}")
    return RunningServer(record, folder, users, reused=False)
