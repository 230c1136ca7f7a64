"""Ask for n completions from an endpoint that gives fewer at a time, and never ask again for those that came.

An endpoint's most per request is declared (`max_n`) or learnt: from a 400 that names the parameter n, or from one
choice where several were asked for. What is lost of several is asked for once more on its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from archon.errors import ConfigError, ModelError, ModelRefused
from archon.models._side_by_side import side_by_side
from archon.models._wrapper import Wrapper
from archon.models.lost import Answer, completions_from, one_each
from archon.models.openai_wire import MISSING_CHOICE
from archon.models.protocol import Completion, Request

_NAMES_N = re.compile(
    r"['\"`]n['\"`]|\bn\s*(?:=|>|<|must|should|is not|not|greater|larger)"
    r"|parameter:? n\b|multiple (?:choices|completions)",
    re.IGNORECASE,
)


def refuses_n(error: ModelError) -> bool:
    """Return whether a refusal is about the number of completions."""
    return isinstance(error, ModelRefused) and _NAMES_N.search(str(error)) is not None


@dataclass(slots=True)
class _Learnt:
    """The most completions that the endpoint gives per request; None: no limit seen."""

    max_n: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Splitting(Wrapper):
    """A model that gives any n, whatever its endpoint gives per request."""

    max_n: int | None = None
    """The most completions per request; None: learn it."""
    _learnt: _Learnt = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.max_n is not None and self.max_n < 1:
            raise ConfigError(f"max_n={self.max_n!r}: must be at least 1, or left out to be learnt")
        object.__setattr__(self, "_learnt", _Learnt(self.max_n))

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return exactly `request.n` completions; a lost one among others is a completion with an error.

        Raises:
            ModelError: all completions were lost; the first one's error, with what all of them took.
        """
        if request.n == 1:
            return await self.model.sample(request)
        return completions_from(await self._parts(request, self._learnt.max_n or request.n), self)

    async def _parts(self, request: Request, size: int) -> list[Answer]:
        """Ask for `size` completions at a time, side by side."""
        parts = [part_of(request, start, min(size, request.n - start)) for start in range(0, request.n, size)]
        return [answer for answers in await side_by_side([self._part(part) for part in parts]) for answer in answers]

    async def _part(self, part: Request) -> list[Answer]:
        try:
            completions = await self.model.sample(part)
        except ModelError as error:
            if part.n > 1 and refuses_n(error):
                self._learnt.max_n = 1
                return await self._parts(part, 1)
            return [*one_each(error, part.n)]
        missing = [index for index, completion in enumerate(completions) if completion.error is not None]
        if not missing:
            return list(completions)
        if len(missing) == part.n - 1 and all((completions[i].error or "").startswith(MISSING_CHOICE) for i in missing):
            self._learnt.max_n = 1
        return await self._filled(part, completions, missing)

    async def _filled(self, part: Request, completions: tuple[Completion, ...], missing: list[int]) -> list[Answer]:
        """Return the completions with each missing one asked for once on its own."""
        again = await side_by_side([self._single(part_of(part, index, 1)) for index in missing])
        answers: list[Answer] = list(completions)
        for index, answer in zip(missing, again, strict=True):
            answers[index] = answer
        return answers

    async def _single(self, request: Request) -> Answer:
        try:
            return (await self.model.sample(request))[0]
        except ModelError as error:
            return error


def part_of(request: Request, start: int, n: int) -> Request:
    """Return the request for n of the completions, from the `start`-th on, with their own seed and sample index."""
    if start == 0 and n == request.n:
        return request
    seed = None if request.seed is None else request.seed + start
    return replace(request, n=n, seed=seed, sample_index=request.sample_index + start)
