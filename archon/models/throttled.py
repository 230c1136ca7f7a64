"""Concurrency that adapts to an endpoint's rate limit: additive increase, multiplicative decrease, as in TCP.

The number of requests allowed in flight grows by about one per full window of successes and shrinks by a factor on a
429, once per window: the other requests that were already in flight when the limit shrank say nothing new. A
Retry-After closes the gate for that long, so that queued requests do not spend their retries on a closed door.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from archon.errors import AuthError, ConfigError, ModelError, QuotaExhausted, RateLimited
from archon.models._per_loop import PerLoop
from archon.models._wrapper import Wrapper
from archon.models.protocol import Completion, Request
from archon.models.waits import with_wait


class _Gate:
    """One event loop's requests in flight and in the queue."""

    def __init__(self, limiter: Limiter) -> None:
        self.limit = float(limiter.start)
        self._limiter = limiter
        self._in_flight = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._window = 0
        self._open_at_s = 0.0

    async def enter(self) -> tuple[int, float]:
        """Wait for a place; return the window it was taken in and the seconds waited."""
        if self._in_flight < int(self.limit) and not self._queue and not self._closed:
            self._in_flight += 1
            return self._window, 0.0
        start_s = self._limiter.clock()
        place = asyncio.get_running_loop().create_future()
        self._queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()
            raise
        return self._window, self._limiter.clock() - start_s

    def leave(self) -> None:
        """Give a place back and let those in who now fit."""
        self._in_flight -= 1
        self._admit()

    def succeeded(self) -> None:
        """Raise the limit a little, if it is what holds requests back."""
        if self._queue or self._in_flight >= int(self.limit):
            self.limit = min(float(self._limiter.most), self.limit + 1.0 / self.limit)

    def limited(self, window: int, retry_after_s: float | None) -> None:
        """Lower the limit, unless it was lowered since the request of `window` went out; close for Retry-After."""
        if window == self._window:
            self.limit = max(1.0, self.limit * self._limiter.decrease)
            self._window += 1
        if retry_after_s:
            pause_s = min(retry_after_s, self._limiter.longest_pause_s)
            self._open_at_s = max(self._open_at_s, self._limiter.clock() + pause_s)
            asyncio.get_running_loop().call_later(pause_s + 0.001, self._admit)

    def refuse_queue(self, error: ModelError) -> None:
        """Fail those who queue with an error that holds for them too."""
        while self._queue:
            place = self._queue.popleft()
            if not place.done():
                place.set_exception(error.with_spent())

    @property
    def _closed(self) -> bool:
        return self._open_at_s > 0.0 and self._limiter.clock() < self._open_at_s

    def _admit(self) -> None:
        while self._queue and self._in_flight < int(self.limit) and not self._closed:
            place = self._queue.popleft()
            if not place.done():
                self._in_flight += 1
                place.set_result(None)


@dataclass(frozen=True, slots=True, eq=False)
class Limiter:
    """How many requests may be in flight at once; give one to several models of the same endpoint to share it.

    Each event loop keeps its own count.
    """

    start: int = 64
    """Requests in flight before anything is learnt."""
    most: int = 256
    decrease: float = 0.7
    """What a 429 multiplies the limit by."""
    longest_pause_s: float = 60.0
    """The longest that one Retry-After keeps queued requests back."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _gates: PerLoop[_Gate] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.start <= self.most:
            raise ConfigError(f"limiter start={self.start!r}, most={self.most!r}: must be 1 <= start <= most")
        if not 0.0 < self.decrease < 1.0:
            raise ConfigError(f"limiter decrease={self.decrease!r}: must lie between 0 and 1")
        object.__setattr__(self, "_gates", PerLoop(lambda: _Gate(self)))

    @property
    def limit(self) -> int:
        """Return the requests that may be in flight now in the running event loop."""
        return int(self._gates.get().limit)

    @property
    def gate(self) -> _Gate:
        """Return the running event loop's gate."""
        return self._gates.get()


@dataclass(frozen=True, slots=True, eq=False)
class Throttled(Wrapper):
    """A model whose requests wait for a place at a limiter."""

    limiter: Limiter = field(default_factory=Limiter)

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return the completions; the time in the queue is waiting, not part of the critical path.

        Raises:
            ModelError: as the model raised it. A quota or key error also fails the requests that queue at that time.
        """
        gate = self.limiter.gate
        window, wait_s = await gate.enter()
        try:
            completions = await self.model.sample(request)
        except RateLimited as error:
            gate.limited(window, error.retry_after_s)
            raise
        except (QuotaExhausted, AuthError) as error:
            gate.refuse_queue(error)
            raise
        else:
            gate.succeeded()
        finally:
            gate.leave()
        return with_wait(completions, wait_s=wait_s) if wait_s else completions
