"""One Docker container for one job: its settings, the run inside it, and its end. Everything here blocks.

What was learnt from other systems and is kept to here: a single exec cannot be killed, so the whole container is;
the stream is read until the container is dead, past every limit; the deadline is the host's; PID 1 is a sleep that
ends by itself, so that a container whose owner vanished removes itself.
"""

from __future__ import annotations

import http.client
import selectors
import socket
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import docker.errors
import requests.exceptions
import urllib3.exceptions
from docker import APIClient
from docker.types import HostConfig, LogConfig, Ulimit

from archon.sandbox import _cgroup, _owner
from archon.sandbox._capture import Capture, Demultiplexer
from archon.sandbox._payload import ENVIRONMENT, WORK, Payload
from archon.sandbox.protocol import End, Limits, Met, Outcome

ENGINE_ERRORS = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
)
"""What the SDK and its connection raise when the daemon is the one that failed."""

_TMP_MB = 16
_SHM_MB = 8
_POLL_S = 0.25
"""How often a silent job is looked at: has it ended while something of it still holds its output open?"""
_SILENCE_S = 2.0
"""How long a stream must be silent after its program's end to count as complete."""
_EVENT_LAG_S = 0.3
"""How long after a program's end the daemon may still report that the kernel killed it for its memory."""
_DRAIN_S = 15.0
"""How long a killed container may take to close its stream before it is left to the reaper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The settings that are fixed when a container is made; containers of one shape stand in for each other."""

    image: str
    memory_mb: int
    processes: int
    disk_mb: int
    cpus: float
    ttl_s: int

    @classmethod
    def of(cls, image: str, limits: Limits, cpus: float) -> Shape:
        """Return the shape that a job under these limits needs."""
        ttl_s = 900 if limits.wall_s <= 400 else int(2 * limits.wall_s) + 100
        return cls(
            image=image,
            memory_mb=limits.memory_mb,
            processes=limits.processes,
            disk_mb=limits.disk_mb,
            cpus=cpus,
            ttl_s=ttl_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A started container that no job has touched."""

    id: str
    shape: Shape
    expires: float
    """On this process's monotonic clock: when its own sleep ends."""
    group: _cgroup.Group | None = None
    """Where the kernel counts what it did to the container; None where this process cannot read it."""


def start(api: APIClient, shape: Shape, run_label: dict[str, str]) -> Container:
    """Create and start a container."""
    began = time.monotonic()
    made = api.create_container(
        shape.image,
        command=["sleep", str(shape.ttl_s)],
        # No working_dir here: the runtime would make the folder 0755 and then mount the tmpfs with that mode.
        user="65534:65534",
        environment=ENVIRONMENT,
        hostname="sandbox",
        labels=_owner.labels(shape.ttl_s) | run_label,
        host_config=_host_config(api, shape),
    )
    try:
        api.start(made["Id"])
        pid = int(api.inspect_container(made["Id"])["State"]["Pid"])
    except ENGINE_ERRORS:
        with suppress(*ENGINE_ERRORS):
            api.remove_container(made["Id"], force=True)
        raise
    group = _cgroup.of_process(pid, made["Id"])
    return Container(id=made["Id"], shape=shape, expires=began + shape.ttl_s, group=group)


def _host_config(api: APIClient, shape: Shape) -> HostConfig:
    def tmpfs(size_mb: int) -> str:
        return f"rw,nosuid,nodev,noexec,size={size_mb}m,nr_inodes=4096,mode=1777"

    # The two pids beside the job's own are the container's init and its sleep.
    return api.create_host_config(
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
        init=True,
        ipc_mode="private",
        mem_limit=f"{shape.memory_mb}m",
        memswap_limit=f"{shape.memory_mb}m",
        pids_limit=shape.processes + 2,
        nano_cpus=int(shape.cpus * 1e9),
        tmpfs={WORK: tmpfs(shape.disk_mb), "/tmp": tmpfs(_TMP_MB)},  # noqa: S108 -- a mount of the container
        shm_size=f"{_SHM_MB}m",
        ulimits=[
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="nofile", soft=256, hard=256),
            Ulimit(name="fsize", soft=shape.disk_mb << 20, hard=shape.disk_mb << 20),
        ],
        log_config=LogConfig(type="none"),
        auto_remove=True,
    )


def end(api: APIClient, container_id: str) -> None:
    """Kill a container and wait until nothing of it runs; the daemon removes it by itself after that.

    A wait that takes too long is given up: what was killed goes when the daemon comes to it, at the latest when the
    sandbox is closed, and the job's outcome is known.
    """
    with suppress(docker.errors.NotFound):
        try:
            api.kill(container_id)
        except docker.errors.APIError as error:
            if error.status_code not in (404, 409):  # gone, or no longer running
                raise
        with suppress(requests.exceptions.Timeout):
            api.wait(container_id, timeout=20)


