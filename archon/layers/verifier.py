"""Decides which candidates are right: by a judge's reasons and verdict, or by unit tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from archon.layers import checks, prompts
from archon.layers.ask import Status, ask, halted, over_budget, request_of, tally, tokens_bound, unread
from archon.layers.evaluation import Judged, Judging, judge_by_tests
from archon.layers.parse_choice import parse_verdict
from archon.layers.unit_tests import (
    Written,
    all_judged,
    asking_for_tests,
    judging_calls,
    judging_tokens,
    with_tests,
    write_tests,
)
from archon.layers.views import best_first, blank, view
from archon.models.protocol import Completion, Effort, Model
from archon.pipeline.compose import gather
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.sandbox.protocol import Sandbox
from archon.types import Candidate, Span, Trace, Usage, Verdict, beside


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier(Leaf):
    """Gives each candidate a verdict and orders them: passed, not judged, failed; then by score.

    With `unit_tests=0` a judge writes its reasons, then its verdict: two calls for each candidate. With tests it uses
    those of the trace, or has them written first (one call), and judges as the unit test evaluator does. A judge that
    is cut off or down gives no verdict. When every candidate is rejected, `on_reject` decides and the trace says so.
    """

    kind: ClassVar[str] = "verifier"

    model: Model | str | None = None
    """The judge, and the writer of tests; None takes the generator's."""
    unit_tests: int = 0
    """0: reasons and verdict; n: judge by tests, n of which are asked for when the trace has none."""
    use_examples: bool = True
    """Whether examples stated in a code problem become tests."""
    pass_share: float = 1.0
    """The share of tests that a passing candidate passes."""
    agreement: bool = True
    """Whether programs are scored by agreement as well as by tests passed."""
    on_reject: Literal["best_effort", "abstain"] = "best_effort"
    """When all are rejected: give the best all the same, or give no answer."""
    keep: Literal["all", "passed", "best"] = "all"
    """Which stay live: all; those that passed (all when none did); or the first alone."""
    per_call_s: float = 2.0
    """Seconds that one test of a program may run."""
    max_tokens: int = 512
    """The most tokens of one reply."""
    temperature: float | None = 0.0
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""
    sandbox: Sandbox | None = None
    """None takes the run's."""

    @property
    def needs_sandbox(self) -> bool:
        """Return whether it judges by tests; a verifier without them runs nothing."""
        return self.unit_tests > 0

    def __post_init__(self) -> None:
        checks.whole(self.kind, "unit_tests", self.unit_tests, low=0, high=100)
        checks.flag(self.kind, "use_examples", self.use_examples)
        checks.real(self.kind, "pass_share", self.pass_share, low=0.0, high=1.0)
        checks.flag(self.kind, "agreement", self.agreement)
        checks.choice(self.kind, "on_reject", self.on_reject, ("best_effort", "abstain"))
        checks.choice(self.kind, "keep", self.keep, ("all", "passed", "best"))
        checks.real(self.kind, "per_call_s", self.per_call_s, low=0.01, high=600.0)
        checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=self.temperature, effort=self.effort)

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with verdicts, the best first, and the policy applied when all are rejected."""
        written = await self._written(trace)
        trace = replace(trace, tests=(*trace.tests, *written.tests))
        if written.stop is not None:
            judged = Judged(candidates=trace.candidates, stop=written.stop)
        elif self.unit_tests:
            judged = await judge_by_tests(trace, self._judging())
        else:
            judged = await self._reasoned(trace)
        rejected = bool(trace.usable) and all(c.passed is False for c in judged.candidates if c.error is None)
        span = Span(
            layer=self.name,
            kind=self.kind,
            usage=written.usage + judged.usage,
            parses=tally((*written.statuses, *judged.statuses)),
            notes=(*written.notes, *judged.notes, *((f"all_rejected: {self.on_reject}",) if rejected else ())),
        )
        trace = trace.advance(self._kept(best_first(judged.candidates))).spend(span)
        if judged.stop is None and rejected and self.on_reject == "abstain":
            count = len(trace.usable)
            return replace(trace, stop="abstained", stop_reason=f"{self.name} rejected all {count} candidates")
        return halted(trace, judged.stop)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return two calls for each candidate; with tests, one to write them and, for prose, one for each candidate."""
        if self.unit_tests:
            row, shape = self._plan_tests(shape)
        else:
            row = self._plan_reasoned(shape)
        return (row,), shape.first(1 if self.keep == "best" else None)

    def _plan_reasoned(self, shape: Shape) -> LayerPlan:
        one = blank(shape)
        first = tokens_bound(prompts.reasoning(shape.problem, one)) + shape.candidate_tokens
        second = tokens_bound(prompts.verdict(shape.problem, one, "")) + shape.candidate_tokens + self.max_tokens
        calls = 2 * shape.candidates
        return LayerPlan(
            layer=self.name,
            kind=self.kind,
            calls=calls,
            max_calls=calls,
            prompt_tokens=shape.candidates * (first + second),
            completion_tokens=calls * self.max_tokens,
        )

    def _plan_tests(self, shape: Shape) -> tuple[LayerPlan, Shape]:
        writing, tokens = 0, 0
        if not shape.tests and not shape.tests_sought:
            writing, tokens = 1, tokens_bound(asking_for_tests(shape.problem, self.unit_tests))
            shape = with_tests(shape, self.unit_tests, self.max_tokens, use_examples=self.use_examples)
        judging, most = judging_calls(shape)
        row = LayerPlan(
            layer=self.name,
            kind=self.kind,
            calls=writing + judging,
            max_calls=writing + most,
            prompt_tokens=tokens + most * judging_tokens(shape),
            completion_tokens=(writing + most) * self.max_tokens,
        )
        return row, all_judged(shape)

    async def _written(self, trace: Trace) -> Written:
        """Have tests written when they are needed: once in a solve, even when none could be read."""
        tried = any(span.kind == "unit_test_generator" or span.layer == self.name for span in trace.spans)
        if not self.unit_tests or trace.tests or tried or not trace.usable:
            return Written()
        messages = asking_for_tests(trace.problem, self.unit_tests)
        request = request_of(self, messages, trace.round, "write")
        return await write_tests(trace, self.model, request, self.unit_tests, use_examples=self.use_examples)

    def _judging(self) -> Judging:
        return Judging(
            name=self.name,
            model=self.model,
            sandbox=self.sandbox,
            seed=self.seed,
            pass_share=self.pass_share,
            agree=self.agreement,
            per_call_s=self.per_call_s,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            effort=self.effort,
        )

    async def _reasoned(self, trace: Trace) -> Judged:
        judged = await gather([self._judge(trace, candidate) for candidate in trace.usable])
        by_id = {one.candidates[0].id: one.candidates[0] for one in judged}
        notes = tuple(dict.fromkeys(note for one in judged for note in one.notes))
        return Judged(
            candidates=tuple(by_id.get(candidate.id, candidate) for candidate in trace.candidates),
            usage=beside(one.usage for one in judged),
            statuses=tuple(status for one in judged for status in one.statuses),
            notes=notes,
            stop=next((one.stop for one in judged if one.stop is not None), None),
        )

    async def _judge(self, trace: Trace, candidate: Candidate) -> Judged:
        """Ask for the reasons, then for the verdict that they lead to. Cut-off reasons are reasons all the same."""
        shown = view(candidate)
        messages = prompts.reasoning(trace.problem, shown)
        (first,) = await ask(self.model, request_of(self, messages, trace.round, candidate.id, "reasons"))
        if first.error is not None or not first.text.strip():
            return self._unjudged(candidate, first, first.usage)
        messages = prompts.verdict(trace.problem, shown, first.text)
        (second,) = await ask(self.model, request_of(self, messages, trace.round, candidate.id, "verdict"))
        usage = first.usage + second.usage
        passed, parsed = parse_verdict(second.text)
        status = unread(second) or parsed
        if status not in {"ok", "repaired"}:
            return self._unjudged(candidate, second, usage, status)
        verdict = Verdict(passed=passed, by=self.name, reason=first.text.strip())
        notes = ("reasons cut off",) if first.truncated else ()
        return Judged(candidates=(_judged(candidate, verdict),), usage=usage, statuses=(status,), notes=notes)

    def _unjudged(
        self, candidate: Candidate, completion: Completion, usage: Usage, status: Status | None = None
    ) -> Judged:
        status = status or unread(completion) or "failed"
        reason = completion.error or {"truncated": "the judge was cut off"}.get(status, "the verdict cannot be read")
        verdict = Verdict(passed=None, by=self.name, reason=reason)
        return Judged(
            candidates=(_judged(candidate, verdict),),
            usage=usage,
            statuses=(status,),
            stop=over_budget([completion]),
        )

    def _kept(self, ordered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        if self.keep == "best":
            return ordered[:1]
        if self.keep == "passed":
            return tuple(candidate for candidate in ordered if candidate.passed is True) or ordered
        return ordered


def _judged(candidate: Candidate, verdict: Verdict) -> Candidate:
    return replace(candidate, verdicts=(*candidate.verdicts, verdict))
