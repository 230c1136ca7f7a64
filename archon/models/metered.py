"""Hold a model to a budget: reserve the worst case, call, settle what it took."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from archon.budget import Ledger, Worst
from archon.errors import BudgetExceeded, ModelError, ModelRefused
from archon.models._wrapper import Wrapper
from archon.models.lost import usage_of, without_counts
from archon.models.protocol import Completion, Price, Request
from archon.types import Usage, beside, text_of


@dataclass(frozen=True, slots=True)
class Metered(Wrapper):
    """A model that spends from a ledger. It is the outermost wrapper, so cached answers are charged nothing.

    A cached answer is not known to be cached before it is asked for, so it too needs room for its worst case.
    """

    ledger: Ledger

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return the completions, having kept to the budget.

        Raises:
            BudgetExceeded: the call could pass a limit, or was cancelled at the deadline.
            UnknownPrice: a dollar limit over a model without a price.
            ModelError: as the model raised it; the call is charged, and its tokens at their worst if it may have been
                billed. Also for text that is not valid Unicode: that call is not made.
        """
        _refuse_unsendable(request)
        reservation = await self.ledger.reserve(worst_case(request, self.model.price), model=self.model.name)
        # A call that is cut off may have been billed: unless we learn otherwise it is charged at its worst.
        usage = without_counts(Usage(calls=request.n, attempts=1), self.price)
        try:
            async with asyncio.timeout(self.ledger.seconds_left) as deadline:
                completions = await self.model.sample(request)
            usage = beside(completion.usage for completion in completions)
        except ModelError as error:
            usage = usage_of(error, calls=request.n, price=self.price)
            raise
        except TimeoutError:
            if not deadline.expired():
                raise
            raise BudgetExceeded(f"the call to {self.name!r} was cut off at {self.ledger.budget.seconds} s") from None
        finally:
            self.ledger.settle(reservation, usage)
        return completions


def worst_case(request: Request, price: Price | None) -> Worst:
    """Return the most that a request can take: its prompt's bound for each completion, every completion at its limit.

    The prompt is counted n times because an endpoint that lacks n is asked n times.
    """
    prompt = request.prompt_tokens_bound * request.n
    completion = request.max_tokens * request.n
    usd = None
    if price is not None:
        dearest = max(price.prompt_usd, price.cached_prompt_usd or 0.0)
        usd = (prompt * dearest + completion * price.completion_usd) / 1e6
    return Worst(calls=request.n, tokens=prompt + completion, usd=usd)


def _refuse_unsendable(request: Request) -> None:
    """Raise ModelRefused for messages that are not valid Unicode text, which no endpoint can be sent."""
    try:
        for message in request.messages:
            text_of(message.content).encode()
    except UnicodeEncodeError as error:
        raise ModelRefused(f"the request holds text that cannot be written as UTF-8: {error.reason}") from None
