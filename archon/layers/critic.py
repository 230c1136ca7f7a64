"""Writes the strengths and weaknesses of every candidate, in one call for the whole set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from archon.layers import checks, prompts
from archon.layers.ask import ask, halted, over_budget, request_of, spent, tally, tokens_bound, unread
from archon.layers.parse_critiques import parse_critiques
from archon.layers.views import blank, view
from archon.models.protocol import Effort, Model
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.types import Span, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Critic(Leaf):
    """Sets each candidate's critique. One left out keeps what it had; a cut-off reply is read in part."""

    kind: ClassVar[str] = "critic"

    model: Model | str | None = None
    """None takes the generator's."""
    max_tokens: int = 1024
    """The most tokens of all critiques together."""
    temperature: float | None = 0.7
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""

    def __post_init__(self) -> None:
        checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=self.temperature, effort=self.effort)

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with critiques on its candidates; one call, none without candidates."""
        usable = trace.usable
        if not usable:
            return trace.spend(Span(layer=self.name, kind=self.kind))
        messages = prompts.critique(trace.problem, [view(candidate) for candidate in usable])
        (completion,) = await ask(self.model, request_of(self, messages, trace.round))
        critiques, parsed = parse_critiques(completion.text, len(usable))
        span = Span(
            layer=self.name, kind=self.kind, usage=spent([completion]), parses=tally([unread(completion) or parsed])
        )
        found = {candidate.id: text for candidate, text in zip(usable, critiques, strict=True) if text is not None}
        criticised = tuple(replace(c, critique=found.get(c.id, c.critique)) for c in trace.candidates)
        return halted(replace(trace, candidates=criticised).spend(span), over_budget([completion]))

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return one call."""
        tokens = tokens_bound(prompts.critique(shape.problem, [blank(shape)] * shape.candidates))
        row = LayerPlan.of(
            self.name,
            self.kind,
            calls=min(1, shape.candidates),
            prompt_tokens=tokens + shape.candidates * shape.candidate_tokens,
            max_tokens=self.max_tokens,
        )
        return (row,), replace(shape, critique_tokens=max(self.max_tokens, shape.critique_tokens))
