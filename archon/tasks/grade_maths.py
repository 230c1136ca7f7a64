"""Judge maths by its final answer, and short texts by equality."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from archon.sandbox.protocol import Sandbox
from archon.tasks.extract import extract_answer
from archon.tasks.maths_checker import MathsChecker
from archon.tasks.values import canonical_answer
from archon.types import Problem, Verdict

_BY = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class MathsGrader:
    """Compares the final answer of a solution with the key."""

    answers: Mapping[str, str]
    """By problem id."""
    checker: MathsChecker = field(default_factory=MathsChecker)

    async def grade(self, problem: Problem, text: str, sandbox: Sandbox | None) -> Verdict:
        """Return whether the final answer equals the key; a text without an answer fails. Needs no sandbox."""
        key = self.answers[problem.id]
        answer = extract_answer(text)
        if answer is None:
            return Verdict(passed=False, by=_BY, reason="no final answer", score=0.0)
        found = await asyncio.to_thread(self.checker.compare, key, answer)
        if found.equal is None:
            return Verdict(passed=None, by=_BY, reason=f"not judged: {found.how}")
        score = 1.0 if found.equal else 0.0
        return Verdict(passed=found.equal, by=_BY, reason=f"answered {answer[:80]!r}: {found.how}", score=score)

    def normalise(self, problem: Problem, text: str) -> str | None:
        """Return the final answer as an exact value, or as cleaned LaTeX."""
        answer = extract_answer(text)
        return None if answer is None else canonical_answer(answer) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextGrader:
    """Compares a short answer with the key, whatever its case, spaces and closing full stop."""

    answers: Mapping[str, str]
    """By problem id."""

    async def grade(self, problem: Problem, text: str, sandbox: Sandbox | None) -> Verdict:
        """Return whether the text, or its last non-empty line, is the key."""
        key = _folded(self.answers[problem.id])
        passed = key in (_folded(text), self.normalise(problem, text))
        return Verdict(passed=passed, by=_BY, reason="" if passed else "another answer", score=1.0 if passed else 0.0)

    def normalise(self, problem: Problem, text: str) -> str | None:
        """Return the last non-empty line without case, what precedes a colon "Answer:", and outer punctuation."""
        lines = [line for line in text.splitlines() if line.strip()]
        return _folded(lines[-1]) or None if lines else None


def _folded(text: str) -> str:
    words = " ".join(text.split()).casefold()
    for lead in ("the final answer is", "the answer is", "final answer:", "answer:"):
        words = words.removeprefix(lead).strip()
    return words.strip(" .*\"'`$:")
