"""Makes candidates: n samples from each of its models, all asked side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

from archon.errors import ModelError, ModelUnavailable
from archon.layers import checks, prompts
from archon.layers.ask import Attempt, attempt, derive_seed, halted, over_budget, spent, tally, tokens_bound
from archon.layers.candidates import candidate_from, read_status
from archon.layers.views import REASON_CHARACTERS, why_not
from archon.models.protocol import Completion, Effort, Model, Request
from archon.pipeline.compose import gather
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.types import Candidate, Message, Span, Trace, UnitTest


@dataclass(frozen=True, slots=True, kw_only=True)
class Generator(Leaf):
    """Samples candidates. In later rounds of a refine loop it is shown the best last answer and why it failed.

    A fixed temperature is one request for n completions; a spread is one request for each temperature. A sample without
    text is a lost candidate. When a first round gives no candidate at all, the endpoint's error is raised.
    """

    kind: ClassVar[str] = "generator"

    model: Model | str | tuple[Model | str, ...] | None = None
    """The model, or several, each asked for n samples."""
    n: int = 1
    """Samples from each model."""
    temperature: float | tuple[float, float] | None = 0.7
    """One for all samples; or lowest and highest, spread evenly over the n samples; None: the endpoint's default."""
    top_p: float | None = None
    """Nucleus sampling's share; None leaves it to the endpoint."""
    max_tokens: int = 1024
    """The most tokens of one candidate, hidden thinking included."""
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""
    show_tests: bool = False
    """Whether the prompt lists the unit tests written before."""
    system: str | None = None
    """A system text in front of the problem's own."""

    def __post_init__(self) -> None:
        checks.whole(self.kind, "n", self.n, low=1)
        spread = self.temperature if isinstance(self.temperature, tuple) else (self.temperature,) * 2
        checks.require(
            len(spread) == 2, self.kind, "temperature", self.temperature, "must be one number or (low, high)"
        )
        for value in spread:
            checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=value, effort=self.effort)
        low, high = spread
        if low is not None and high is not None:
            checks.require(low <= high, self.kind, "temperature", self.temperature, "the first must be the lower one")
        checks.real(self.kind, "top_p", self.top_p, low=0.0, high=1.0, none=True)
        checks.flag(self.kind, "show_tests", self.show_tests)
        checks.require(self.model != (), self.kind, "model", self.model, "must name at least one model")

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with the new candidates live; in later rounds they replace the last ones."""
        asked = [(model, request) for i, model in enumerate(self._asked) for request in self._requests(trace, i)]
        attempts = await gather([attempt(model, request) for model, request in asked])
        candidates = tuple(
            self._candidate(trace, request, i, completion)
            for (_, request), got in zip(asked, attempts, strict=True)
            for i, completion in enumerate(got.completions)
        )
        completions = [completion for got in attempts for completion in got.completions]
        reason = over_budget(completions)
        lost = all(candidate.error is not None for candidate in candidates)
        if lost and reason is None and not trace.usable:
            _raise_lost(attempts)
        span = Span(
            layer=self.name, kind=self.kind, usage=spent(completions), parses=tally(map(read_status, candidates))
        )
        if lost and trace.usable:
            span = replace(span, notes=("no new candidate: the last ones kept",))
            return halted(trace.advance(trace.usable[: len(candidates)]).spend(span), reason)
        kept = trace.candidates if trace.round == 0 else ()
        return halted(trace.advance((*kept, *candidates)).spend(span), reason)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return n calls for each model. Candidates on the shape mean a later round, whose prompt shows one of them."""
        tests = (UnitTest(text="", source="model"),) * shape.tests if self.show_tests else ()
        failed = ("", "€" * REASON_CHARACTERS) if shape.candidates else None
        messages = prompts.generation(shape.problem, system=self.system, tests=tests, failed=failed)
        tokens = (
            tokens_bound(messages) + (shape.candidate_tokens if failed else 0) + (shape.test_tokens if tests else 0)
        )
        count = self.n * len(self._asked)
        row = LayerPlan.of(self.name, self.kind, calls=count, prompt_tokens=tokens, max_tokens=self.max_tokens)
        return (row,), replace(shape, candidates=count, judged=0, candidate_tokens=self.max_tokens, critique_tokens=0)

    @property
    def _asked(self) -> tuple[Model | str | None, ...]:
        """Return the models as a tuple; one that is not set yet counts as one."""
        return self.model if isinstance(self.model, tuple) else (self.model,)

    def _messages(self, trace: Trace) -> tuple[Message, ...]:
        last = trace.usable[0] if trace.round > 0 and trace.usable else None
        return prompts.generation(
            trace.problem,
            system=self.system,
            tests=trace.tests if self.show_tests else (),
            failed=None if last is None else (last.text, why_not(last)),
        )

    def _requests(self, trace: Trace, model_index: int) -> list[Request]:
        """Return one request for each temperature; sample indexes go on from model to model, so none is drawn twice."""
        messages, seed, first = (
            self._messages(trace),
            derive_seed(self.seed, self.name, trace.round),
            model_index * self.n,
        )
        requests = []
        for temperature, group in groupby(self._temperatures()):
            count = len(list(group))
            requests.append(
                Request(
                    messages=messages,
                    n=count,
                    temperature=temperature,
                    top_p=self.top_p,
                    max_tokens=self.max_tokens,
                    seed=seed + first,
                    effort=self.effort,
                    sample_index=first,
                )
            )
            first += count
        return requests

    def _temperatures(self) -> list[float | None]:
        if not isinstance(self.temperature, tuple):
            return [self.temperature] * self.n
        low, high = self.temperature
        return [low + (high - low) * i / max(1, self.n - 1) for i in range(self.n)]

    def _candidate(self, trace: Trace, request: Request, index: int, completion: Completion) -> Candidate:
        return candidate_from(
            completion, trace.name(self.name, request.sample_index + index), temperature=request.temperature
        )


def _raise_lost(attempts: list[Attempt]) -> None:
    """Raise the first request's error, or one made of what the completions say, when the endpoint is to blame."""
    for got in attempts:
        if got.error is not None:
            raise got.error
    errors = [completion.error for got in attempts for completion in got.completions]
    if all(errors):
        failure: ModelError = ModelUnavailable(f"no candidate could be generated: {errors[0]}")
        raise failure
