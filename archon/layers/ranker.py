"""Orders candidates, best first: in one call, by a tournament of pairs, or by a vote without any call."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import ClassVar, Literal

from archon.layers import checks, prompts
from archon.layers.ask import Status, ask, halted, over_budget, request_of, spent, tally, tokens_bound, unread
from archon.layers.parse_choice import parse_choice
from archon.layers.parse_ranking import parse_ranking
from archon.layers.tournament import bradley_terry, copeland, wins_from
from archon.layers.views import View, blank, tests_score, view
from archon.models.protocol import Effort, Model
from archon.pipeline.compose import gather
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.tasks.extract import extract_answer
from archon.types import Candidate, Span, Trace, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opinion:
    """What was thought of the candidates: a number in [0, 1] for each, or None when there is no usable opinion."""

    values: tuple[float, ...] | None
    usage: Usage = field(default_factory=Usage)
    statuses: tuple[Status, ...] = ()
    stop: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker(Leaf):
    """Sorts candidates by executed tests first, where there are any, and by its own opinion second.

    Ties keep the incoming order, and so does a reply that cannot be read, which is counted as `failed`. Each candidate
    gets a score in [0, 1]: the opinion, or, where tests took part, the place in the order (1 for the best).
    A single candidate needs no call.
    """

    kind: ClassVar[str] = "ranker"

    model: Model | str | None = None
    """None takes the generator's."""
    top_k: int | None = None
    """How many stay live; None keeps all."""
    method: Literal["listwise", "pairwise", "majority"] = "listwise"
    """One call for the whole set; n(n-1) calls, each pair in both orders; or a vote by final answer, without calls."""
    scores: Literal["copeland", "bradley_terry"] = "copeland"
    """How a tournament is scored."""
    use_critiques: bool = True
    """Whether critiques are shown, where there are any."""
    use_tests: bool = True
    """Whether test outcomes are shown and outrank the opinion."""
    max_tokens: int = 256
    """The most tokens of one reply."""
    temperature: float | None = 0.0
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""

    def __post_init__(self) -> None:
        checks.top_k(self.kind, self.top_k)
        checks.choice(self.kind, "method", self.method, ("listwise", "pairwise", "majority"))
        checks.choice(self.kind, "scores", self.scores, ("copeland", "bradley_terry"))
        checks.flag(self.kind, "use_critiques", self.use_critiques)
        checks.flag(self.kind, "use_tests", self.use_tests)
        checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=self.temperature, effort=self.effort)

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with its candidates in order and the first `top_k` of them live."""
        usable = trace.usable
        opinion = await self._opinion(trace, usable)
        span = Span(layer=self.name, kind=self.kind, usage=opinion.usage, parses=tally(opinion.statuses))
        ordered = ranked(usable, opinion.values, tests=self.use_tests)
        if self.top_k is None:
            ordered += tuple(candidate for candidate in trace.candidates if candidate.error is not None)
        return halted(trace.advance(ordered[: self.top_k]).spend(span), opinion.stop)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return the calls of the method for that many candidates."""
        count, one = shape.candidates, blank(shape, critique=self.use_critiques, tests=self.use_tests)
        shown = 2 if self.method == "pairwise" else count
        messages = prompts.ranking(shape.problem, [one] * count)
        if self.method == "pairwise":
            messages = prompts.comparison(shape.problem, one, one)
        calls = {"listwise": min(1, count - 1), "pairwise": count * (count - 1), "majority": 0}[self.method]
        each = shape.candidate_tokens + (shape.critique_tokens if self.use_critiques else 0)
        row = LayerPlan.of(
            self.name,
            self.kind,
            calls=max(0, calls),
            prompt_tokens=tokens_bound(messages) + shown * each,
            max_tokens=self.max_tokens,
        )
        return (row,), shape.first(self.top_k)

    async def _opinion(self, trace: Trace, usable: tuple[Candidate, ...]) -> _Opinion:
        if self.method == "majority":
            return _Opinion(values=votes(usable))
        if len(usable) < 2:
            return _Opinion(values=(1.0,) * len(usable))
        views = [view(candidate, critique=self.use_critiques, tests=self.use_tests) for candidate in usable]
        return await (self._listwise(trace, views) if self.method == "listwise" else self._pairwise(trace, views))

    async def _listwise(self, trace: Trace, views: list[View]) -> _Opinion:
        (completion,) = await ask(self.model, request_of(self, prompts.ranking(trace.problem, views), trace.round))
        count = len(views)
        order, parsed = parse_ranking(completion.text, count)
        status = unread(completion) or parsed
        values = None
        if status in {"ok", "repaired"}:
            values = tuple(1.0 - order.index(i) / count for i in range(count))
        return _Opinion(values=values, usage=spent([completion]), statuses=(status,), stop=over_budget([completion]))

    async def _pairwise(self, trace: Trace, views: list[View]) -> _Opinion:
        """Compare every pair in both orders, all side by side."""
        pairs = list(permutations(range(len(views)), 2))
        requests = [
            request_of(self, prompts.comparison(trace.problem, views[i], views[j]), trace.round, i, j) for i, j in pairs
        ]
        completions = [one for (one,) in await gather([ask(self.model, request) for request in requests])]
        parsed = [parse_choice(completion.text) for completion in completions]
        statuses = tuple(unread(c) or status for c, (_, status) in zip(completions, parsed, strict=True))
        results = {
            pair: choice if status in {"ok", "repaired"} else None
            for pair, (choice, _), status in zip(pairs, parsed, statuses, strict=True)
        }
        wins = wins_from(results, len(views))
        score = copeland if self.scores == "copeland" else bradley_terry
        values = score(wins) if any(map(any, wins)) else None
        return _Opinion(values=values, usage=spent(completions), statuses=statuses, stop=over_budget(completions))


def ranked(
    candidates: tuple[Candidate, ...], opinion: tuple[float, ...] | None, *, tests: bool
) -> tuple[Candidate, ...]:
    """Return candidates in order with their scores: test scores first where there are any, then the opinion.

    A candidate whose tests were not judged takes the mean of the others, so it is neither passed over nor preferred.
    Without tests and without an opinion both order and scores stay as they were.
    """
    executed = [tests_score(candidate) if tests else None for candidate in candidates]
    known = [score for score in executed if score is not None]
    if not known:
        if opinion is None:
            return candidates
        scored = [replace(c, score=value) for c, value in zip(candidates, opinion, strict=True)]
        return tuple(sorted(scored, key=lambda c: -(c.score or 0.0)))
    mean = sum(known) / len(known)
    keys = [
        (mean if score is None else score, 0.0 if opinion is None else opinion[i]) for i, score in enumerate(executed)
    ]
    places = {key: 1.0 - place / len(set(keys)) for place, key in enumerate(sorted(set(keys), reverse=True))}
    scored = [replace(c, score=places[key]) for c, key in zip(candidates, keys, strict=True)]
    return tuple(sorted(scored, key=lambda c: -(c.score or 0.0)))


def votes(candidates: tuple[Candidate, ...]) -> tuple[float, ...] | None:
    """Return the share of candidates with the same final answer; 0 for one without, None when none has any.

    Source: self-consistency, Wang et al. 2023 (arXiv 2203.11171).
    """
    answers = [extract_answer(candidate.text) for candidate in candidates]
    counts = Counter(answer for answer in answers if answer is not None)
    if not counts:
        return None
    return tuple(0.0 if answer is None else counts[answer] / len(candidates) for answer in answers)
