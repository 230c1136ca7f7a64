"""The one owner of retries: nothing below or above it repeats a request.

Exponential back-off with full jitter, on top of the endpoint's Retry-After when it names one. Only errors that say they
are retryable are tried again. Source: M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog 2015.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from archon.errors import ConfigError, ModelError, RateLimited
from archon.models._wrapper import Wrapper
from archon.models.protocol import Completion, Request
from archon.models.waits import with_wait


@dataclass(frozen=True, slots=True, eq=False)
class Retrying(Wrapper):
    """A model that asks again: `max_retries` r means at most r + 1 requests."""

    max_retries: int = 5
    base_s: float = 0.5
    """The n-th wait is drawn from 0 to `base_s` · 2ⁿ seconds, n from 0."""
    cap_s: float = 60.0
    """The longest wait of our own choosing."""
    patience_s: float = 300.0
    """A Retry-After beyond this is not waited for: the error is raised at once."""
    rng: random.Random = field(default_factory=random.Random, repr=False)
    sleep: Callable[[float], Awaitable[object]] = field(default=asyncio.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)

    def __post_init__(self) -> None:
        if self.max_retries < 0:
            raise ConfigError(f"max_retries={self.max_retries!r}: must be at least 0")

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return the completions; failed attempts and the time they took are on the first one's usage.

        Raises:
            ModelError: the last attempt's, or at once one that a retry cannot help; with what all attempts took.
        """
        start_s = self.clock()
        attempts, may_be_billed = 0, False
        for failed in range(self.max_retries + 1):
            attempt_s = self.clock()
            try:
                completions = await self.model.sample(request)
            except ModelError as error:
                attempts += error.attempts
                may_be_billed = may_be_billed or error.may_be_billed
                wait_s = self._wait_s(failed, error)
                if wait_s is None:
                    took_s = self.clock() - start_s
                    raise error.with_spent(attempts=attempts, wait_s=took_s, may_be_billed=may_be_billed) from None
            else:
                return with_wait(completions, wait_s=attempt_s - start_s, attempts=attempts) if failed else completions
            await self.sleep(wait_s)
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _wait_s(self, failed: int, error: ModelError) -> float | None:
        """Return how long to wait before the next attempt, or None to give up."""
        if not error.retryable or failed == self.max_retries:
            return None
        wait_s = self.rng.uniform(0.0, min(self.cap_s, self.base_s * 2.0**failed))
        if isinstance(error, RateLimited) and error.retry_after_s is not None:
            if error.retry_after_s > self.patience_s:
                return None
            # The jitter comes on top: callers told the same second must not all come back in it.
            wait_s += error.retry_after_s
        return wait_s
