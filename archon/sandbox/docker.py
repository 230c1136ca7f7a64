"""The main engine: every job in a Docker container of its own that no job used before.

Covered: no network, read-only root, an unprivileged user without capabilities or a way to gain them, limits on
memory (swap included), processes, CPU, wall time, output, and on the size and number of files; daemonised children
die with the container. Not covered: weaknesses of the kernel and of the container runtime themselves (where that
matters, give the daemon a runtime with a kernel of its own), and how much of the machine's memory bandwidth or cache
a job takes from its neighbours.

A few containers of each kind are kept started, so that a job waits for an exec and not for a container. They are
used once: reuse would let one candidate's leavings change the next one's result. A job's answer does not wait for the
end of its container, but its worker does.

Four things see to it that no container stays: each is ended when its job is, whatever came of it; closing, leaving
and SIGTERM end the rest; at the start and every minute those of dead processes are found by their labels; and each
ends by itself when its sleep does.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import docker.errors
from docker import APIClient, DockerClient

from archon.errors import SandboxFailed
from archon.sandbox import _container, _owner
from archon.sandbox._container import ENGINE_ERRORS, Container, Shape
from archon.sandbox._payload import Payload, pack
from archon.sandbox._unwind import unwind_on_sigterm
from archon.sandbox.image import docker_client, ensure_image
from archon.sandbox.protocol import Job, Limits, Outcome

T = TypeVar("T")
_ATTEMPTS = 3
_RUN = "archon.sandbox.run"
_REAP_S = 60.0


class DockerSandbox:
    """Runs jobs in single-use containers. Made by `DockerSandbox.start`; used from one event loop."""

    engine = "docker"
    enforces = (
        "no network",
        "read-only root, non-root user, no capabilities, no new privileges, default seccomp filter",
        "memory in total (no swap), processes in total, CPU share",
        "wall time by the host's clock, output bytes per stream",
        "size and number of files (in memory, counted as memory)",
        "nothing outlives its job: a container is used once and killed",
    )

    def __init__(self, client: DockerClient, image: str, *, workers: int, warm: int, cpus: float) -> None:
        self._client = client
        self._api: APIClient = client.api
        self._image = image
        self._cpus = cpus
        self._warm = warm
        self._label = {_RUN: secrets.token_hex(8)}
        self._slots = asyncio.Semaphore(workers)
        self._starts = asyncio.Semaphore(os.cpu_count() or 1)
        self._threads = ThreadPoolExecutor(2 * workers + warm, thread_name_prefix="archon-sandbox")
        self._pool: defaultdict[Shape, deque[Container]] = defaultdict(deque)
        self._coming: defaultdict[Shape, int] = defaultdict(int)
        self._pending: set[asyncio.Future[Any]] = set()
        self._closed = False
        self._owner = os.getpid()
        self._reaper = asyncio.ensure_future(self._reap_now_and_then())
        atexit.register(self._at_exit)
        unwind_on_sigterm()

    @classmethod
    async def start(
        cls,
        *,
        base_url: str | None = None,
        image: str | None = None,
        workers: int | None = None,
        warm: int | None = None,
        cpus: float = 1.0,
    ) -> DockerSandbox:
        """Connect, remove what dead processes left, and make sure that the image is there.

        Args:
            base_url: the daemon; None: `DOCKER_HOST` or the usual socket.
            image: an image with `python3`, `sh`, `head` and `tar`; None: the project's own, built when missing.
            workers: jobs at the same time; None: one and a half per core, at least two.
            warm: containers kept started per kind of limits; None: as many as workers.
            cpus: cores that one job may use.

        Raises:
            OSError or a `docker` error: no daemon answers; `auto.open_sandbox` turns it into a `NoSandbox`.
            SandboxError: the image cannot be built.
        """
        workers = workers or max(2, (os.cpu_count() or 1) * 3 // 2)
        client = await asyncio.to_thread(docker_client, base_url, connections=4 * workers + 8)
        try:
            await asyncio.to_thread(_reap, client.api)
            if image is None:
                image = await asyncio.to_thread(ensure_image, client)
        except BaseException:
            client.close()
            raise
        return cls(client, image, workers=workers, warm=workers if warm is None else warm, cpus=cpus)

    async def run(self, job: Job) -> Outcome:
        """Run one job in a container of its own; waits for a free worker first, which `wall_s` leaves out.

        Raises:
            ValueError: the job itself is malformed (no command, an unsafe path).
            SandboxFailed: the engine failed three times.
        """
        payload = pack(job)
        shape = Shape.of(self._image, job.limits, self._cpus)
        said: list[str] = []
        for _ in range(_ATTEMPTS):
            try:
                return await self._attempt(shape, payload, job.limits)
            except ENGINE_ERRORS as error:
                said.append(f"{type(error).__name__}: {error}")
        raise SandboxFailed(f"the docker engine failed {_ATTEMPTS} times: {' | '.join(said)[:1500]!r}")

    async def _attempt(self, shape: Shape, payload: Payload, limits: Limits) -> Outcome:
        await self._slots.acquire()
        try:
            if self._closed:
                raise SandboxFailed("the docker sandbox is closed")
            container = await self._take(shape, limits.wall_s)
        except BaseException:
            self._slots.release()
            raise
        cancelled = threading.Event()
        running = self._in_thread(_container.execute, self._api, container, payload, limits, cancelled)
        running.add_done_callback(lambda _: self._keep(asyncio.ensure_future(self._end(container))))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()  # the thread ends the job; close() waits for it
            raise

    async def _end(self, container: Container) -> None:
        """End a used container, then free its worker and have the pool filled.

        The pool is filled now and not when the container was taken, so that starting containers does not slow the job.
        """
        try:
            with suppress(*ENGINE_ERRORS):  # what could not be ended is removed by `close`, or when its sleep ends
                await self._in_thread(_container.end, self._api, container.id)
        finally:
            self._slots.release()
            self._fill(container.shape)

    def _fill(self, shape: Shape) -> None:
        missing = 0 if self._closed else self._warm - len(self._pool[shape]) - self._coming[shape]
        for _ in range(missing):
            self._coming[shape] += 1
            self._keep(asyncio.ensure_future(self._refill(shape)))

    async def _take(self, shape: Shape, wall_s: float) -> Container:
        """Return a fresh container, a warm one when there is one."""
        pool = self._pool[shape]
        chosen: Container | None = None
        while pool and chosen is None:
            first = pool.popleft()
            if first.expires - time.monotonic() > wall_s + 60:
                chosen = first
            else:
                self._in_thread(_container.end, self._api, first.id)
        return chosen or await self._start(shape)

    async def _start(self, shape: Shape) -> Container:
        async with self._starts:
            return await asyncio.shield(self._in_thread(_container.start, self._api, shape, self._label))

    async def _refill(self, shape: Shape) -> None:
        try:
            # A failure here is not lost: the next job finds no warm container and meets it in its own attempts.
            with suppress(*ENGINE_ERRORS):
                container = await self._start(shape)
                self._pool[shape].append(container)
        finally:
            self._coming[shape] -= 1

    def _in_thread(self, function: Callable[..., T], *args: object) -> asyncio.Future[T]:
        future = asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *args))
        self._keep(future)
        return future

    def _keep(self, future: asyncio.Future[T]) -> None:
        """Hold a future until it is done, and take its exception so that an abandoned one is not reported twice."""
        self._pending.add(future)

        def done(finished: asyncio.Future[T]) -> None:
            self._pending.discard(finished)
            if not finished.cancelled():
                finished.exception()

        future.add_done_callback(done)

    async def _reap_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_REAP_S)
            with suppress(*ENGINE_ERRORS):
                await self._in_thread(_reap, self._api)

    def _at_exit(self) -> None:
        """Remove the containers of a sandbox that was never closed; not in a fork of its process."""
        if os.getpid() == self._owner:
            with suppress(*ENGINE_ERRORS):
                _remove_all(self._api, f"{_RUN}={self._label[_RUN]}")

    async def close(self) -> None:
        """Remove every container that this sandbox started; calling it twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._reaper.cancel()
        while self._pending:
            await asyncio.wait(set(self._pending))
        with suppress(*ENGINE_ERRORS):  # a daemon that is gone took its containers' owner's work with it
            await asyncio.to_thread(_remove_all, self._api, f"{_RUN}={self._label[_RUN]}")
        atexit.unregister(self._at_exit)
        self._threads.shutdown(wait=True)
        self._client.close()


def _reap(api: APIClient) -> None:
    """Remove the containers whose owner is dead or whose time is over; never those of another live process."""
    for found in api.containers(all=True, filters={"label": _owner.PID}):
        if _owner.is_orphan(found["Labels"], time.time()):
            _remove(api, found["Id"])


def _remove_all(api: APIClient, label: str) -> None:
    for found in api.containers(all=True, filters={"label": label}):
        _remove(api, found["Id"])


def _remove(api: APIClient, container_id: str) -> None:
    try:
        api.remove_container(container_id, force=True)
    except docker.errors.APIError as error:
        if error.status_code not in (404, 409):  # gone, or the daemon is removing it already
            raise
