"""Judges candidates by unit tests: programs by running them, prose by asking a judge about each candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from archon.layers import prompts
from archon.layers.agreement import Observation, agreement, believed, examples_first
from archon.layers.ask import Status, ask, over_budget, request_of, spent, unread
from archon.layers.discrimination import Discrimination, discriminate, run_trivial
from archon.layers.dual_agreement import dual_agreement
from archon.layers.execution import Ran, execute, executes
from archon.layers.parse_statement_verdicts import parse_statement_verdicts
from archon.layers.views import view
from archon.models.protocol import Completion, Effort, Model
from archon.pipeline.compose import gather
from archon.sandbox.protocol import Sandbox
from archon.types import Candidate, Trace, UnitTest, Usage, Verdict

Agree = bool | Literal["dual"]
"""How programs are scored: by the values that they agree on, by the tests that they agree on, or (False) each alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """How to judge by tests: the settings that the evaluator and the verifier share."""

    name: str
    """The layer's label: it signs the verdicts."""
    model: Model | str | None
    sandbox: Sandbox | None
    seed: int
    pass_share: float
    agree: Agree
    per_call_s: float
    max_tokens: int
    temperature: float | None
    effort: Effort | None
    drop_undiscriminating: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Candidates with their verdicts, in the order in which they came, and what that took."""

    candidates: tuple[Candidate, ...]
    usage: Usage = field(default_factory=Usage)
    statuses: tuple[Status, ...] = ()
    notes: tuple[str, ...] = ()
    stop: str | None = None


async def judge_by_tests(trace: Trace, how: Judging) -> Judged:
    """Judge the live candidates by the trace's tests; those that have an outcome for each test already are left alone.

    For code, one candidate without outcomes means that all are run again: their agreement is a property of the set,
    and running takes no calls. Lost candidates get no verdict.
    """
    todo = tuple(candidate for candidate in trace.usable if not _known(candidate, trace.tests))
    if not todo:
        return Judged(candidates=trace.candidates)
    if not trace.tests:
        return _all_unjudged(trace, how, "there are no tests")
    if not executes(trace.problem):
        return await _judge_prose(trace, todo, how)
    if how.sandbox is None:
        return _all_unjudged(trace, how, "there is no sandbox to run tests in")
    return await _judge_code(trace, how.sandbox, how)


def reached(outcomes: Sequence[bool | None], share: float) -> bool | None:
    """Return whether the share of tests passed is reached, None while the tests not judged could decide it.

    Without tests nothing is judged. The tolerance is for shares such as 0.7 of 10 tests, which is not exact in binary.
    """
    if not outcomes:
        return None
    need = share * len(outcomes) - 1e-9
    passed = sum(outcome is True for outcome in outcomes)
    if passed >= need:
        return True
    return False if passed + sum(outcome is None for outcome in outcomes) < need else None


def _known(candidate: Candidate, tests: tuple[UnitTest, ...]) -> bool:
    return any(len(v.tests) == len(tests) > 0 and None not in v.tests for v in candidate.verdicts)


def _all_unjudged(trace: Trace, how: Judging, reason: str) -> Judged:
    verdict = Verdict(passed=None, by=how.name, reason=reason)
    given = {candidate.id: verdict for candidate in trace.usable}
    return Judged(candidates=_with(trace, given, {}), notes=(f"not judged: {reason}",))


def _with(trace: Trace, verdicts: dict[str, Verdict], scores: dict[str, float | None]) -> tuple[Candidate, ...]:
    return tuple(
        replace(c, verdicts=(*c.verdicts, verdicts[c.id]), score=scores.get(c.id)) if c.id in verdicts else c
        for c in trace.candidates
    )


async def _judge_code(trace: Trace, sandbox: Sandbox, how: Judging) -> Judged:
    usable, tests = trace.usable, trace.tests
    works = [execute(sandbox, trace.problem, usable, tests, per_call_s=how.per_call_s)]
    if how.drop_undiscriminating:
        works.append(run_trivial(sandbox, tests, per_call_s=how.per_call_s))
    ran, *trivial = await gather(works)
    observed = [one.observations for one in ran]
    told = Discrimination(kept=believed(tests, observed), notes=())
    if how.drop_undiscriminating:
        told = discriminate(tests, observed, [one.observations for one in trivial[0]])
    counted = told.kept
    scores = _scores(tests, observed, counted, how.agree)
    verdicts = {
        candidate.id: _code_verdict(one, tests, counted, score, how)
        for candidate, one, score in zip(usable, ran, scores, strict=True)
    }
    return Judged(
        candidates=_with(trace, verdicts, {c.id: score for c, score in zip(usable, scores, strict=True)}),
        usage=Usage(critical_s=max((one.wall_s for each in (ran, *trivial) for one in each), default=0.0)),
        notes=(*_code_notes(ran, counted), *told.notes),
    )


def _scores(
    tests: Sequence[UnitTest], observed: Sequence[Sequence[Observation]], counted: tuple[bool, ...], agree: Agree
) -> tuple[float | None, ...]:
    if agree == "dual":
        return _dual_scores(tests, observed, counted)
    if agree:
        return agreement(tests, observed, counted).scores
    return tuple(_share([o.passed for o, c in zip(one, counted, strict=True) if c]) for one in observed)


def _dual_scores(
    tests: Sequence[UnitTest], observed: Sequence[Sequence[Observation]], counted: tuple[bool, ...]
) -> tuple[float | None, ...]:
    """Return scores by examples passed, then by dual execution agreement on the model's tests that count."""
    examples = [t for t, test in enumerate(tests) if test.source == "example"]
    written = [t for t, test in enumerate(tests) if test.source == "model" and counted[t]]
    within = dual_agreement([[row[t].passed for t in written] for row in observed]).scores
    return tuple(
        None if all(one.passed is None for one in row) else examples_first(row, examples, score or 0.0)
        for row, score in zip(observed, within, strict=True)
    )


