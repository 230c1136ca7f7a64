"""Code-fix instances as a problem set: an evaluation samples, resumes, budgets and reports them as any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archon.codefix.answer import read_answer
from archon.codefix.apply import apply
from archon.codefix.grade import Grade, grade
from archon.codefix.patch_tests import Case
from archon.codefix.policy import DEFAULT_POLICY, PatchPolicy
from archon.codefix.problem import problem_of
from archon.codefix.repository_tests import SUITE_LIMITS
from archon.codefix.types import Patch, Refused
from archon.errors import NoSandbox, SandboxFailed
from archon.sandbox.protocol import Limits, Sandbox
from archon.tasks.protocol import TaskSet
from archon.types import Problem, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchGrader:
    """Judges answers by the tests that grade, the held-out ones among them, which only it has."""

    cases: Mapping[str, Case]
    """By problem id."""
    policy: PatchPolicy = DEFAULT_POLICY
    limits: Limits = SUITE_LIMITS

    async def grade(self, problem: Problem, text: str, sandbox: Sandbox | None) -> Verdict:
        """Return whether the answer's patch resolves the instance; None where the engine failed.

        Raises:
            NoSandbox: there is none to run the tests in.
        """
        patch, graded = await self.graded(problem.id, text, sandbox)
        if isinstance(patch, Refused):
            return Verdict(passed=False, by="patch_grader", reason=f"{patch.status}: {patch.reason}")
        if graded is None or graded.status == "infra_error":
            return Verdict(passed=None, by="patch_grader", reason="the sandbox failed")
        return Verdict(passed=graded.resolved, by="patch_grader", reason=f"{graded.status}: {graded.detail}")

    async def graded(
        self, problem_id: str, text: str, sandbox: Sandbox | None, *, repeats: int = 1
    ) -> tuple[Patch | Refused, Grade | None]:
        """Return an answer's patch, and its grade; None where it was refused or the engine failed.

        Raises:
            NoSandbox: there is none to run the tests in.
        """
        if sandbox is None:
            raise NoSandbox("a patch is graded by running tests, and there is no sandbox to run them in")
        case = self.cases[problem_id]
        patch = self.patch(problem_id, text)
        if isinstance(patch, Refused):
            return patch, None
        tree = apply(case.instance.tree, patch)
        if isinstance(tree, Refused):
            return tree, None
        try:
            found = await grade(sandbox, case.instance, tree, case.baseline, repeats=repeats, limits=self.limits)
        except SandboxFailed:
            return patch, None
        return patch, found

    def patch(self, problem_id: str, text: str) -> Patch | Refused:
        """Return an answer's patch."""
        instance = self.cases[problem_id].instance
        return read_answer(text, instance.tree, self.policy, entry_point=instance.entry_point)

    def normalise(self, problem: Problem, text: str) -> str | None:
        """Return the patch's text, so that answers vote together that change the same."""
        patch = self.patch(problem.id, text)
        return patch.text if isinstance(patch, Patch) else None


def task_set(
    name: str, cases: Sequence[Case], *, policy: PatchPolicy = DEFAULT_POLICY, limits: Limits = SUITE_LIMITS
) -> TaskSet:
    """Return the cases as problems with their grader."""
    by_id = {case.instance.id: case for case in cases}
    problems = tuple(problem_of(case.instance, case.baseline.run) for case in cases)
    return TaskSet(name=name, problems=problems, grader=PatchGrader(cases=by_id, policy=policy, limits=limits))
