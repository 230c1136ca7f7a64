"""Locks between processes on one machine, which the kernel frees when their holder dies, kill -9 included.

A lock belongs to an open file, so two holders within one process exclude each other as two processes do. The file
stays behind on purpose: removing it would let two processes lock two different files of one name.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from archon.errors import ServingError


class Lock:
    """One open lock file; `try_take` never waits."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_take(self, *, shared: bool = False) -> bool:
        """Take or convert the lock; False when another holder stands in the way, and then nothing is held."""
        assert self._fd is not None, "the lock file is closed"
        try:
            fcntl.flock(self._fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            return False
        return True

    def close(self) -> None:
        """Free the lock; calling it twice is fine."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


@contextmanager
def held(path: Path, *, timeout_s: float, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the exclusive lock of `path`; `waiting` is called once if another process has it.

    Blocks the calling thread: call it from a worker thread in async code.

    Raises:
        ServingError: another process still holds it after `timeout_s`.
    """
    lock = Lock(path)
    try:
        deadline, told = time.monotonic() + timeout_s, False
        while not lock.try_take():
            if not told:
                waiting()
                told = True
            if time.monotonic() > deadline:
                raise ServingError(f"another process has held {str(path)!r} for more than {timeout_s:.0f} s")
            time.sleep(0.1)
        yield
    finally:
        lock.close()