def _code_verdict(
    ran: Ran, tests: Sequence[UnitTest], counted: Sequence[bool], score: float | None, how: Judging
) -> Verdict:
    """Passed: every example; where there is none, `pass_share` of the model's tests that count."""
    outcomes = tuple(one.passed for one in ran.observations)
    if ran.failed is not None:
        return Verdict(passed=None, by=how.name, reason=f"the sandbox failed: {ran.failed}", tests=outcomes)
    examples = [outcome for outcome, test in zip(outcomes, tests, strict=True) if test.source == "example"]
    written = [outcome for outcome, count in zip(outcomes, counted, strict=True) if count]
    passed = reached(examples, 1.0) if examples else reached(written, how.pass_share)
    reason = "; ".join(ran.failures) or ("all tests passed" if passed else "no test could judge it")
    return Verdict(passed=passed, by=how.name, reason=reason, score=score, tests=outcomes)


def _code_notes(ran: Sequence[Ran], counted: Sequence[bool]) -> tuple[str, ...]:
    notes = []
    if disbelieved := sum(not count for count in counted):
        notes.append(f"tests not counted: {disbelieved} of {len(counted)}")
    if failed := sum(one.failed is not None for one in ran):
        notes.append(f"sandbox failed: {failed} candidates not judged")
    return tuple(notes)


async def _judge_prose(trace: Trace, todo: tuple[Candidate, ...], how: Judging) -> Judged:
    """Ask about each candidate on its own; a judge that is cut off or down leaves that candidate not judged."""
    requests = [
        request_of(
            how,
            prompts.statement_verdicts(trace.problem, view(candidate), trace.tests),
            "tests",
            trace.round,
            candidate.id,
        )
        for candidate in todo
    ]
    completions = [one for (one,) in await gather([ask(how.model, request) for request in requests])]
    read = [_read(completion, len(trace.tests)) for completion in completions]
    verdicts = {c.id: _prose_verdict(trace.tests, outcomes, how) for c, (outcomes, _) in zip(todo, read, strict=True)}
    return Judged(
        candidates=_with(trace, verdicts, {name: verdict.score for name, verdict in verdicts.items()}),
        usage=spent(completions),
        statuses=tuple(status for _, status in read),
        stop=over_budget(completions),
    )


def _read(completion: Completion, count: int) -> tuple[tuple[bool | None, ...], Status]:
    outcomes, parsed = parse_statement_verdicts(completion.text, count)
    status = unread(completion)
    return (outcomes, parsed) if status is None else ((None,) * count, status)


def _prose_verdict(tests: Sequence[UnitTest], outcomes: tuple[bool | None, ...], how: Judging) -> Verdict:
    failed = [test.text for test, outcome in zip(tests, outcomes, strict=True) if outcome is False]
    passed = reached(outcomes, how.pass_share)
    reason = "not true of it: " + "; ".join(failed) if failed else "all tests passed" if passed else "not judged"
    return Verdict(passed=passed, by=how.name, reason=reason, score=_share(outcomes), tests=outcomes)


def _share(outcomes: Sequence[bool | None]) -> float | None:
    judged = [outcome for outcome in outcomes if outcome is not None]
    return sum(judged) / len(judged) if judged else None
