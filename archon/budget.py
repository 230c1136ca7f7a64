"""Budgets that are promises: the worst case is reserved before a call and settled after it.

A `Budget` is the limit; a `Ledger` holds one run to it. `reserve` lets a call start only if everything spent,
everything in flight at its worst, and this call at its worst stay within every limit. When only the calls in flight
stand in the way, it waits for them to settle (they usually take less than their worst case); when even an idle ledger
could not pay, it refuses. So no limit is ever passed, however many calls run at once, as long as an endpoint keeps to
`max_tokens` and to the prompt bound of `Request`; one that does not is counted in `Ledger.overruns`, and nothing starts
after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite

from archon.errors import BudgetExceeded, ConfigError, UnknownPrice
from archon.types import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that a run may spend; None leaves that measure unlimited. Cached answers cost nothing."""

    tokens: int | None = None
    """Prompt plus completion tokens."""
    usd: float | None = None
    seconds: float | None = None
    """Wall seconds from the ledger's start; a call still running then is cancelled."""
    calls: int | None = None
    """Completions; a request with n=8 is 8 calls."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None and not (isfinite(value) and value >= 0):
                raise ConfigError(f"budget {each.name}={value!r}: must be a finite number of at least 0, or left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """The most that one request can take."""

    calls: int
    tokens: int
    usd: float | None

    def plus(self, other: Worst, times: int = 1) -> Worst:
        """Return the sum; an unknown price counts 0, since only a ledger without a dollar limit lets one in."""
        return Worst(
            calls=self.calls + times * other.calls,
            tokens=self.tokens + times * other.tokens,
            usd=(self.usd or 0.0) + times * (other.usd or 0.0),
        )

    def exceeds(self, worst: Worst) -> bool:
        """Return whether a charge is above the worst case it was reserved at (1e-9 relative for float dollars)."""
        over_usd = self.usd is not None and worst.usd is not None and self.usd > worst.usd * (1 + 1e-9)
        return self.calls > worst.calls or self.tokens > worst.tokens or over_usd


_NOTHING = Worst(calls=0, tokens=0, usd=0.0)


class Ledger:
    """The account of one run. It belongs to one event loop; every method is atomic between awaits."""

    def __init__(self, budget: Budget | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget or Budget()
        self.spent = Usage()
        """Everything settled so far, as the endpoints reported it."""
        self.overruns = 0
        """Settled calls that took more than their worst case."""
        self.refusals = 0
        """Calls that were not made because they could have passed a limit."""
        self._charged = _NOTHING
        self._held: dict[int, Worst] = {}
        self._in_flight = _NOTHING
        self._turn = asyncio.Lock()
        self._settled: asyncio.Future[None] | None = None
        self._ids = itertools.count()
        self._clock = clock
        self._start_s = clock()

    @property
    def seconds_left(self) -> float | None:
        """Return the wall seconds until the deadline, or None without one."""
        return None if self.budget.seconds is None else self._start_s + self.budget.seconds - self._clock()

    async def reserve(self, worst: Worst, *, model: str = "") -> int:
        """Hold a call's worst case and return the reservation's id; wait while calls in flight stand in the way.

        Those who wait are served in the order in which they came, so a large call is not passed over for ever.

        Raises:
            UnknownPrice: there is a dollar limit and the call has no price.
            BudgetExceeded: the call's worst case does not fit into what is left.
        """
        if self.budget.usd is not None and worst.usd is None:
            raise UnknownPrice(
                f"model {model!r} has no known price, so a budget of ${self.budget.usd} cannot be kept: "
                "set its price in dollars per million tokens, or leave the dollar budget out"
            )
        self._refuse_hopeless(worst, model)
        # Only the first in the queue wakes up when a call settles: n waiters cost n wake-ups, not n².
        async with self._turn:
            while self._obstacle(worst, self._charged.plus(self._in_flight)) is not None:
                self._refuse_hopeless(worst, model)
                await self._settling()
            reservation = next(self._ids)
            self._held[reservation] = worst
            self._in_flight = self._in_flight.plus(worst)
            return reservation

    def settle(self, reservation: int, usage: Usage) -> None:
        """Give a reservation back and charge what the call really took; what is not known is charged at its worst."""
        worst = self._held.pop(reservation)
        # Float dollars drift by adding and taking away; an idle ledger starts again from exactly nothing.
        self._in_flight = self._in_flight.plus(worst, times=-1) if self._held else _NOTHING
        charge = _charge(worst, usage)
        self.overruns += charge.exceeds(worst)
        self._charged = self._charged.plus(charge)
        self.spent = self.spent + usage
        if self._settled is not None and not self._settled.done():
            self._settled.set_result(None)

    def _refuse_hopeless(self, worst: Worst, model: str) -> None:
        """Refuse what would not fit even if every call in flight turned out to be free."""
        if (limit := self._obstacle(worst, self._charged)) is not None:
            self.refusals += 1
            raise BudgetExceeded(f"the next call to {model!r} could pass the budget of {limit}; it was not made")

    def _obstacle(self, worst: Worst, taken: Worst) -> str | None:
        """Return the limit that `worst` on top of `taken` could pass, in words, or None."""
        budget, total = self.budget, taken.plus(worst)
        left_s = self.seconds_left
        if left_s is not None and left_s <= 0:
            return f"{budget.seconds} seconds"
        if self.overruns and (budget.tokens is not None or budget.usd is not None):
            return f"{budget}, because an endpoint took more than it was allowed"
        if budget.calls is not None and total.calls > budget.calls:
            return f"{budget.calls} calls"
        if budget.tokens is not None and total.tokens > budget.tokens:
            return f"{budget.tokens} tokens"
        if budget.usd is not None and (total.usd or 0.0) > budget.usd:
            return f"${budget.usd}"
        return None

    async def _settling(self) -> None:
        """Wait for a call in flight to settle, at most until the deadline."""
        self._settled = asyncio.get_running_loop().create_future()
        left_s = self.seconds_left
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if left_s is None else max(left_s, 0.0)):
                await self._settled


def _charge(worst: Worst, usage: Usage) -> Worst:
    """Return what a settled call is charged: what was paid, and the worst case where that is not known."""
    if usage.calls and not usage.paid_calls:
        # All from a cache: free, even if the tokens that it once took are not known.
        return _NOTHING
    tokens = worst.tokens if usage.paid_tokens is None else usage.paid_tokens
    usd = worst.usd if usage.paid_usd is None else usage.paid_usd
    return Worst(calls=usage.paid_calls, tokens=tokens, usd=usd)
