"""Runs candidates' programs on tests in the sandbox, all candidates side by side, every distinct program once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archon.errors import SandboxFailed
from archon.layers.agreement import Observation
from archon.pipeline.compose import gather
from archon.sandbox.protocol import Sandbox
from archon.sandbox.structured import CallResult, run_calls
from archon.tasks.extract import extract_code
from archon.types import Candidate, Problem, UnitTest

_DETAIL_CHARACTERS = 160
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one candidate's program did."""

    observations: tuple[Observation, ...]
    """One for each test."""
    failures: tuple[str, ...] = ()
    """The first failed tests, each with what really came out."""
    wall_s: float = 0.0
    failed: str | None = None
    """Why nothing was run, when the engine failed: nothing was judged then."""


def executes(problem: Problem) -> bool:
    """Return whether tests of a problem are run; else a judge reads the answer."""
    return problem.kind == "code" and problem.entry_point is not None


async def execute(
    sandbox: Sandbox, problem: Problem, candidates: Sequence[Candidate], tests: Sequence[UnitTest], *, per_call_s: float
) -> tuple[Ran, ...]:
    """Return what each candidate's program did on each test. An answer without a program fails every test."""
    programs = [extract_code(candidate.text, problem.entry_point, problem.text) for candidate in candidates]
    distinct = tuple(dict.fromkeys(program for program in programs if program is not None))
    ran = await gather([run_program(sandbox, program, tests, per_call_s) for program in distinct])
    by_program = dict(zip(distinct, ran, strict=True))
    return tuple(_no_program(tests) if program is None else by_program[program] for program in programs)


async def run_program(sandbox: Sandbox, program: str, tests: Sequence[UnitTest], per_call_s: float) -> Ran:
    """Return what one program did on each test; when the engine fails, nothing was run."""
    try:
        report = await run_calls(sandbox, program, tuple(tests), per_call_s=per_call_s)
    except SandboxFailed as error:
        return Ran(observations=(Observation(passed=None),) * len(tests), failed=str(error))
    results = report.results
    wrong = [_said(test, result) for test, result in zip(tests, results, strict=True) if _outcome(result) is False]
    return Ran(
        observations=tuple(observation(test, result) for test, result in zip(tests, results, strict=True)),
        failures=tuple(wrong[:_SHOWN]),
        wall_s=report.wall_s,
    )


def _no_program(tests: Sequence[UnitTest]) -> Ran:
    return Ran(observations=(Observation(passed=False),) * len(tests), failures=("no program was found in the answer",))


def _outcome(result: CallResult) -> bool | None:
    return {"passed": True, "failed": False, "error": False, "timeout": False}.get(result.outcome)


def observation(test: UnitTest, result: CallResult) -> Observation:
    """Return what a call did. A passed one returned what was expected, whatever its repr: 2.0 and 2 are one value."""
    value = {"passed": test.expected, "failed": result.returned}.get(result.outcome)
    return Observation(passed=_outcome(result), value=value)


def _said(test: UnitTest, result: CallResult) -> str:
    what = {
        "failed": f"returned {result.returned if result.returned is not None else result.detail}",
        "timeout": "took too long",
    }.get(result.outcome, result.detail)
    return f"{test.text[:_DETAIL_CHARACTERS]}: {what[:_DETAIL_CHARACTERS]}"
