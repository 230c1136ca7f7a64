"""Improves each candidate several times over: every revision sees the answers before it.

Source: sequential revisions, Snell et al. 2024 (arXiv 2408.03314), section 6; a window of 4 earlier answers as there.
Differs: any chat model revises, guided by critiques and verdicts where there are any; theirs was trained to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from archon.layers import checks, prompts
from archon.layers.ask import ask, halted, over_budget, request_of, tally, tokens_bound
from archon.layers.candidates import candidate_from, read_status
from archon.layers.views import blank, view
from archon.models.protocol import Effort, Model
from archon.pipeline.compose import gather
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.types import Candidate, Span, Trace, Usage, beside


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """One candidate and its revisions, oldest first."""

    answers: tuple[Candidate, ...]
    lost: tuple[Candidate, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise(Leaf):
    """Revises each candidate `rounds` times in a row, all candidates side by side. A lost revision ends its chain."""

    kind: ClassVar[str] = "revise"

    model: Model | str | None = None
    """None takes the generator's."""
    rounds: int = 1
    """Revisions of each candidate, one after the other."""
    window: int = 4
    """How many of the newest answers of its chain a revision sees."""
    keep_inputs: bool = False
    """Whether the earlier answers of each chain stay live behind the newest ones."""
    max_tokens: int = 1024
    """The most tokens of one revision, hidden thinking included."""
    temperature: float | None = 0.7
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""

    def __post_init__(self) -> None:
        checks.whole(self.kind, "rounds", self.rounds, low=1)
        checks.whole(self.kind, "window", self.window, low=1)
        checks.flag(self.kind, "keep_inputs", self.keep_inputs)
        checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=self.temperature, effort=self.effort)

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with the newest answer of each chain live, in the order of the candidates."""
        chains = await gather([self._chain(trace, i, candidate) for i, candidate in enumerate(trace.usable)])
        made = tuple(candidate for chain in chains for candidate in (*chain.answers[1:], *chain.lost))
        span = Span(
            layer=self.name,
            kind=self.kind,
            usage=beside(chain.usage for chain in chains),
            parses=tally(map(read_status, made)),
        )
        newest = tuple(chain.answers[-1] for chain in chains)
        earlier = tuple(answer for chain in chains for answer in reversed(chain.answers[:-1]))
        everything = tuple(answer for chain in chains for answer in (*chain.answers, *chain.lost))
        trace = trace.advance(everything).advance((*newest, *earlier) if self.keep_inputs else newest)
        stop = next((chain.stop for chain in chains if chain.stop is not None), None)
        return halted(trace.spend(span), stop)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return `rounds` calls for each candidate."""
        longest = max(shape.candidate_tokens, self.max_tokens)
        tokens = 0
        for done in range(1, self.rounds + 1):
            seen = min(done, self.window)
            messages = prompts.revision(shape.problem, [blank(shape, critique=True, tests=True)] * seen)
            tokens += tokens_bound(messages) + seen * (longest + shape.critique_tokens)
        calls = self.rounds * shape.candidates
        row = LayerPlan(
            layer=self.name,
            kind=self.kind,
            calls=calls,
            max_calls=calls,
            prompt_tokens=shape.candidates * tokens,
            completion_tokens=calls * self.max_tokens,
        )
        kept, judged = (shape.candidates, shape.judged) if self.keep_inputs else (0, 0)
        made = shape.candidates * self.rounds if self.keep_inputs else shape.candidates
        return (row,), replace(shape, candidates=kept + made, judged=judged, candidate_tokens=longest)

    async def _chain(self, trace: Trace, index: int, candidate: Candidate) -> _Chain:
        chain = _Chain(answers=(candidate,))
        for done in range(self.rounds):
            views = [view(answer, critique=True, tests=True) for answer in chain.answers[-self.window :]]
            messages = prompts.revision(trace.problem, views)
            (completion,) = await ask(self.model, request_of(self, messages, trace.round, candidate.id, done))
            name = trace.name(self.name, index * self.rounds + done)
            revised = candidate_from(completion, name, temperature=self.temperature, parents=(chain.answers[-1].id,))
            usage = chain.usage + completion.usage
            if revised.error is not None:
                return replace(chain, lost=(revised,), usage=usage, stop=over_budget([completion]))
            chain = replace(chain, answers=(*chain.answers, revised), usage=usage)
        return chain
