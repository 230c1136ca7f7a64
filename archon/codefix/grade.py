"""Grades a patched tree: does every failing test pass now, and does everything else still pass?

Running and judging are apart: `grade` runs the suite, `judge` is a pure function of what it said. A test that does not
come out the same way every time is flaky, and a patch whose tests are flaky is not called resolved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from archon.codefix.baseline import Baseline, Expectation
from archon.codefix.repository_tests import SUITE_LIMITS, run_tests
from archon.codefix.types import Instance, TestOutcome, TestRun, Tree, Trust
from archon.errors import ConfigError
from archon.sandbox.protocol import Limits, Sandbox

GradeStatus = Literal[
    "pass",
    "fail",
    "flaky",
    "timeout",
    "oom",
    "output_limit",
    "no_tests",
    "tampered",
    "needs_review",
    "infra_error",
    "patch_rejected",
    "patch_conflict",
    "empty_patch",
    "skipped_budget",
]
"""`fail`: a test that must pass did not, or the suite could not be run on this tree (a syntax error, leaving early);
`needs_review`: it fails under the pristine `conftest.py` and passes under the patch's own; `infra_error`: the engine
failed and nothing is known. The last four are for patches that were never tested; `judge` does not give them."""

_STOPPED: Mapping[str, GradeStatus] = {
    "error": "fail",
    "infra_error": "infra_error",
    "no_tests": "no_tests",
    "oom": "oom",
    "output_limit": "output_limit",
    "tampered": "tampered",
    "timeout": "timeout",
}
"""The grade of a run that did not finish."""
_SUSPECT = "conftest.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What a patched tree is worth."""

    instance_id: str
    status: GradeStatus
    fail_to_pass_success: tuple[str, ...] = ()
    fail_to_pass_failure: tuple[str, ...] = ()
    pass_to_pass_success: tuple[str, ...] = ()
    pass_to_pass_failure: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    """Tests that passed in some runs of this tree and not in others."""
    outcomes: tuple[tuple[str, TestOutcome], ...] = ()
    """By test: the worst of its runs."""
    visible_passed: bool | None = None
    """Whether the tests that a solver may see passed; None when that is not known."""
    repeats: int = 0
    """How often the suite ran on this tree."""
    trust: Trust = "C"
    set_aside: tuple[str, ...] = ()
    """Files of the patch's that took no part in grading."""
    detail: str = ""
    output: str = ""
    """The end of what the first run printed; not to be trusted."""
    wall_s: float = 0.0

    @property
    def resolved(self) -> bool:
        """Return whether every test that must pass passed, in every run."""
        return self.status == "pass"


async def grade(
    sandbox: Sandbox,
    instance: Instance,
    patched: Tree,
    baseline: Baseline,
    *,
    repeats: int = 1,
    limits: Limits = SUITE_LIMITS,
    by_exit_code: bool = False,
) -> Grade:
    """Run an instance's tests on a patched tree and grade it.

    Costs `repeats` jobs, twice as many with held-out files; the first run that fails outright ends it, and a patch that
    fails with changes of `conftest.py` set aside gets one more.

    Args:
        sandbox: where they run.
        instance: what was to be fixed.
        patched: its tree after the patch.
        baseline: what its tests said of the pristine tree.
        repeats: runs of the suite; 3 or more to find flaky tests.
        limits: for each job.
        by_exit_code: see `run_tests`.

    Raises:
        ConfigError: fewer than one repeat, or a test command that is not understood.
        SandboxError: pytest cannot be used inside the sandbox, or the engine failed.
    """
    if repeats < 1:
        raise ConfigError(f"repeats={repeats!r} runs of the patched tree; valid: 1 or more")

    async def run(held_out: Tree, expected: Expectation, *, own_conftest: bool = False) -> TestRun:
        return await run_tests(
            sandbox,
            patched,
            pristine=instance.tree,
            command=instance.test_command,
            ids=expected.ids,
            held_out=held_out,
            limits=limits,
            by_exit_code=by_exit_code,
            own_conftest=own_conftest,
        )

    async def runs(held_out: Tree, expected: Expectation) -> list[TestRun]:
        done: list[TestRun] = []
        while len(done) < repeats and all(one.status == "finished" for one in done):
            done.append(await run(held_out, expected))
        return done

    graded = await runs(instance.held_out, baseline.graded)
    visible = await runs((), baseline.visible) if instance.held_out and baseline.visible.ids else []
    found = judge(baseline, graded, visible)
    if found.status == "fail" and _deserves_review(instance, patched, found):
        second = judge(baseline, [await run(instance.held_out, baseline.graded, own_conftest=True)], ())
        found = reviewed(found, second)
    return found


