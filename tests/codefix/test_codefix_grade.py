"""Grades, as pure judgement and as jobs."""

from __future__ import annotations

import pytest

from archon.codefix.baseline import Baseline, Expectation
from archon.codefix.fake import reporting
from archon.codefix.grade import grade, judge
from archon.codefix.types import File, Instance, TestRun
from archon.errors import ConfigError
from archon.sandbox.fake import ScriptedSandbox
from archon.sandbox.protocol import Outcome

A, B, C = (f"tests/test_a.py::test_{letter}" for letter in "abc")
HELD = "tests/test_h.py::test_h"
MUST = Expectation(fail_to_pass=(A,), pass_to_pass=(B,))
RAN = TestRun(outcomes=(), status="finished")
BEFORE = Baseline(instance_id="i-1", visible=MUST, graded=MUST, repeats=3, run=RAN)
APART = Baseline(
    instance_id="i-1",
    visible=Expectation(pass_to_pass=(B,)),
    graded=Expectation(fail_to_pass=(HELD,), pass_to_pass=(B,)),
    repeats=3,
    run=RAN,
)


def run(a="passed", b="passed", status="finished", detail="", **more):
    return TestRun(outcomes=((A, a), (B, b)), status=status, detail=detail, wall_s=1.0, **more)


def test_resolved():
    found = judge(BEFORE, [run(output="said", set_aside=("conftest.py",)), run()])
    assert (found.status, found.resolved, found.visible_passed) == ("pass", True, True)
    assert (found.fail_to_pass_success, found.fail_to_pass_failure) == ((A,), ())
    assert (found.pass_to_pass_success, found.pass_to_pass_failure) == ((B,), ())
    assert (found.repeats, found.trust, found.wall_s) == (2, "C", 2.0)
    assert (found.output, found.set_aside) == ("said", ("conftest.py",))


@pytest.mark.parametrize("said", ["failed", "error", "skipped", "missing"])
def test_anything_but_a_pass_is_none(said):
    fixed, kept = judge(BEFORE, [run(a=said)]), judge(BEFORE, [run(b=said)])
    assert (fixed.status, fixed.fail_to_pass_failure, fixed.pass_to_pass_failure) == ("fail", (A,), ())
    assert (kept.status, kept.fail_to_pass_failure, kept.pass_to_pass_failure) == ("fail", (), (B,))
    assert fixed.outcomes == ((A, said), (B, "passed"))
    assert fixed.visible_passed is False
    assert A in fixed.detail


def test_a_test_that_passes_only_sometimes_is_flaky_and_not_resolved():
    found = judge(BEFORE, [run(), run(a="failed"), run()])
    assert (found.status, found.resolved, found.flaky, found.visible_passed) == ("flaky", False, (A,), None)
    assert found.fail_to_pass_failure == (A,)
    both = judge(BEFORE, [run(b="failed"), run(a="failed", b="failed")])
    assert (both.status, both.flaky) == ("fail", (A,))


@pytest.mark.parametrize("status", ["timeout", "oom", "output_limit", "no_tests", "tampered", "infra_error"])
def test_how_a_run_stopped_is_its_grade_even_when_its_tests_passed(status):
    found = judge(BEFORE, [run(), run(status=status, detail="why")])
    assert (found.status, found.resolved, found.detail) == (status, False, "why")


def test_a_suite_that_could_not_run_is_a_failure_of_the_patch():
    assert judge(BEFORE, [run(status="error", detail="left")]).status == "fail"


@pytest.mark.parametrize(
    ("held", "visible", "status", "seen"),
    [
        ("passed", "passed", "pass", True),
        ("failed", "passed", "fail", True),
        ("failed", "failed", "fail", False),
        ("passed", "failed", "pass", False),
    ],
)
def test_the_visible_tests_are_judged_apart(held, visible, status, seen):
    graded = TestRun(outcomes=((HELD, held), (B, "passed")), status="finished")
    found = judge(APART, [graded], [TestRun(outcomes=((B, visible),), status="finished")])
    assert (found.status, found.visible_passed) == (status, seen)


def test_what_was_not_seen_is_not_known():
    graded = TestRun(outcomes=((HELD, "failed"), (B, "passed")), status="finished")
    broken = TestRun(outcomes=((B, "passed"),), status="infra_error")
    assert judge(APART, [graded]).visible_passed is None
    assert judge(APART, [graded], [broken]).visible_passed is None
    assert judge(BEFORE, [run(status="infra_error")]).visible_passed is None


TREE = tuple(File(path=path, content=b"old") for path in ("a.py", "conftest.py", "tests/test_a.py"))
INSTANCE = Instance(id="i-1", tree=TREE)


def patched(*paths):
    return tuple(File(path=file.path, content=b"new" if file.path in paths else b"old") for file in TREE)


async def test_grading_runs_the_expected_tests_as_often_as_asked():
    sandbox = ScriptedSandbox([reporting({A: "passed", B: "passed", C: "failed"}, wall_s=2.0)] * 3)
    found = await grade(sandbox, INSTANCE, patched("a.py"), BEFORE, repeats=3)
    assert (found.status, found.repeats, found.wall_s, len(sandbox.jobs)) == ("pass", 3, 6.0, 3)
    assert C not in dict(found.outcomes)


async def test_a_run_that_stops_ends_the_repeats():
    sandbox = ScriptedSandbox([Outcome(end="timeout", exit_code=None, stdout=b"", stderr=b"", wall_s=9.0)])
    found = await grade(sandbox, INSTANCE, patched("a.py"), BEFORE, repeats=3)
    assert (found.status, found.repeats, len(sandbox.jobs)) == ("timeout", 1, 1)


async def test_held_out_and_visible_tests_run_apart():
    held_out = (File(path="tests/test_h.py", content=b"held out"),)
    script = [reporting({HELD: "failed", B: "passed"}), reporting({B: "passed"})]
    sandbox = ScriptedSandbox(script)
    instance = Instance(id="i-1", tree=TREE, held_out=held_out)
    found = await grade(sandbox, instance, patched("a.py"), APART)
    assert [b"held out" in dict(job.files).values() for job in sandbox.jobs] == [True, False]
    assert (found.status, found.visible_passed) == ("fail", True)


@pytest.mark.parametrize(
    ("paths", "second", "status"),
    [
        (("a.py", "conftest.py"), "passed", "needs_review"),
        (("a.py", "conftest.py"), "failed", "fail"),
        (("conftest.py",), None, "fail"),
        (("a.py",), None, "fail"),
    ],
)
async def test_a_second_look_with_the_patchs_own_conftest(paths, second, status):
    script = [reporting({A: "failed", B: "passed"})]
    script += [reporting({A: second, B: "passed"})] if second else []
    sandbox = ScriptedSandbox(script)
    found = await grade(sandbox, INSTANCE, patched(*paths), BEFORE)
    assert (found.status, found.resolved) == (status, False)
    assert len(sandbox.jobs) == len(script)
    assert found.set_aside == (("conftest.py",) if "conftest.py" in paths else ())
    kept = [dict(job.files)["repo/conftest.py"] for job in sandbox.jobs]
    assert kept == [b"old", b"new"][: len(script)]


async def test_no_repeats_are_refused():
    with pytest.raises(ConfigError, match="repeats=0"):
        await grade(ScriptedSandbox([]), INSTANCE, TREE, BEFORE, repeats=0)
