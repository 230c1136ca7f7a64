"""What an instance's tests say before a fix: what fails and must pass, what must go on passing, what flips.

The pristine tree runs several times. A test that does not come out the same way every time is quarantined: it says
nothing of a patch. Instances name tests that do not exist, or that already pass, often enough that this is checked and
said rather than graded over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archon.codefix.repository_tests import SUITE_LIMITS, run_tests
from archon.codefix.types import Instance, TestOutcome, TestRun, Tree
from archon.errors import ConfigError, TaskError
from archon.sandbox.protocol import Limits, Sandbox

_SHOWN = 5

_PYTEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
"""What pytest takes for a file of tests, unless it is told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a suite must say of a fixed tree."""

    fail_to_pass: tuple[str, ...] = ()
    """Ids of tests, or of whole files that cannot be read as tests before the fix."""
    pass_to_pass: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    """Quarantined: they flipped on the pristine tree, and are in neither of the others."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return everything that a fixed tree must pass."""
        return self.fail_to_pass + self.pass_to_pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What an instance's tests said of its pristine tree."""

    instance_id: str
    visible: Expectation
    """Of the tests that a solver may see."""
    graded: Expectation
    """Of the tests that grade: with the held-out files in place; equal to `visible` where there are none."""
    repeats: int
    run: TestRun
    """The first visible run, for localisation and for the solver; it shows nothing of the held-out tests."""

    @property
    def flaky(self) -> tuple[str, ...]:
        """Return every test that flipped."""
        return tuple(dict.fromkeys(self.visible.flaky + self.graded.flaky))


async def baseline(
    sandbox: Sandbox,
    instance: Instance,
    *,
    repeats: int = 3,
    limits: Limits = SUITE_LIMITS,
    by_exit_code: bool = False,
) -> Baseline:
    """Run an instance's tests on its own tree, and return what a fix must change and keep.

    Costs `repeats` jobs, twice as many with held-out files.

    Args:
        sandbox: where they run.
        instance: what is to be fixed.
        repeats: runs of the suite; a test that comes out in different ways is quarantined.
        limits: for each job.
        by_exit_code: see `run_tests`.

    Raises:
        ConfigError: fewer than one repeat, or a test command that is not understood.
        TaskError: the tests cannot be run on the pristine tree, named tests do not behave as named, or nothing fails.
        SandboxError: pytest cannot be used inside the sandbox, or the engine failed.
    """
    if repeats < 1:
        raise ConfigError(f"repeats={repeats!r} runs of the pristine tree; valid: 1 or more")
    runs = await _runs(sandbox, instance, (), repeats, limits, by_exit_code)
    # Named tests are often the held-out ones: only where all files are in place must each of them be there.
    visible = _hanging(instance, runs, ()) or expectation(instance, runs, all_there=not instance.held_out)
    graded = visible
    if instance.held_out:
        runs_of_all = await _runs(sandbox, instance, instance.held_out, repeats, limits, by_exit_code)
        graded = _hanging(instance, runs_of_all, instance.held_out) or expectation(instance, runs_of_all)
    return Baseline(instance_id=instance.id, visible=visible, graded=graded, repeats=repeats, run=runs[0])


async def _runs(
    sandbox: Sandbox, instance: Instance, held_out: Tree, repeats: int, limits: Limits, by_exit_code: bool
) -> tuple[TestRun, ...]:
    named = instance.fail_to_pass and instance.pass_to_pass
    ids = instance.fail_to_pass + instance.pass_to_pass if named else ()
    runs: list[TestRun] = []
    while len(runs) < repeats and all(run.status != "timeout" for run in runs):
        runs.append(
            await run_tests(
                sandbox,
                instance.tree,
                pristine=instance.tree,
                command=instance.test_command,
                ids=ids,
                held_out=held_out,
                limits=limits,
                by_exit_code=by_exit_code,
            )
        )
    return tuple(runs)


