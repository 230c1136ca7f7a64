"""Merges candidates into new ones: n calls in one request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from archon.layers import checks, prompts
from archon.layers.ask import ask, halted, over_budget, request_of, spent, tally, tokens_bound
from archon.layers.candidates import candidate_from, read_status
from archon.layers.views import blank, view
from archon.models.protocol import Effort, Model, Request
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.types import Candidate, Span, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuser(Leaf):
    """Writes n answers from the first `top_k` candidates, their critiques and their test outcomes.

    When no fused answer comes back, the first n inputs stay live instead, with a note.
    """

    kind: ClassVar[str] = "fuser"

    model: Model | str | None = None
    """None takes the generator's."""
    n: int = 1
    """Fused answers."""
    top_k: int | None = None
    """How many candidates it reads, from the first; None reads all."""
    keep_inputs: bool = False
    """Whether what it read stays live behind the fused answers, so that a verifier may choose."""
    length_control: bool = False
    """Whether the answer may not be longer than the longest candidate."""
    max_tokens: int = 1024
    """The most tokens of one fused answer, hidden thinking included."""
    temperature: float | None = 0.7
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""

    def __post_init__(self) -> None:
        checks.whole(self.kind, "n", self.n, low=1)
        checks.top_k(self.kind, self.top_k)
        checks.flag(self.kind, "keep_inputs", self.keep_inputs)
        checks.flag(self.kind, "length_control", self.length_control)
        checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=self.temperature, effort=self.effort)

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with the fused candidates first."""
        inputs = trace.usable[: self.top_k]
        if not inputs:
            return trace.spend(Span(layer=self.name, kind=self.kind))
        completions = await ask(self.model, self._request(trace, inputs))
        parents = tuple(candidate.id for candidate in inputs)
        fused = tuple(
            candidate_from(c, trace.name(self.name, i), temperature=self.temperature, parents=parents)
            for i, c in enumerate(completions)
        )
        lost = all(candidate.error is not None for candidate in fused)
        notes = ("no fused answer: inputs kept",) if lost else ()
        live = (*self._instead(inputs), *fused) if lost else (*fused, *inputs) if self.keep_inputs else fused
        parses = tally(map(read_status, fused))
        span = Span(layer=self.name, kind=self.kind, usage=spent(completions), parses=parses, notes=notes)
        return halted(trace.advance(live).spend(span), over_budget(completions))

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return n calls, each with every input in its prompt."""
        inputs = shape.first(self.top_k)
        read = inputs.candidates
        views = [blank(shape, critique=True, tests=True)] * read
        messages = prompts.fusion(shape.problem, views, length_control=self.length_control)
        row = LayerPlan.of(
            self.name,
            self.kind,
            calls=self.n if read else 0,
            prompt_tokens=tokens_bound(messages) + read * (shape.candidate_tokens + shape.critique_tokens),
            max_tokens=self.max_tokens,
        )
        kept, judged = (read, inputs.judged) if self.keep_inputs else (0, 0)
        # Inputs stay live when no fused answer comes back, so their length counts either way.
        tokens = max(self.max_tokens, shape.candidate_tokens)
        critiques = shape.critique_tokens if self.keep_inputs else 0
        return (row,), replace(
            shape, candidates=self.n + kept, judged=judged, candidate_tokens=tokens, critique_tokens=critiques
        )

    def _instead(self, inputs: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """Return the inputs that stand in for lost answers: no more than were planned for later layers."""
        if self.keep_inputs:
            return inputs
        return tuple(replace(candidate, critique=None) for candidate in inputs[: self.n])

    def _request(self, trace: Trace, inputs: tuple[Candidate, ...]) -> Request:
        views = [view(candidate, critique=True, tests=True) for candidate in inputs]
        messages = prompts.fusion(trace.problem, views, length_control=self.length_control)
        return request_of(self, messages, trace.round, n=self.n)
