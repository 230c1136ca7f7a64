"""The fallback engine: every job in fresh Linux namespaces made by `bwrap`, where no Docker daemon runs.

Covered: no network, an empty file system but for a read-only `/usr`, an unprivileged user, no nested user namespaces,
sized writable folders in memory, rlimits; everything of a job dies with its process namespace, also when this process
is killed. Memory and processes in total need a control group; where none can be made the limits hold per process and
per user namespace only, and `enforces` says so. Not covered: system calls beyond the refused ones of `_seccomp.py`,
a share of the processor, the number of files in a writable folder (only their memory), and the host's `/usr` is
readable.

pytest comes from the host's `/usr` where the system has it; else this program's own is mounted in `PYTEST`.
"""

from __future__ import annotations

import asyncio
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from archon.errors import SandboxFailed
from archon.sandbox import _cgroup, _seccomp
from archon.sandbox._capture import Capture
from archon.sandbox._payload import ENVIRONMENT, WORK, Payload, pack
from archon.sandbox.protocol import End, Job, Limits, Met, Outcome

_ATTEMPTS = 3
_NOBODY = "65534"
_NO_COMMAND = b"bwrap: execvp "
_SCRATCH_MB = 16
_FILTER = _seccomp.program()
PYTEST = "/opt/archon-pytest"
"""Where a job finds this program's pytest; the last place to look, after the interpreter's own."""
_PYTEST_PARTS = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup", "tomli")
_ENTER = (
    'for file in $1; do echo $$ > "$file" || exit 121; done; '
    'ulimit -c 0 && ulimit -n 256 && ulimit -f "$2" && ulimit -t "$3" || exit 121; shift 3; exec "$@"'
)
"""Puts itself into the control group, sets the limits per process, then becomes the command: no process of a job is
ever outside its limits."""


class BubblewrapSandbox:
    """Runs jobs under `bwrap`. Made by `BubblewrapSandbox.start`; used from one event loop."""

    engine = "bubblewrap"

    def __init__(self, prefix: tuple[str, ...], hierarchy: _cgroup.Hierarchy | None, *, workers: int) -> None:
        self._prefix = prefix
        self._hierarchy = hierarchy
        self._slots = asyncio.Semaphore(workers)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="archon-bwrap")
        self._running: set[asyncio.Future[Outcome]] = set()
        self._closed = False
        totals = (
            "memory (no swap) and processes in total"
            if hierarchy
            else "NOT enforced here: memory in total (per process only), processes in total (per user namespace only)"
        )
        calls = "a filter of dangerous system calls" if _FILTER else "no filter of system calls for this processor"
        self.enforces: tuple[str, ...] = (
            "no network",
            "read-only /usr and pytest and nothing else of the host's files, non-root user, no nested user namespaces",
            calls,
            totals,
            "CPU time per process, wall time by the host's clock, output bytes per stream",
            "size of the writable folders (in memory)",
            "nothing outlives its job: its process namespace ends with it",
        )

    @classmethod
    async def start(cls, *, workers: int | None = None) -> BubblewrapSandbox:
        """Find the tools, the interpreter and the control groups.

        Args:
            workers: jobs at the same time; None: one per core, at least two.

        Raises:
            OSError: something that it needs is missing; the message names it.
        """
        workers = workers or max(2, os.cpu_count() or 1)
        prefix = await asyncio.to_thread(_prefix)
        return cls(prefix, await asyncio.to_thread(_cgroup.find), workers=workers)

    async def run(self, job: Job) -> Outcome:
        """Run one job in fresh namespaces; waits for a free worker first, which `wall_s` leaves out.

        Raises:
            ValueError: the job itself is malformed (no command, an unsafe path).
            SandboxFailed: the engine failed three times.
        """
        payload = pack(job)
        said: list[str] = []
        async with self._slots:
            for _ in range(_ATTEMPTS):
                if self._closed:
                    raise SandboxFailed("the bubblewrap sandbox is closed")
                try:
                    return await self._attempt(payload, job.limits)
                except OSError as error:
                    said.append(f"{type(error).__name__}: {error}")
        raise SandboxFailed(f"bubblewrap failed {_ATTEMPTS} times: {' | '.join(said)[:1500]!r}")

    async def _attempt(self, payload: Payload, limits: Limits) -> Outcome:
        cancelled = threading.Event()
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, _execute, self._prefix, self._hierarchy, payload, limits, cancelled
        )
        self._running.add(running)
        running.add_done_callback(self._running.discard)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()  # the thread ends the job; close() waits for it
            raise

    async def close(self) -> None:
        """Wait for the last jobs; nothing outlives them. Calling it twice is fine."""
        self._closed = True
        if self._running:
            await asyncio.wait(set(self._running))
        self._threads.shutdown(wait=True)


