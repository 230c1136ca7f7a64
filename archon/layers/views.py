"""What a model is shown of a candidate, and what was found out about it so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from archon.pipeline.plan import Shape
from archon.types import Candidate, Verdict

REASON_CHARACTERS = 600
"""A verdict's reason is cut to this before it goes into a prompt: enough for three failed tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a model is shown of one candidate."""

    text: str
    critique: str | None = None
    tests: str | None = None
    """One line on its test outcomes: `passes 3 of 5 tests`."""


def view(candidate: Candidate, *, critique: bool = False, tests: bool = False) -> View:
    """Return the view of a candidate, with its critique and test outcomes where asked for and known."""
    verdict = tested(candidate) if tests else None
    line = None
    if verdict is not None:
        judged = [outcome for outcome in verdict.tests if outcome is not None]
        line = f"passes {sum(judged)} of {len(judged)} tests"
    return View(text=candidate.text, critique=candidate.critique if critique else None, tests=line)


def blank(shape: Shape, *, critique: bool = False, tests: bool = False) -> View:
    """Return a view without generated text, whose fixed words are as long as they can get: for a plan's bounds."""
    has_critique = critique and shape.critique_tokens > 0
    return View(
        text="",
        critique="" if has_critique else None,
        tests=f"passes {shape.tests} of {shape.tests} tests" if tests and shape.tests else None,
    )


def tested(candidate: Candidate) -> Verdict | None:
    """Return the newest verdict that knows the outcome of at least one test, or None."""
    verdicts = reversed(candidate.verdicts)
    return next((v for v in verdicts if any(outcome is not None for outcome in v.tests)), None)


def tests_score(candidate: Candidate) -> float | None:
    """Return the score of the newest test outcomes, else the share of tests passed; None: no outcomes."""
    verdict = tested(candidate)
    if verdict is None:
        return None
    if verdict.score is not None:
        return verdict.score
    judged = [outcome for outcome in verdict.tests if outcome is not None]
    return sum(judged) / len(judged)


def why_not(candidate: Candidate) -> str:
    """Return the newest judged verdict's reason, cut, and a plain sentence where there is none."""
    judged = (v for v in reversed(candidate.verdicts) if v.passed is not None)
    reason = next((v.reason for v in judged if v.reason), "") or "It could not be verified."
    return reason if len(reason) <= REASON_CHARACTERS else reason[: REASON_CHARACTERS - 1] + "…"


def best_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Order candidates: passed, not judged, failed, lost; within each the higher score; else as they came."""
    return tuple(sorted(candidates, key=_merit))


def _merit(candidate: Candidate) -> tuple[int, float]:
    rank = 3 if candidate.error is not None else {True: 0, None: 1, False: 2}[candidate.passed]
    return rank, -(candidate.score if candidate.score is not None else -1.0)
