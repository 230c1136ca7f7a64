"""Grade an answer once: several pipelines that select among the same samples share their verdicts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from archon.sandbox.protocol import Sandbox
from archon.tasks.protocol import Grader
from archon.types import Problem, Verdict


@dataclass(frozen=True, slots=True)
class RememberingGrader:
    """A grader that judges each text of a problem once, also when it is asked several times at the same moment.

    A verdict that judged nothing (the sandbox failed) is not remembered. It belongs to one event loop and lives as long
    as the evaluation of one problem set, whose texts it keeps in memory as keys.
    """

    grader: Grader
    _verdicts: dict[tuple[str, str], asyncio.Future[Verdict]] = field(default_factory=dict)

    async def grade(self, problem: Problem, text: str, sandbox: Sandbox | None) -> Verdict:
        """Return the verdict of the grader underneath."""
        key = (problem.id, text)
        if key not in self._verdicts:
            self._verdicts[key] = asyncio.ensure_future(self.grader.grade(problem, text, sandbox))
        work = self._verdicts[key]
        try:
            verdict = await asyncio.shield(work)
        except BaseException:
            self._forget(key, work)
            raise
        if verdict.passed is None:
            self._forget(key, work)
        return verdict

    def normalise(self, problem: Problem, text: str) -> str | None:
        """Return the normal form of the grader underneath."""
        return self.grader.normalise(problem, text)

    def _forget(self, key: tuple[str, str], work: asyncio.Future[Verdict]) -> None:
        if self._verdicts.get(key) is work:
            del self._verdicts[key]
        if not work.done():
            work.cancel()