def _hanging(instance: Instance, runs: Sequence[TestRun], held_out: Tree) -> Expectation | None:
    """Return what must pass where the wrong code hangs the suite; None: the first run ended.

    Which of its tests fail cannot be seen then: the named ones are believed, else each test file must pass as a whole.
    """
    if not runs or runs[0].status != "timeout":
        return None
    if instance.fail_to_pass:
        files = {file.path for file in (*instance.tree, *held_out)}
        there = [name for name in instance.fail_to_pass if name.partition("::")[0] in files]
        return Expectation(fail_to_pass=tuple(there), pass_to_pass=instance.pass_to_pass)
    paths = sorted({file.path for file in (*instance.tree, *held_out)})
    return Expectation(fail_to_pass=tuple(path for path in paths if _PYTEST_FILE.search(path)))


def expectation(instance: Instance, runs: Sequence[TestRun], *, all_there: bool = True) -> Expectation:
    """Return what a fix must change and keep, by runs of the pristine tree.

    Args:
        instance: its named tests are used where it has any, else those that fail or pass here.
        runs: of the same tests on the pristine tree.
        all_there: named tests that are nowhere, or nothing that fails, are an error.

    Raises:
        TaskError: see `baseline`.
    """
    for run in runs:
        if run.status != "finished" and (all_there or run.status != "no_tests"):
            why = run.detail or run.output[-200:]
            raise TaskError(f"{instance.id}: the tests of the pristine tree ended as {run.status!r}: {why!r}")
    seen = _merged(runs)
    flaky = tuple(name for name, outcomes in seen.items() if len(outcomes) > 1)
    steady = {name: next(iter(outcomes)) for name, outcomes in seen.items() if len(outcomes) == 1}
    fail = instance.fail_to_pass or tuple(name for name, said in steady.items() if said in ("failed", "error"))
    keep = instance.pass_to_pass or tuple(name for name, said in steady.items() if said == "passed")
    keep = tuple(name for name in keep if name not in fail)
    if all_there:
        _check(instance, steady, flaky)
    else:
        fail, keep = (
            tuple(name for name in names if steady.get(name) not in (None, "missing")) for names in (fail, keep)
        )
    fail, keep = (tuple(name for name in names if name not in flaky) for names in (fail, keep))
    if all_there and not fail:
        why = "the tests that fail are flaky: " + _list(flaky) if flaky else "no test fails on the pristine tree"
        raise TaskError(f"{instance.id}: nothing to fix; {why}")
    return Expectation(fail_to_pass=fail, pass_to_pass=keep, flaky=flaky)


def _merged(runs: Sequence[TestRun]) -> dict[str, set[TestOutcome]]:
    """Return each test's different outcomes; a test that a run did not have is `missing` there."""
    names = dict.fromkeys(name for run in runs for name, _ in run.outcomes)
    by_run = [dict(run.outcomes) for run in runs]
    return {name: {outcomes.get(name, "missing") for outcomes in by_run} for name in names}


def _check(instance: Instance, steady: Mapping[str, TestOutcome], flaky: Sequence[str]) -> None:
    """Refuse an instance whose named tests do not behave as named."""
    said = {name: steady.get(name, "missing") for name in instance.fail_to_pass + instance.pass_to_pass}
    # Cases of a parametrised test may come into being with the fix.
    absent = [name for name, outcome in said.items() if outcome == "missing" and "[" not in name and name not in flaky]
    already = [name for name in instance.fail_to_pass if said[name] in ("passed", "skipped") and name not in flaky]
    broken = [name for name in instance.pass_to_pass if said[name] != "passed" and name not in (*flaky, *absent)]
    faults = [
        (absent, "are not there"),
        (already, "are named as failing and do not fail"),
        (broken, "are named as passing and do not pass"),
    ]
    if any(names for names, _ in faults):
        words = "; ".join(f"{_list(names)} {what}" for names, what in faults if names)
        raise TaskError(f"{instance.id}: on the pristine tree, tests {words}")


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more
