"""One value per event loop: what is bound to a loop (sessions, waiters) must not cross into another.

A model may be used from `asyncio.run` twice in a process and from several threads at once. Each loop gets its own
value; those of closed loops are dropped when the next one is made.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """A value for each event loop, made by `make` inside the loop that first asks for it."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[asyncio.AbstractEventLoop, T] = {}
        self._lock = threading.Lock()

    def get(self) -> T:
        """Return the running loop's value."""
        loop = asyncio.get_running_loop()
        value = self._values.get(loop)
        if value is None:
            value = self._make()
            with self._lock:
                for other in [each for each in self._values if each.is_closed()]:
                    del self._values[other]
                self._values[loop] = value
        return value

    def pop(self) -> T | None:
        """Forget the running loop's value and return it; None when there is none."""
        with self._lock:
            return self._values.pop(asyncio.get_running_loop(), None)