def execute(
    api: APIClient, container: Container, payload: Payload, limits: Limits, cancelled: threading.Event
) -> Outcome:
    """Run a payload in an untouched container; the caller ends the container, whatever came of it."""
    capture = Capture(limits.output_bytes)
    exec_id = api.exec_create(container.id, list(payload.argv), stdin=True, workdir=WORK)["Id"]
    # The SDK wraps the socket differently for each transport and keeps the response beside it; both are closed.
    stream: Any = api.exec_start(exec_id, socket=True)
    began = time.monotonic()
    with closing(stream), closing(getattr(stream, "_response", stream)):
        run = _Run(api, container, exec_id, capture, began + limits.wall_s, cancelled)
        how, exit_code = run.attend(getattr(stream, "_sock", stream), payload.stdin)
        wall_s = time.monotonic() - began
        met = run.met()
    if payload.setup_failed(exit_code, capture.stderr):
        raise OSError(f"the job's files could not be unpacked in the container: {capture.stderr[:200]!r}")
    return Outcome(
        end=how,
        exit_code=exit_code if how == "exited" else None,
        stdout=capture.stdout,
        stderr=capture.stderr,
        wall_s=wall_s,
        met=met,
    )


class _Run:
    """The watch over one exec: sends stdin, takes output, and decides how it ended."""

    def __init__(
        self,
        api: APIClient,
        container: Container,
        exec_id: str,
        capture: Capture,
        deadline: float,
        cancelled: threading.Event,
    ) -> None:
        self._api = api
        self._container = container
        self._exec_id = exec_id
        self._capture = capture
        self._deadline = deadline
        self._cancelled = cancelled

    def attend(self, stream: socket.socket, stdin: bytes) -> tuple[End, int | None]:
        stream.setblocking(False)
        demultiplexer = Demultiplexer(self._capture)
        pending = memoryview(stdin)
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ | selectors.EVENT_WRITE)
            while True:
                why = self._must_stop()
                if why is not None:
                    self._kill_while_draining(stream)
                    return why, None
                wait_s = max(0.0, min(_POLL_S, self._deadline - time.monotonic()))
                ready = selector.select(wait_s)
                if not ready and self._exit_code() is not None:
                    self._take_the_rest(stream, demultiplexer)
                    if not self._capture.overflowed:
                        break
                    continue  # something that it left behind floods its output, which must be read until it is killed
                for _, events in ready:
                    if events & selectors.EVENT_WRITE:
                        pending = _send(stream, pending)
                        if not pending:
                            selector.modify(stream, selectors.EVENT_READ)
                    if events & selectors.EVENT_READ:
                        data = stream.recv(65536)
                        if not data:
                            return self._ended()
                        demultiplexer.feed(data)
        return self._ended()

    def _take_the_rest(self, stream: socket.socket, demultiplexer: Demultiplexer) -> None:
        """Read on after the program's end: on a busy machine the daemon's copy of its output may lag behind.

        The stream's end may never come, where something that the program left behind holds it open: then a while of
        silence is enough, and the container's end closes it.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while self._must_stop() is None and selector.select(_SILENCE_S):
                data = stream.recv(65536)
                if not data:
                    return
                demultiplexer.feed(data)

    def _must_stop(self) -> End | None:
        if self._capture.overflowed:
            return "output_limit"
        if self._cancelled.is_set() or time.monotonic() >= self._deadline:
            return "timeout"
        return None

    def _ended(self) -> tuple[End, int | None]:
        """Wait for the exit code: a program may close its output and run on."""
        while (code := self._exit_code()) is None:
            if self._cancelled.is_set() or time.monotonic() >= self._deadline:
                return "timeout", None
            time.sleep(0.005)
        if code == 137 and self._out_of_memory():
            return "oom", None
        return "exited", code

    def _exit_code(self) -> int | None:
        seen = self._api.exec_inspect(self._exec_id)
        code = seen["ExitCode"]
        return None if seen["Running"] or code is None else int(code)

    def _out_of_memory(self) -> bool:
        """Return whether the kernel killed for want of memory in this container.

        Its control group tells, where it can be read; else the daemon's events. The daemon's own flag covers only
        PID 1 on older engines, and a program that kills its whole container leaves no group and no statistics.
        """
        with suppress(OSError):
            if self._container.group is not None:
                return self._container.group.oom_kills() > 0
        until: Any = time.time() + _EVENT_LAG_S  # the daemon reads fractions of a second, the SDK's types know none
        filters = {"container": self._container.id, "event": "oom"}
        with closing(self._api.events(since=1, until=until, filters=filters)) as events:
            return next(iter(events), None) is not None

    def met(self) -> tuple[Met, ...]:
        """Return the limits that the kernel counted for the container, as far as they can be read."""
        with suppress(OSError):
            if self._container.group is not None:
                return self._container.group.met()
        return ()

    def _kill_while_draining(self, stream: socket.socket) -> None:
        killer = threading.Thread(target=self._kill, name="archon-sandbox-kill")
        killer.start()
        until = time.monotonic() + _DRAIN_S
        stream.settimeout(0.5)
        while time.monotonic() < until:
            try:
                if not stream.recv(1 << 20):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        killer.join()

    def _kill(self) -> None:
        # `end` kills again and reports what fails; here the point is only that the reader goes on meanwhile.
        with suppress(*ENGINE_ERRORS):
            self._api.kill(self._container.id)


def _send(stream: socket.socket, pending: memoryview) -> memoryview:
    """Send what the socket takes; close the sending half at the end, so that the program reads end of file."""
    if pending:
        try:
            pending = pending[stream.send(pending) :]
        except BlockingIOError:
            return pending
        except (BrokenPipeError, ConnectionResetError):
            return memoryview(b"")  # the program ended without reading its stdin, which it may
    if not pending:
        with suppress(OSError):
            stream.shutdown(socket.SHUT_WR)
    return pending