def judge(baseline: Baseline, graded: Sequence[TestRun], visible: Sequence[TestRun] = ()) -> Grade:
    """Return the grade of a patched tree, by what the suite said of it.

    Args:
        baseline: what must pass.
        graded: runs of the tests that grade.
        visible: runs of the visible tests alone; none where they are the same.
    """
    must = baseline.graded
    outcomes = {name: _worst(name, graded) for name in must.ids}
    passed = {name for name, outcome in outcomes.items() if outcome == "passed"}
    flaky = tuple(name for name in must.ids if name not in passed and any(name in run.passed for run in graded))
    status, detail = _status(must, graded, passed, flaky)
    seen: bool | None = status == "pass"
    if visible:
        every = all(run.status == "finished" and set(baseline.visible.ids) <= run.passed for run in visible)
        seen = None if any(run.status == "infra_error" for run in visible) else every
    elif status in ("infra_error", "flaky") or baseline.visible != baseline.graded:
        seen = None
    return Grade(
        instance_id=baseline.instance_id,
        status=status,
        fail_to_pass_success=tuple(name for name in must.fail_to_pass if name in passed),
        fail_to_pass_failure=tuple(name for name in must.fail_to_pass if name not in passed),
        pass_to_pass_success=tuple(name for name in must.pass_to_pass if name in passed),
        pass_to_pass_failure=tuple(name for name in must.pass_to_pass if name not in passed),
        flaky=flaky,
        outcomes=tuple(outcomes.items()),
        visible_passed=seen,
        repeats=len(graded),
        trust="C" if any(run.trust == "C" for run in graded) else "A",
        set_aside=graded[0].set_aside,
        detail=detail,
        output=graded[0].output,
        wall_s=sum(run.wall_s for run in (*graded, *visible)),
    )


def _status(
    must: Expectation, runs: Sequence[TestRun], passed: set[str], flaky: Sequence[str]
) -> tuple[GradeStatus, str]:
    stopped = next((run for run in runs if run.status != "finished"), None)
    if stopped is not None:
        return _STOPPED[stopped.status], stopped.detail
    if len(passed) == len(must.ids):
        return "pass", ""
    steady = [name for name in must.ids if name not in passed and name not in flaky]
    told = next((run.detail for run in runs if run.detail), "")
    if not steady:
        return "flaky", f"passed in some of {len(runs)} runs: {flaky[0]!r}" + _more(len(flaky))
    return "fail", told or f"did not pass: {steady[0]!r}" + _more(len(steady))


def _more(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""


def _worst(name: str, runs: Sequence[TestRun]) -> TestOutcome:
    order: tuple[TestOutcome, ...] = ("missing", "error", "failed", "skipped", "passed")
    return min((dict(run.outcomes).get(name, "missing") for run in runs), key=order.index)


def _deserves_review(instance: Instance, patched: Tree, found: Grade) -> bool:
    """Return whether a patch changed `conftest.py` and code too: one of `conftest.py` alone is no fix."""
    if not any(path.rpartition("/")[2] == _SUSPECT for path in found.set_aside):
        return False
    before = {file.path: file.content for file in instance.tree}
    own = {file.path for file in patched if before.get(file.path) != file.content} - set(found.set_aside)
    return bool(own)


def reviewed(found: Grade, second: Grade) -> Grade:
    """Return a failing grade after a second look with the patch's own `conftest.py`: still failing, or for a person."""
    if second.status != "pass":
        return found
    files = ", ".join(path for path in found.set_aside if path.rpartition("/")[2] == _SUSPECT)
    return replace(found, status="needs_review", detail=f"passes only with the patch's own {files}")
