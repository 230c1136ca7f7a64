"""Judge programs by running them in the sandbox, by a test program or by structured calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from archon.errors import NoSandbox, SandboxFailed
from archon.sandbox.program import run_program
from archon.sandbox.protocol import Limits, Sandbox
from archon.sandbox.structured import run_calls
from archon.tasks.extract import extract_code
from archon.tasks.source import canonical_hash
from archon.types import Problem, UnitTest, Verdict

_BY = "tests"
_NOT_JUDGED = ("infra_error", "not_run", "invalid")
"""Outcomes that say nothing about the candidate: the engine failed, or the test itself is malformed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeKey:
    """How one problem's programs are tested: by one of the two."""

    calls: tuple[UnitTest, ...] = ()
    """Structured tests: the expected values never enter the sandbox."""
    program: str = ""
    """Source that is run after the candidate's in the same process and raises when it is wrong: less trust."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeGrader:
    """Runs a candidate's program against the problem's hidden tests."""

    keys: Mapping[str, CodeKey]
    """By problem id."""
    limits: Limits = field(default_factory=lambda: Limits(wall_s=20.0, memory_mb=1024))
    per_call_s: float = 3.0
    """For structured tests: the time of one call."""

    async def grade(self, problem: Problem, text: str, sandbox: Sandbox | None) -> Verdict:
        """Return whether the program in a text passes every test; a text without a program fails."""
        key = self.keys[problem.id]
        code = extract_code(text, problem.entry_point, problem.text)
        if code is None:
            wanted = f"a program that defines {problem.entry_point!r}" if problem.entry_point else "a program"
            return Verdict(passed=False, by=_BY, reason=f"no program: the text does not hold {wanted}", score=0.0)
        if sandbox is None:
            raise NoSandbox(f"problem {problem.id!r} is graded by running code and there is no sandbox")
        try:
            return await (self._by_calls if key.calls else self._by_program)(key, code, sandbox)
        except SandboxFailed as error:
            return Verdict(passed=None, by=_BY, reason=f"not judged: {error}")

    async def _by_program(self, key: CodeKey, code: str, sandbox: Sandbox) -> Verdict:
        result = await run_program(sandbox, f"{code}\n\n{key.program}\n", limits=self.limits)
        if result.outcome in _NOT_JUDGED:
            return Verdict(passed=None, by=_BY, reason=f"not judged: {result.detail}")
        passed = result.outcome == "passed"
        reason = "" if passed else f"{result.outcome}: {result.detail}".rstrip(": ")
        return Verdict(passed=passed, by=_BY, reason=reason, score=1.0 if passed else 0.0)

    async def _by_calls(self, key: CodeKey, code: str, sandbox: Sandbox) -> Verdict:
        report = await run_calls(sandbox, code, key.calls, limits=self.limits, per_call_s=self.per_call_s)
        outcomes = [result.outcome for result in report.results]
        passed = outcomes.count("passed")
        wrong = [result for result in report.results if result.outcome not in ("passed", *_NOT_JUDGED)]
        unjudged = [result for result in report.results if result.outcome in _NOT_JUDGED]
        if unjudged and not wrong:
            return Verdict(passed=None, by=_BY, reason=f"not judged: {unjudged[0].detail}")
        return Verdict(
            passed=not wrong,
            by=_BY,
            reason=f"{passed} of {len(outcomes)} passed; {wrong[0].outcome}: {wrong[0].detail}" if wrong else "",
            score=None if unjudged else passed / len(outcomes),
        )

    def normalise(self, problem: Problem, text: str) -> str | None:
        """Return a hash of the program that ignores comments, docstrings and layout."""
        code = extract_code(text, problem.entry_point, problem.text)
        return None if code is None else canonical_hash(code)
