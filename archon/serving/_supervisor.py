"""Hold a server and end all of it when nobody uses it any more. Run as a script; standard library only.

The supervisor opens a session, becomes the parent of every orphan below it, starts the server, and waits until

- the server ends by itself, or
- it is asked to end (SIGTERM), or
- no process holds the `users` lock any more. The kernel frees that lock when its holder dies, kill -9 included,
  so a killed evaluation leaves no server behind, and one that two processes share lives until both are gone.

Then it asks the server to end, waits, kills what is left, and removes the temporary folder and the shared memory.
The process directly below it dies with it, should the supervisor itself be killed; the next start, or `stop`, clears
away the rest.

Argument: a JSON object with `argv`, `users`, `folder`, `server_id`, `grace_s`.
"""

import ctypes
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from _processes import members, shared_memory  # type: ignore[import-not-found] # this file runs as a script beside it

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_POLL_S = 0.25


def main() -> int:
    """Run one server to its end; return its exit code, 0 when it was asked to end."""
    spec = json.loads(sys.argv[1])
    os.setsid()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    users = os.open(spec["users"], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    waited = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)

    def before_exec() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)

    child = subprocess.Popen(spec["argv"], stdin=subprocess.DEVNULL, preexec_fn=before_exec)
    code = _watch(child.pid, users, waited)
    _end(child.pid, spec["server_id"], spec["grace_s"])
    shutil.rmtree(spec["folder"], ignore_errors=True)
    return code


def _watch(child: int, users: int, waited: set[signal.Signals]) -> int:
    """Wait for one of the three reasons to end."""
    while True:
        came = signal.sigtimedwait(waited, _POLL_S)
        code = _reap(child)
        if code is not None:
            return code or 1  # a server that ends by itself has failed, whatever it says
        if came is not None and came.si_signo != signal.SIGCHLD:
            return 0
        if _is_free(users):
            return 0


def _is_free(users: int) -> bool:
    """Take the lock for good when nobody else has it, so that no one can join a server that is ending."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reap(child: int) -> int | None:
    """Collect ended processes; return the child's exit code if it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)


def _end(child: int, server_id: str, grace_s: float) -> None:
    """Ask, wait, then kill until nothing is left, the memory that killed processes shared included."""
    shared = shared_memory(members(os.getpid(), server_id))
    _kill(child, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while left := members(os.getpid(), server_id):
        _reap(child)
        if time.monotonic() > deadline:
            for pid in left:
                _kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    _reap(child)
    for path in shared:
        if os.path.exists(path):
            os.unlink(path)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it has just ended
        return


if __name__ == "__main__":
    sys.exit(main())
