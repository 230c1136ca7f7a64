"""The one way in which a layer calls a model, and how it books what came back.

A call that fails is data: its completions carry an `error`, so one lost candidate or judge never ends a solve. What
cannot get better by going on (a wrong key, an empty account, a script that ran dry, an unknown price) is raised. A
call that the budget forbids is data as well, marked by `finish_reason="budget"`; the layer then stops the trace.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from archon.errors import AuthError, BudgetExceeded, ConfigError, ModelError, QuotaExhausted, ScriptExhausted
from archon.models.lost import one_each, usage_of
from archon.models.protocol import Completion, Effort, Model, Request
from archon.types import Message, Trace, Usage, beside

Status = Literal["ok", "repaired", "failed", "truncated", "call_failed"]
"""How a reply read: as asked; otherwise but unmistakably; not at all; cut off by the token limit; not there."""

_STATUSES: tuple[Status, ...] = ("ok", "repaired", "failed", "truncated", "call_failed")
_TERMINAL = (AuthError, QuotaExhausted, ScriptExhausted)
_SEEDS = 2**31 - 2**20
"""Seeds stay below 2^31 with room for a million samples counted upwards from each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One request's completions, and the error when the whole request failed."""

    completions: tuple[Completion, ...]
    error: ModelError | None = None


async def attempt(model: Model | str | None, request: Request) -> Attempt:
    """Send a request and return exactly `request.n` completions, lost ones with `error` set.

    Raises:
        AuthError, QuotaExhausted, ScriptExhausted: going on cannot help.
        UnknownPrice: a dollar budget over a model without a price.
        ConfigError: the layer was not bound to a model.
    """
    if model is None or isinstance(model, str):
        raise ConfigError(f"model {model!r} is a name, not a model: run the layer with `.run()`, which binds it")
    try:
        return Attempt(completions=await model.sample(request))
    except _TERMINAL:
        raise
    except BudgetExceeded as error:
        forbidden = Completion(text="", model=model.name, finish_reason="budget", error=str(error))
        return Attempt(completions=(forbidden,) * request.n)
    except ModelError as error:
        said = f"{type(error).__name__}: {error}"
        took = [usage_of(each, calls=1, price=model.price) for each in one_each(error, request.n)]
        lost = tuple(Completion(text="", model=model.name, error=said, usage=usage) for usage in took)
        return Attempt(completions=lost, error=error)


async def ask(model: Model | str | None, request: Request) -> tuple[Completion, ...]:
    """Send a request and return exactly `request.n` completions; see `attempt`."""
    return (await attempt(model, request)).completions


def spent(completions: Iterable[Completion]) -> Usage:
    """Return what completions that ran side by side took."""
    return beside(completion.usage for completion in completions)


def over_budget(completions: Iterable[Completion]) -> str | None:
    """Return why the budget forbade one of these calls, or None when it forbade none."""
    return next((c.error for c in completions if c.finish_reason == "budget" and c.error is not None), None)


def halted(trace: Trace, reason: str | None) -> Trace:
    """Return the trace stopped by the budget, or as it is without a reason."""
    return trace if reason is None else replace(trace, stop="budget", stop_reason=reason)


def unread(completion: Completion) -> Status | None:
    """Return why a judge's reply cannot be read, or None when there is one to parse.

    A reply without text is `truncated` when the limit cut it off: hidden thinking took all its tokens.
    """
    if completion.error is not None:
        return "call_failed"
    return "truncated" if completion.truncated else None


def tally(statuses: Iterable[Status]) -> tuple[tuple[str, int], ...]:
    """Count parse statuses, in the order in which they are defined."""
    counts = Counter(statuses)
    return tuple((status, counts[status]) for status in _STATUSES if counts[status])


class Asking(Protocol):
    """A layer that asks a model: what all its requests share, and what their seeds are derived from."""

    @property
    def name(self) -> str:
        """Return its label."""

    @property
    def seed(self) -> int:
        """Return the run's seed."""

    @property
    def temperature(self) -> float | None:
        """Return the temperature, None for the endpoint's default."""

    @property
    def max_tokens(self) -> int:
        """Return the most tokens of one reply."""

    @property
    def effort(self) -> Effort | None:
        """Return a reasoning model's effort, None to leave it out."""


def request_of(layer: Asking, messages: tuple[Message, ...], *place: object, n: int = 1) -> Request:
    """Return a layer's request; `place` tells it from the layer's others, so that each has a seed of its own."""
    return Request(
        messages=messages,
        n=n,
        temperature=layer.temperature,
        max_tokens=layer.max_tokens,
        seed=derive_seed(layer.seed, layer.name, *place),
        effort=layer.effort,
    )


def derive_seed(seed: int, *parts: object) -> int:
    """Return a seed that is the same for the same parts on every machine, and leaves room to count upwards."""
    digest = hashlib.blake2b(repr((seed, *parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % _SEEDS


def tokens_bound(messages: tuple[Message, ...]) -> int:
    """Return an upper bound of a prompt's tokens; plans render their prompts with blanks for generated texts."""
    return Request(messages=messages).prompt_tokens_bound
