"""Small layers with known behaviour, and a model that says what it is told to."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from archon.models.protocol import Request
from archon.pipeline.layer import Leaf, layer
from archon.pipeline.plan import LayerPlan
from archon.testing import ScriptedModel
from archon.types import Candidate, Message, Problem, Span, UnitTest, Usage, Verdict

PROBLEM = Problem(id="p", prompt="What is 6 times 7?")


def says(text="42", **options):
    return ScriptedModel(lambda request, index: text, **options)


@layer
async def own(trace):
    """Leave the trace as it is."""
    return trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Make(Leaf):
    """Makes n candidates, each from one call of its model; in later rounds they replace the last ones."""

    kind: ClassVar[str] = "generator"
    model: Any = None
    n: int = 1
    seconds: float = 0.0

    async def __call__(self, trace):
        request = Request(messages=(Message(role="user", content=trace.problem.prompt),), n=self.n, max_tokens=5)
        completions = await self.model.sample(request)
        made = tuple(
            Candidate(id=trace.name(self.name, i), text=c.text, model=c.model) for i, c in enumerate(completions)
        )
        usage = sum((c.usage for c in completions), Usage())
        usage = replace(usage, critical_s=self.seconds)
        return trace.advance(made).spend(Span(layer=self.name, kind=self.kind, usage=usage))

    def plan_rows(self, shape):
        row = LayerPlan.of(self.name, self.kind, calls=self.n, prompt_tokens=200, max_tokens=5)
        return (row,), replace(shape, candidates=self.n, candidate_tokens=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Do(Leaf):
    """Does to the trace what a function says, under the kind that is given, in known seconds."""

    kind: ClassVar[str] = "ranker"
    does: Callable[[Any], Any] = lambda trace: trace
    seconds: float = 0.0
    keeps: int | None = None

    async def __call__(self, trace):
        await asyncio.sleep(0)
        return self.does(trace).spend(
            Span(layer=self.name, kind=self.kind, usage=Usage(calls=1, critical_s=self.seconds))
        )

    def plan_rows(self, shape):
        count = shape.candidates if self.keeps is None else min(self.keeps, shape.candidates)
        return (LayerPlan.of(self.name, self.kind, calls=1),), replace(shape, candidates=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge(Do):
    """Gives each live candidate the verdict of its round's outcome, the last outcome again when they run out."""

    kind: ClassVar[str] = "verifier"
    outcomes: tuple[bool | None, ...] = (False,)
    scores: tuple[float, ...] = (0.0,)

    async def __call__(self, trace):
        passed = self.outcomes[min(trace.round, len(self.outcomes) - 1)]
        score = self.scores[min(trace.round, len(self.scores) - 1)]
        verdict = Verdict(passed=passed, by=self.name)
        live = tuple(replace(c, verdicts=(*c.verdicts, verdict), score=score) for c in trace.candidates)
        return replace(trace, candidates=live).spend(
            Span(layer=self.name, kind=self.kind, usage=Usage(calls=1, critical_s=self.seconds))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(Leaf):
    """Adds n unit tests whose text carries its label."""

    kind: ClassVar[str] = "unit_test_generator"
    n: int = 2

    async def __call__(self, trace):
        tests = tuple(UnitTest(text=f"{self.name} {i}", source="model") for i in range(self.n))
        return replace(trace, tests=(*trace.tests, *tests)).spend(Span(layer=self.name, kind=self.kind))

    def plan_rows(self, shape):
        return (LayerPlan.of(self.name, self.kind, calls=0),), replace(shape, tests=shape.tests + self.n)


def evaluate(trace):
    """Give each candidate one outcome for each test, saying by its parity which test it was."""
    verdict = Verdict(passed=True, by="e", tests=tuple(test.text.endswith("0") for test in trace.tests))
    return replace(trace, candidates=tuple(replace(c, verdicts=(*c.verdicts, verdict)) for c in trace.candidates))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate(Do):
    kind: ClassVar[str] = "unit_test_evaluator"
    does: Callable[[Any], Any] = evaluate
