"""Ends a program that is asked to end (SIGTERM) as an exception would, so that what it started is removed.

Without this the signal ends Python on the spot: no `finally` block, no exit hook.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


def unwind_on_sigterm() -> None:
    """Let SIGTERM raise SystemExit in the main thread, unless the program has its own way with that signal."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _unwind)


def _unwind(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