def _execute(
    prefix: tuple[str, ...],
    hierarchy: _cgroup.Hierarchy | None,
    payload: Payload,
    limits: Limits,
    cancelled: threading.Event,
) -> Outcome:
    """Run a payload and end everything of it. Blocks."""
    # Three of a job's processes are the engine's or the job's first: bwrap, its namespace's init, the job's program.
    group = hierarchy and _cgroup.make(hierarchy, memory_mb=limits.memory_mb, processes=limits.processes + 3)
    met: tuple[Met, ...] = ()
    try:
        command = [*prefix, *_mounts(limits)]
        if group:
            inside = ["--", *(payload.bare or payload.argv)]
            entrances, blocks = " ".join(map(str, group.entrances)), str(limits.disk_mb << 11)
            command = ["/bin/sh", "-c", _ENTER, "sh", entrances, blocks, str(_cpu_s(limits)), *command]
        else:
            inside = ["--", *_rlimits(limits), *(payload.bare or payload.argv)]
        capture = Capture(limits.output_bytes)
        began = time.monotonic()
        how, exit_code, status = _attend(command, inside, payload.stdin, capture, began + limits.wall_s, cancelled)
        wall_s = time.monotonic() - began
        # bwrap says 128 + signal for a program that a signal ended; the kernel's memory killer sends signal 9.
        met = group.met() if group else ()
        if how == "exited" and exit_code == 128 + signal.SIGKILL and "oom" in met:
            how = "oom"
    finally:
        if group:
            group.remove()
    if how == "exited" and b'"exit-code"' not in status and payload.bare and capture.stderr.startswith(_NO_COMMAND):
        exit_code = 127  # as a shell says it
    elif how == "exited" and (b'"exit-code"' not in status or payload.setup_failed(exit_code, capture.stderr)):
        raise OSError(f"bwrap could not start the job (exit code {exit_code!r}): {capture.stderr[:300]!r}")
    return Outcome(
        end=how,
        exit_code=exit_code if how == "exited" else None,
        stdout=capture.stdout,
        stderr=capture.stderr,
        wall_s=wall_s,
        met=met,
    )


def _attend(
    command: list[str],
    inside: list[str],
    stdin: bytes,
    capture: Capture,
    deadline: float,
    cancelled: threading.Event,
) -> tuple[End, int | None, bytes]:
    """Feed and read one process until it ends or must be ended; the last value is bwrap's own status report.

    That report goes over a descriptor of its own and has an exit code only if the job's command was started, so a
    program cannot pass its own failure off as the engine's.
    """
    reader, writer = os.pipe()
    calls = _filter_file()
    try:
        process = subprocess.Popen(
            [*command, *(() if calls is None else ("--seccomp", str(calls))), "--json-status-fd", str(writer), *inside],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={},
            pass_fds=(writer,) if calls is None else (writer, calls),
        )
    except OSError:
        os.close(reader)
        raise
    finally:
        os.close(writer)
        if calls is not None:
            os.close(calls)
    with open(reader, "rb", buffering=0) as status:
        how = _pump(process, stdin, capture, deadline, cancelled)
        return how, process.returncode, status.read(4096)


def _filter_file() -> int | None:
    """Return a descriptor from which bwrap reads the system-call filter."""
    if _FILTER is None:
        return None
    calls = os.memfd_create("archon-seccomp")
    os.write(calls, _FILTER)
    os.lseek(calls, 0, os.SEEK_SET)
    return calls


