"""What every layer may ask of a model, and nothing more.

One method: `sample(request)` gives exactly `request.n` completions. A whole request that fails raises a `ModelError`;
one lost completion of several is data, a `Completion` with `error` set. Retry, cache, metering, rate limits and the
splitting of n into single requests are wrappers that are themselves a `Model` (each in its own file); the usual stack,
outermost first: Metered(Cached(Splitting(Retrying(Throttled(endpoint))))).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from archon.types import Message, Usage, text_of

Effort = Literal["none", "low", "medium", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per million tokens. A local model's price is zero unless one is set."""

    prompt_usd: float
    completion_usd: float
    cached_prompt_usd: float | None = None
    """For prompt tokens that the endpoint's prefix cache served; None: the same as `prompt_usd`."""

    def cost_usd(self, usage: Usage) -> float | None:
        """Return what the tokens of `usage` cost; None when a token count is not known."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        cached = usage.cached_prompt_tokens or 0
        cached_usd = self.prompt_usd if self.cached_prompt_usd is None else self.cached_prompt_usd
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt_usd + cached * cached_usd + usage.completion_tokens * self.completion_usd) / 1e6


FREE = Price(prompt_usd=0.0, completion_usd=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request for n completions of the same conversation."""

    messages: tuple[Message, ...]
    n: int = 1
    temperature: float | None = None
    """None leaves it to the endpoint; 0.0 is sent as 0.0."""
    top_p: float | None = None
    max_tokens: int = 1024
    """The most tokens one completion may have, hidden thinking included."""
    stop: tuple[str, ...] = ()
    seed: int | None = None
    """The seed of completion `sample_index`; the next one has the next seed. None: the endpoint draws."""
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""
    sample_index: int = 0
    """The index of the first completion among all those asked for with these settings: part of a cache key."""

    @property
    def prompt_tokens_bound(self) -> int:
        """Return an upper bound of the prompt's tokens.

        A byte-level tokenizer never makes more tokens than bytes; 64 covers a template's default system message
        and 16 each turn's marks. An image counts 4,096, above what the common providers charge for one. Text that is
        not valid Unicode has a bound as well, though no endpoint can be sent it.
        """
        total = 64
        for message in self.messages:
            parts = message.content if isinstance(message.content, tuple) else ()
            images = sum(not isinstance(part, str) for part in parts)
            total += 16 + len(text_of(message.content).encode(errors="surrogatepass")) + 4096 * images
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The raw text of one model call, and what that call took."""

    text: str
    model: str
    finish_reason: str | None = None
    """stop, length, content_filter, or what else the endpoint says; None: it did not say."""
    reasoning: str | None = None
    """Hidden thinking, already taken out of `text`."""
    usage: Usage = Usage()
    """This completion's own share: in an n > 1 request the prompt's tokens are on the first completion alone."""
    seed: int | None = None
    error: str | None = None
    """Why this completion of several is missing."""

    @property
    def truncated(self) -> bool:
        """Return whether the token limit cut it off."""
        return self.finish_reason == "length"


@runtime_checkable
class Model(Protocol):
    """Anything that completes conversations."""

    @property
    def name(self) -> str:
        """Return the name that traces and reports show."""
        ...

    @property
    def identity(self) -> str:
        """Return what tells this model from every other for a cache: endpoint and model id, without secrets."""
        ...

    @property
    def price(self) -> Price | None:
        """Return the price, or None when it is not known."""
        ...

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return exactly `request.n` completions.

        Raises:
            ModelError: the whole request failed.
            BudgetError: a metered model may not make the call.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; calling it twice is fine."""
        ...
