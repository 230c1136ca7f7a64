"""Remember completions one by one: k = 5 with the cache gives five different samples, and the same five again.

The key of a completion is everything that decides what it says: the model's identity (its endpoint included), the
messages, every sampling parameter except n, and its sample index. So n = 8 after n = 5 asks for three more. A cached
answer keeps the tokens, dollars and seconds that it took, and says in `saved_*` that they were not paid again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import orjson

from archon.errors import ModelError, ModelRefused
from archon.models._per_loop import PerLoop
from archon.models._side_by_side import side_by_side
from archon.models._wrapper import Wrapper
from archon.models.completion_store import CompletionStore
from archon.models.lost import Answer, completions_from, one_each
from archon.models.openai_wire import content_of
from archon.models.protocol import Completion, Request
from archon.models.splitting import part_of
from archon.types import Usage

_BROKEN = ("error", "abort")
"""Finish reasons of completions that the endpoint cut off by its own failure."""

_Asked = dict[tuple[bytes, int], "asyncio.Future[Answer | None]"]


def key_of(identity: str, request: Request) -> bytes:
    """Return what tells a series of samples from every other: 32 bytes. The seed counts from sample 0."""
    asked = {
        "identity": identity,
        "messages": [(message.role, content_of(message.content)) for message in request.messages],
        "temperature": None if request.temperature is None else float(request.temperature),
        "top_p": None if request.top_p is None else float(request.top_p),
        "max_tokens": request.max_tokens,
        "stop": request.stop,
        "seed": None if request.seed is None else request.seed - request.sample_index,
        "effort": request.effort,
    }
    try:
        return hashlib.sha256(orjson.dumps(asked)).digest()
    except TypeError as error:
        raise ModelRefused(f"a request cannot be written as JSON: {error}") from None


@dataclass(frozen=True, slots=True, eq=False)
class Cached(Wrapper):
    """A model that asks for nothing twice, neither over time nor at the same time."""

    store: CompletionStore
    _loops: PerLoop[_Asked] = field(init=False, repr=False, default_factory=lambda: PerLoop(dict))

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return the completions, from the store where it has them.

        Raises:
            JournalError: the store cannot be read.
            ModelError: nothing is stored and the model gave nothing.
        """
        key = key_of(self.identity, request)
        indices = range(request.sample_index, request.sample_index + request.n)
        got: dict[int, Answer] = {}
        while missing := [index for index in indices if index not in got]:
            got |= await self._round(key, request, missing)
        return completions_from([got[index] for index in indices], self)

    async def close(self) -> None:
        """Close the model and the store."""
        await self.model.close()
        self.store.close()

    async def _round(self, key: bytes, request: Request, missing: list[int]) -> dict[int, Answer]:
        """Return what the store has, what others in this loop are asking for, and what we ask for now.

        What another request was asking for is left out when that request was cancelled.
        """
        asked = self._loops.get()
        stored = self.store.get(key, missing[0], missing[-1] - missing[0] + 1)
        got: dict[int, Answer] = {index: self._saved(stored[index]) for index in missing if index in stored}
        theirs = {index: asked[key, index] for index in missing if index not in got and (key, index) in asked}
        ours = _runs(index for index in missing if index not in got and index not in theirs)
        promised = {(key, index): asyncio.get_running_loop().create_future() for run in ours for index in run}
        asked.update(promised)
        try:
            for answers in await side_by_side([self._ask(key, request, run) for run in ours]):
                got |= answers
            if theirs:
                await asyncio.wait(theirs.values())
        finally:
            for place, future in promised.items():
                del asked[place]
                future.set_result(got.get(place[1]))
        for index, future in theirs.items():
            if (answer := future.result()) is not None:
                got[index] = self._shared(answer)
        return got

    async def _ask(self, key: bytes, request: Request, run: range) -> dict[int, Answer]:
        """Ask the model for a run of samples and store them."""
        try:
            completions = await self.model.sample(part_of(request, run.start - request.sample_index, len(run)))
        except ModelError as error:
            return dict(zip(run, one_each(error, len(run)), strict=True))
        self.store.put(key, {index: each for index, each in zip(run, completions, strict=True) if _whole(each)})
        return dict(zip(run, completions, strict=True))

    def _saved(self, completion: Completion) -> Completion:
        usage = completion.usage
        saved = replace(
            usage, attempts=0, wait_s=0.0, saved_calls=usage.calls, saved_tokens=usage.tokens, saved_usd=usage.cost_usd
        )
        return replace(completion, model=self.name, usage=saved)

    def _shared(self, answer: Answer) -> Answer:
        """Return an answer that another request asked for; what was lost is on that one's account alone."""
        if isinstance(answer, ModelError):
            return answer.with_spent()
        if answer.error is not None:
            return replace(answer, usage=Usage(calls=answer.usage.calls))
        return self._saved(answer)


def _whole(completion: Completion) -> bool:
    return completion.error is None and completion.finish_reason not in _BROKEN


def _runs(indices: Iterable[int]) -> list[range]:
    """Return the contiguous runs of ascending indices."""
    runs: list[range] = []
    for index in indices:
        if runs and runs[-1].stop == index:
            runs[-1] = range(runs[-1].start, index + 1)
        else:
            runs.append(range(index, index + 1))
    return runs
