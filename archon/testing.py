"""Fakes that ship with the library: a scripted model that fails loudly when its script runs out, and a canned grader.

They are deterministic, count what they are asked, and can be slow, broken or rate-limited on purpose.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from archon.errors import ModelError, ScriptExhausted
from archon.models.protocol import FREE, Completion, Price, Request
from archon.types import Usage, text_of

Reply = str | Completion | ModelError
"""What one call gives: a text, a whole completion, or the error that the request raises."""


def reply_tokens(text: str) -> int:
    """Return the fakes' token count of a text: its words, at least 1."""
    return max(1, len(text.split()))


@dataclass
class ScriptedModel:
    """A model that reads its replies from a script, or from a function of the request and the sample index.

    It records every request in `requests`, and raises ScriptExhausted on one call too many.
    """

    script: Iterable[Reply] | Callable[[Request, int], Reply]
    name: str = "scripted"
    price: Price | None = FREE
    latency_s: float = 0.0
    """Seconds that each request takes; also what it reports as its critical path."""
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._replies = None if callable(self.script) else iter(self.script)
        self.in_flight = 0
        self.most_in_flight = 0

    @property
    def identity(self) -> str:
        """Return `scripted:` and the name."""
        return f"scripted:{self.name}"

    @property
    def calls(self) -> int:
        """Return the completions asked for so far."""
        return sum(request.n for request in self.requests)

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return the script's next `request.n` replies.

        Raises:
            ScriptExhausted: the script has fewer replies left than were asked for.
            ModelError: when the script says so.
        """
        self.requests.append(request)
        replies = [self._next(request, index) for index in range(request.n)]
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self.latency_s)
        finally:
            self.in_flight -= 1
        for reply in replies:
            if isinstance(reply, ModelError):
                raise reply
        return tuple(self._completion(request, index, reply) for index, reply in enumerate(replies))

    async def close(self) -> None:
        """Do nothing."""

    def _next(self, request: Request, index: int) -> Reply:
        if self._replies is None:
            assert callable(self.script)
            return self.script(request, request.sample_index + index)
        for reply in itertools.islice(self._replies, 1):
            return reply
        raise ScriptExhausted(f"{self.name!r} was asked for call {self.calls}, and its script ends before that")

    def _completion(self, request: Request, index: int, reply: Reply) -> Completion:
        if isinstance(reply, Completion):
            return reply
        assert isinstance(reply, str)
        prompt = sum(reply_tokens(text_of(message.content)) for message in request.messages) if index == 0 else 0
        usage = Usage(
            calls=1,
            prompt_tokens=prompt,
            completion_tokens=reply_tokens(reply),
            critical_s=self.latency_s,
            attempts=1 if index == 0 else 0,
        )
        usage = replace(usage, cost_usd=None if self.price is None else self.price.cost_usd(usage))
        seed = None if request.seed is None else request.seed + index
        return Completion(
            text=reply,
            model=self.name,
            finish_reason="stop",
            seed=seed,
            usage=usage,
        )
