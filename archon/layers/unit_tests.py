"""Unit tests as layers: one writes them, one judges candidates by them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from archon.layers import checks, prompts
from archon.layers.ask import Status, ask, halted, over_budget, request_of, spent, tally, tokens_bound, unread
from archon.layers.evaluation import Agree, Judging, judge_by_tests
from archon.layers.execution import executes
from archon.layers.parse_tests import ParsedTests, parse_code_tests, parse_prose_tests
from archon.layers.views import best_first, blank
from archon.models.protocol import Effort, Model, Request
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.sandbox.protocol import Sandbox
from archon.tasks.examples import stated_examples
from archon.types import Message, Problem, Span, Trace, UnitTest, Usage

_CANONICAL = 32
"""Bytes that a test can grow by when it is written in one form: ` == True`, quotes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Tests that are new to a trace, and what writing them took."""

    tests: tuple[UnitTest, ...] = ()
    usage: Usage = field(default_factory=Usage)
    statuses: tuple[Status, ...] = ()
    notes: tuple[str, ...] = ()
    stop: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTestGenerator(Leaf):
    """Adds the problem's own examples, then the model's tests: assert lines for code, short statements for prose.

    In later rounds of a refine loop the tests stay as they are.
    """

    kind: ClassVar[str] = "unit_test_generator"

    model: Model | str | None = None
    """None takes the generator's."""
    n: int = 8
    """Tests asked for, at most as many are kept; 5 to 10 are usual."""
    use_examples: bool = True
    """Whether examples stated in a code problem become tests; they are trusted and take no call."""
    executable_only: bool = False
    """Whether other problems than code, whose tests a judge would have to read, get none."""
    max_tokens: int = 512
    """The most tokens of all tests together."""
    temperature: float | None = 0.7
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""

    def __post_init__(self) -> None:
        checks.whole(self.kind, "n", self.n, low=1, high=100)
        checks.flag(self.kind, "use_examples", self.use_examples)
        checks.flag(self.kind, "executable_only", self.executable_only)
        checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=self.temperature, effort=self.effort)

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with its tests added; one call."""
        if self._passes_over(trace.problem):
            return trace.spend(Span(layer=self.name, kind=self.kind, notes=("no tests: not executable",)))
        if trace.round > 0 and trace.tests:
            return trace.spend(Span(layer=self.name, kind=self.kind, notes=("tests of the first round kept",)))
        request = request_of(self, asking_for_tests(trace.problem, self.n), "write", trace.round)
        written = await write_tests(trace, self.model, request, self.n, use_examples=self.use_examples)
        span = Span(
            layer=self.name,
            kind=self.kind,
            usage=written.usage,
            parses=tally(written.statuses),
            notes=written.notes,
        )
        return halted(replace(trace, tests=(*trace.tests, *written.tests)).spend(span), written.stop)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return one call, whatever reaches it; none for a problem that it passes over."""
        if self._passes_over(shape.problem):
            return (LayerPlan.of(self.name, self.kind, calls=0),), replace(shape, tests_sought=True)
        tokens = tokens_bound(asking_for_tests(shape.problem, self.n))
        row = LayerPlan.of(self.name, self.kind, calls=1, prompt_tokens=tokens, max_tokens=self.max_tokens)
        return (row,), with_tests(shape, self.n, self.max_tokens, use_examples=self.use_examples)

    def _passes_over(self, problem: Problem) -> bool:
        return self.executable_only and not executes(problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTestEvaluator(Leaf):
    """Judges candidates by the trace's tests and orders them best first.

    Programs are run in the sandbox, without any call; for other problems a judge reads each candidate, one call each.
    A program passes when it passes every example stated in the problem, or, where there is none, `pass_share` of the
    model's tests that count. Without a sandbox, or when it fails, nothing is judged.
    """

    kind: ClassVar[str] = "unit_test_evaluator"

    model: Model | str | None = None
    """The judge of prose; None takes the generator's."""
    top_k: int | None = None
    """How many stay live; None keeps all."""
    pass_share: float = 1.0
    """The share of tests that a passing candidate passes."""
    agreement: Agree = True
    """Programs are scored by the values that they agree on, `"dual"` by the tests; false by tests passed alone."""
    drop_undiscriminating: bool = field(default=False, metadata={"added": True})
    """Whether trivial programs are run too, and the model's tests that one of them passes do not count."""
    per_call_s: float = 2.0
    """Seconds that one test may run."""
    max_tokens: int = 512
    """The most tokens of one judge's reply."""
    temperature: float | None = 0.0
    effort: Effort | None = None
    """A reasoning model's effort; None leaves it out."""
    sandbox: Sandbox | None = None
    """None takes the run's."""

    @property
    def needs_sandbox(self) -> bool:
        """Return True: programs are run."""
        return True

    def __post_init__(self) -> None:
        checks.top_k(self.kind, self.top_k)
        checks.real(self.kind, "pass_share", self.pass_share, low=0.0, high=1.0)
        if self.agreement != "dual":
            checks.require(
                isinstance(self.agreement, bool), self.kind, "agreement", self.agreement, "must be true, false or dual"
            )
        checks.flag(self.kind, "drop_undiscriminating", self.drop_undiscriminating)
        checks.real(self.kind, "per_call_s", self.per_call_s, low=0.01, high=600.0)
        checks.sampling(self.kind, max_tokens=self.max_tokens, temperature=self.temperature, effort=self.effort)

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with verdicts on its candidates, the best first."""
        how = Judging(
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
            drop_undiscriminating=self.drop_undiscriminating,
        )
        judged = await judge_by_tests(trace, how)
        span = Span(
            layer=self.name, kind=self.kind, usage=judged.usage, parses=tally(judged.statuses), notes=judged.notes
        )
        return halted(trace.advance(best_first(judged.candidates)[: self.top_k]).spend(span), judged.stop)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return no calls for code, one for each candidate that is not judged yet for prose."""
        calls, most = judging_calls(shape)
        row = LayerPlan.of(
            self.name,
            self.kind,
            calls=calls,
            max_calls=most,
            prompt_tokens=judging_tokens(shape),
            max_tokens=self.max_tokens,
        )
        return (row,), all_judged(shape).first(self.top_k)


def asking_for_tests(problem: Problem, n: int) -> tuple[Message, ...]:
    """Return the prompt that asks for tests of the problem's kind."""
    return prompts.code_tests(problem, n) if executes(problem) else prompts.prose_tests(problem, n)


async def write_tests(
    trace: Trace, model: Model | str | None, request: Request, n: int, *, use_examples: bool
) -> Written:
    """Return the problem's examples and the model's tests that the trace does not hold yet.

    A model's test that contradicts an example, or repeats a test, is dropped and counted. A cut-off reply gives
    the tests that it finished.
    """
    problem = trace.problem
    examples = stated_examples(problem) if use_examples and executes(problem) else ()
    (completion,) = await ask(model, request)
    parsed = _parsed(problem, completion.text, n)
    known = {_call(test): test.expected for test in trace.tests}
    fresh = tuple(test for test in examples if _call(test) not in known)
    known |= {_call(test): test.expected for test in fresh}
    new = tuple(test for test in parsed.tests if _call(test) not in known)
    wrong = sum(known.get(_call(test), test.expected) != test.expected for test in parsed.tests)
    dropped = dict(parsed.dropped)
    again = len(parsed.tests) - len(new) - wrong
    dropped |= {reason: count for reason, count in (("contradicts_example", wrong), ("known", again)) if count}
    notes = [f"unit_tests: {len(fresh)} examples, {len(new)} written"]
    notes += [f"dropped {reason}: {count}" for reason, count in sorted(dropped.items())]
    return Written(
        tests=(*fresh, *new),
        usage=spent([completion]),
        statuses=(unread(completion) or parsed.status,),
        notes=tuple(notes),
        stop=over_budget([completion]),
    )


def _parsed(problem: Problem, text: str, n: int) -> ParsedTests:
    if executes(problem) and problem.entry_point is not None:
        return parse_code_tests(text, problem.entry_point, n)
    return parse_prose_tests(text, n)


def _call(test: UnitTest) -> tuple[str, str, str]:
    return (test.text, "", "") if test.function is None else (test.function, test.args, test.kwargs)


def with_tests(shape: Shape, n: int, max_tokens: int, *, use_examples: bool) -> Shape:
    """Return the shape after n tests of at most `max_tokens` tokens in all, and the problem's examples."""
    examples = stated_examples(shape.problem) if use_examples and executes(shape.problem) else ()
    stated = sum(len(test.text.encode()) + 1 for test in examples)
    return replace(
        shape,
        tests=shape.tests + len(examples) + n,
        tests_sought=True,
        judged=0,
        test_tokens=shape.test_tokens + stated + max_tokens + n * _CANONICAL,
    )


def judging_calls(shape: Shape) -> tuple[int, int]:
    """Return the calls that judging by tests takes, and at most takes: again where a reply could not be read."""
    if executes(shape.problem) or not shape.tests:
        return 0, 0
    return shape.candidates - shape.judged, shape.candidates


def all_judged(shape: Shape) -> Shape:
    """Return the shape after judging by tests."""
    return replace(shape, judged=shape.candidates if shape.tests else 0)


def judging_tokens(shape: Shape) -> int:
    """Return a bound of one judge's prompt on one candidate."""
    tests = (UnitTest(text="", source="model"),) * shape.tests
    messages = prompts.statement_verdicts(shape.problem, blank(shape), tests)
    return tokens_bound(messages) + shape.candidate_tokens + shape.test_tokens
