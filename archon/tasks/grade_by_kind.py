"""One grader for a set that mixes kinds of problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archon.sandbox.protocol import Sandbox
from archon.tasks.protocol import Grader
from archon.types import Kind, Problem, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class GraderByKind:
    """Hands each problem to the grader of its kind."""

    graders: Mapping[Kind, Grader]

    async def grade(self, problem: Problem, text: str, sandbox: Sandbox | None) -> Verdict:
        """Return the verdict of the kind's grader."""
        return await self.graders[problem.kind].grade(problem, text, sandbox)

    def normalise(self, problem: Problem, text: str) -> str | None:
        """Return the form in which the kind's grader lets answers vote."""
        return self.graders[problem.kind].normalise(problem, text)