def _pump(
    process: subprocess.Popen[bytes], stdin: bytes, capture: Capture, deadline: float, cancelled: threading.Event
) -> End:
    """Move the bytes and end the process at its deadline, its output limit, or when nobody waits for it any more."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    how: End = "exited"
    pending = memoryview(stdin)
    # The process itself is waited for as a descriptor: its streams end a moment before it does.
    with process, selectors.DefaultSelector() as selector, open(os.pidfd_open(process.pid), "rb", buffering=0) as end:
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(end, selectors.EVENT_READ, 3)
        selector.register(process.stdin, selectors.EVENT_WRITE, 0)
        selector.register(process.stdout, selectors.EVENT_READ, 1)
        selector.register(process.stderr, selectors.EVENT_READ, 2)
        while len(selector.get_map()) > 0:
            if how == "exited":
                if capture.overflowed:
                    how = "output_limit"
                elif cancelled.is_set() or time.monotonic() >= deadline:
                    how = "timeout"
                if how != "exited":
                    _kill(process.pid)
            for key, _ in selector.select(max(0.0, min(0.05, deadline - time.monotonic()))):
                if key.data == 0:
                    pending = _send(process.stdin.fileno(), pending)
                    if not pending:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                elif key.data == 3:
                    selector.unregister(end)
                else:
                    data = os.read(key.fd, 65536)
                    capture.add(key.data, data)
                    if not data:
                        selector.unregister(key.fileobj)
    return how


def _kill(pid: int) -> None:
    """Kill bwrap and the init of its namespace, with which everything inside dies.

    Killing bwrap alone is not enough: in the first milliseconds its child has not yet asked to die with it, and would
    run on. So bwrap is stopped first, lest it start the child after we looked, then its children are killed, then it.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + 1.0
        while _state(pid) not in "TtZX" and time.monotonic() < until:
            time.sleep(0.001)
        for child in _children(pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended while we looked
            if stat.read_text().rpartition(")")[2].split()[1] == str(pid):
                found.append(int(stat.parent.name))
    return found


def _send(fd: int, pending: memoryview) -> memoryview:
    try:
        return pending[os.write(fd, pending) :]
    except BlockingIOError:
        return pending
    except BrokenPipeError:
        return memoryview(b"")  # the program ended without reading its stdin, which it may


def _prefix() -> tuple[str, ...]:
    """Return the part of the command that is the same for every job.

    Raises:
        OSError: a tool is missing.
    """
    missing = [tool for tool in ("bwrap", "prlimit", "setpriv", "tar") if shutil.which(tool) is None]
    if missing:
        raise OSError(f"not on PATH: {', '.join(missing)}; on Debian: apt-get install bubblewrap util-linux tar")
    bwrap, setpriv = shutil.which("bwrap") or "", shutil.which("setpriv") or ""
    # Run as root, bwrap's user inside would still be root outside, and root's process limit does not count.
    drop = (setpriv, f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--") if os.geteuid() == 0 else ()
    walls = ["--unshare-all", "--unshare-user", "--uid", _NOBODY, "--gid", _NOBODY, "--hostname", "sandbox"]
    walls += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    if "--disable-userns" in subprocess.run([bwrap, "--help"], capture_output=True, text=True, check=False).stdout:
        walls.append("--disable-userns")
    python = _python()
    path = ENVIRONMENT["PATH"] if python.is_relative_to("/usr") else f"{python.parent}:{ENVIRONMENT['PATH']}"
    variables = [word for pair in {**ENVIRONMENT, "PATH": path}.items() for word in ("--setenv", *pair)]
    return (*drop, bwrap, *walls, *_host_files(python), "--proc", "/proc", "--dev", "/dev", *variables)


def _host_files(python: Path) -> list[str]:
    """Return what a job sees of the host: `/usr` and the links into it, and the interpreter where it is elsewhere."""
    arguments = ["--ro-bind", "/usr", "/usr"]
    for path in (Path("/bin"), Path("/sbin"), Path("/lib"), Path("/lib32"), Path("/lib64")):
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in ("/etc/alternatives", "/etc/ld.so.cache"):
        arguments += ["--ro-bind-try", name, name]
    if not python.is_relative_to("/usr/local") and Path("/usr/local").is_dir():
        arguments += ["--tmpfs", "/usr/local", "--remount-ro", "/usr/local"]
    if not python.is_relative_to("/usr"):
        arguments += ["--ro-bind", str(python.parent.parent), str(python.parent.parent)]
    return arguments + _pytest_parts()


def _pytest_parts() -> list[str]:
    """Return the mounts of this program's pytest and what it needs: pure Python, so any interpreter can run it.

    Nothing where an unprivileged user cannot reach them (below `/root`, say), because bwrap runs as one.
    """
    arguments: list[str] = []
    for name in _PYTEST_PARTS:
        spec = find_spec(name)
        if spec and spec.origin:
            part = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
            if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in part.parents):
                arguments += ["--ro-bind", str(part), f"{PYTEST}/{part.name}"]
    return arguments


def _python() -> Path:
    """Return the interpreter that jobs run: the system's, else the one that this program runs on."""
    for path in (Path("/usr/bin/python3"), Path("/usr/local/bin/python3")):
        if path.exists():
            return path
    return Path(sys.base_prefix, "bin", "python3").resolve()


def _mounts(limits: Limits) -> list[str]:
    arguments: list[str] = []
    for folder, size_mb in ((WORK, limits.disk_mb), ("/tmp", _SCRATCH_MB), ("/dev/shm", _SCRATCH_MB)):  # noqa: S108
        arguments += ["--size", str(size_mb << 20), "--tmpfs", folder]
    # Without these the root and /dev are themselves writable and unsized.
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORK]


def _cpu_s(limits: Limits) -> int:
    return int(limits.wall_s * limits.processes) + 1


def _rlimits(limits: Limits) -> list[str]:
    """Return the command prefix that sets all limits per process, inside the namespaces, where there is no group.

    With a control group memory and processes are left to it: address space is not memory, and numerical libraries
    reserve far more of it than they use.

    The process limit is set inside because the kernel also holds every enclosing user namespace to the limit that was
    in force when the namespace was made: set outside, all concurrent jobs would share one job's allowance.
    """
    return [
        "/usr/bin/prlimit",
        f"--as={limits.memory_mb << 20}",
        f"--nproc={limits.processes + 1}",
        f"--fsize={limits.disk_mb << 20}",
        f"--cpu={_cpu_s(limits)}",
        "--core=0",
        "--nofile=256",
        "--",
    ]
