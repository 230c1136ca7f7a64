"""A problem set and how its answers are graded. The answer key lives in the grader, never on a `Problem`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from archon.sandbox.protocol import Sandbox
from archon.types import Problem, Verdict


class Grader(Protocol):
    """Judges texts against a key that only it holds."""

    async def grade(self, problem: Problem, text: str, sandbox: Sandbox | None) -> Verdict:
        """Return a verdict by `grader`; `passed=None` when it could not be judged (an infrastructure failure).

        Raises:
            NoSandbox: the problem is code and there is no sandbox.
        """
        ...

    def normalise(self, problem: Problem, text: str) -> str | None:
        """Return the final answer in a form that is equal for answers that vote together; None: none can be read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """Problems with their grader."""

    name: str
    problems: tuple[Problem, ...]
    grader: Grader
