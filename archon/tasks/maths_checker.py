"""Compare a maths answer with the key: exact values first, then algebra by math-verify in a process that may be killed.

math-verify's own time limits need a process's main thread and do not stop sympy everywhere, so it runs in
`maths_worker.py`, is asked from any thread, and is ended and started again when it does not answer in time.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import weakref
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from archon.tasks.values import canonical_answer, rational

_WORKER = Path(__file__).with_name("maths_worker.py")
_START_S = 120.0
"""Importing sympy takes a second or two; far more on a machine that is busy serving a model."""
_TOLERANCE = Fraction(1, 2_000_000)
"""How far a number may be from a key that is not whole: six decimal places, as in math-verify."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a comparison found. `equal=None`: the worker could not be run."""

    equal: bool | None
    how: str


class MathsChecker:
    """Compares answers; starts its worker at the first pair that needs algebra. Safe to use from any thread."""

    def __init__(self, *, limit_s: float = 5.0) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[[subprocess.Popen[bytes]], MathsChecker] | None = None

    def compare(self, gold: str, answer: str) -> Comparison:
        """Return whether an answer equals the key. Blocks for at most the limit, and the worker's start."""
        if canonical_answer(gold) == canonical_answer(answer):
            return Comparison(equal=True, how="same value")
        key, given = rational(gold), rational(answer)
        if key is not None and given is not None:
            close = key.denominator != 1 and abs(key - given) <= _TOLERANCE
            return Comparison(equal=close, how="equal to 6 places" if close else "another number")
        return self._by_algebra(gold, answer)

    def _by_algebra(self, gold: str, answer: str) -> Comparison:
        request = json.dumps({"gold": gold, "answer": answer[:2000], "seconds": max(1, int(self._limit_s) - 2)})
        with self._lock:
            try:
                process = self._running()
                assert process.stdin is not None
                process.stdin.write(request.encode() + b"\n")
                process.stdin.flush()
                line = _read_line(process, self._limit_s)
            except OSError as error:
                self._stop()
                return Comparison(equal=None, how=f"the maths worker could not be run: {error}")
            if line is None:
                self._stop()
                return Comparison(equal=False, how=f"not comparable with the key within {self._limit_s:g} s")
        reply = json.loads(line)
        if "error" in reply:
            return Comparison(equal=False, how=f"not comparable with the key: {reply['error']}")
        return Comparison(equal=bool(reply["equal"]), how="math-verify")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stop()
        environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "HOME") if name in os.environ}
        command = [sys.executable, "-P", str(_WORKER)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._process, self._finalizer = process, weakref.finalize(self, _end, process)
        if _read_line(process, _START_S) != b"ready":
            raise OSError(f"it did not start: {' '.join(command)}")
        return process

    def _stop(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
        self._process = self._finalizer = None

    def close(self) -> None:
        """End the worker; a later comparison starts another one."""
        with self._lock:
            self._stop()


def _read_line(process: subprocess.Popen[bytes], limit_s: float) -> bytes | None:
    """Return the worker's next line without its end, or None when none came in time or the worker died."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(limit_s):
            return None
    # The worker writes a whole line with one flush, so a first byte means that the rest is there.
    line = process.stdout.readline()
    return line.rstrip(b"\n") if line.endswith(b"\n") else None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            try:
                stream.close()
            except BrokenPipeError:  # the request that it died on was still in our buffer
                continue
