"""What a pristine tree's runs amount to."""

from __future__ import annotations

import pytest

from archon.codefix.baseline import Expectation, baseline, expectation
from archon.codefix.fake import reporting
from archon.codefix.types import File, Instance, TestRun
from archon.errors import ConfigError, TaskError
from archon.sandbox.fake import ScriptedSandbox
from archon.sandbox.protocol import Outcome

A, B, C = (f"tests/test_a.py::test_{letter}" for letter in "abc")
HELD = "tests/test_h.py::test_h"


def instance(**values):
    tree = (File(path="a.py", content=b""), File(path="tests/test_a.py", content=b""))
    return Instance(id="i-1", tree=tree, **values)


def run(status="finished", detail="", **outcomes):
    named = {A: outcomes.get("a"), B: outcomes.get("b"), C: outcomes.get("c")}
    return TestRun(outcomes=tuple((n, said) for n, said in named.items() if said), status=status, detail=detail)


def test_what_is_not_named_is_filled_from_the_runs():
    runs = [run(a="failed", b="passed", c="skipped")] * 2
    assert expectation(instance(), runs) == Expectation(fail_to_pass=(A,), pass_to_pass=(B,))
    assert expectation(instance(fail_to_pass=(A,)), runs) == Expectation(fail_to_pass=(A,), pass_to_pass=(B,))
    assert expectation(instance(pass_to_pass=()), runs).ids == (A, B)


def test_a_file_that_cannot_be_read_yet_must_pass_as_a_whole():
    broken = TestRun(outcomes=(("tests/test_b.py", "error"), (B, "passed")), status="finished")
    assert expectation(instance(), [broken]).fail_to_pass == ("tests/test_b.py",)


def test_tests_that_flip_are_quarantined():
    runs = [
        run(a="failed", b="passed", c="passed"),
        run(a="failed", b="failed", c="passed"),
        run(a="failed", c="passed"),
    ]
    assert expectation(instance(), runs) == Expectation(fail_to_pass=(A,), pass_to_pass=(C,), flaky=(B,))
    named = instance(fail_to_pass=(A,), pass_to_pass=(B, C))
    assert expectation(named, runs) == Expectation(fail_to_pass=(A,), pass_to_pass=(C,), flaky=(B,))


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"fail_to_pass": (B,)}, f"tests {B!r} are named as failing and do not fail"),
        ({"fail_to_pass": (C,)}, f"{C!r} are named as failing and do not fail"),
        ({"fail_to_pass": (A, "t.py::gone")}, "'t.py::gone' are not there"),
        ({"fail_to_pass": (A,), "pass_to_pass": (C,)}, f"{C!r} are named as passing and do not pass"),
        ({"pass_to_pass": ("t.py::gone",)}, "'t.py::gone' are not there"),
    ],
)
def test_named_tests_that_do_not_behave_as_named(named, said):
    with pytest.raises(TaskError) as caught:
        expectation(instance(**named), [run(a="failed", b="passed", c="skipped")])
    assert said in str(caught.value)
    assert str(caught.value).startswith("i-1: ")


def test_a_case_that_the_fix_brings_may_be_missing():
    named = instance(fail_to_pass=(f"{A}[new]",))
    assert expectation(named, [run(b="passed")]).fail_to_pass == (f"{A}[new]",)


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ([run(b="passed")], "nothing to fix; no test fails"),
        ([run(a="passed"), run(a="failed")], "nothing to fix; the tests that fail are flaky"),
        ([run("timeout", "met a limit", a="failed")], "ended as 'timeout': 'met a limit'"),
        ([run(a="failed"), run("tampered", "forged")], "ended as 'tampered'"),
        ([run("no_tests", "none")], "ended as 'no_tests'"),
    ],
)
def test_a_tree_that_cannot_be_a_baseline(runs, said):
    with pytest.raises(TaskError, match=said):
        expectation(instance(), runs)


async def test_the_pristine_tree_runs_as_often_as_asked():
    steps = [reporting({A: "failed", B: said, C: "passed"}) for said in ("passed", "failed", "passed")]
    sandbox = ScriptedSandbox(steps)
    found = await baseline(sandbox, instance(), repeats=3)
    assert len(sandbox.jobs) == 3
    assert found.visible == found.graded == Expectation(fail_to_pass=(A,), pass_to_pass=(C,), flaky=(B,))
    assert (found.repeats, found.flaky, found.run.outcomes[1]) == (3, (B,), (B, "passed"))


async def test_held_out_files_are_put_in_place_for_grading_only():
    held_out = (File(path="tests/test_h.py", content=b"held out"),)
    sandbox = ScriptedSandbox([reporting({A: "passed"})] * 2 + [reporting({A: "passed", HELD: "failed"})] * 2)
    found = await baseline(sandbox, instance(held_out=held_out), repeats=2)
    assert [b"held out" in dict(job.files).values() for job in sandbox.jobs] == [False, False, True, True]
    assert found.visible == Expectation(pass_to_pass=(A,))
    assert found.graded == Expectation(fail_to_pass=(HELD,), pass_to_pass=(A,))
    assert HELD not in dict(found.run.outcomes)


async def test_named_tests_of_held_out_files_are_not_expected_of_the_visible_suite():
    held_out = (File(path="tests/test_h.py", content=b"held out"),)
    named = instance(held_out=held_out, fail_to_pass=(HELD,), pass_to_pass=(A,))
    script = [reporting({A: "passed", HELD: "missing"}), reporting({A: "passed", HELD: "failed"})]
    found = await baseline(ScriptedSandbox(script), named, repeats=1)
    assert found.visible == Expectation(pass_to_pass=(A,))
    assert found.graded == Expectation(fail_to_pass=(HELD,), pass_to_pass=(A,))


async def test_code_that_hangs_its_suite_must_pass_whole_files_or_the_named_tests():
    held_out = (File(path="tests/test_h.py", content=b""),)
    hangs = Outcome(end="timeout", exit_code=None, stdout=b"", stderr=b"", wall_s=1.0)
    sandbox = ScriptedSandbox([hangs, hangs])
    found = await baseline(sandbox, instance(held_out=held_out), repeats=3)
    assert len(sandbox.jobs) == 2  # it hangs again and again: once is enough
    assert found.visible == Expectation(fail_to_pass=("tests/test_a.py",))
    assert found.graded == Expectation(fail_to_pass=("tests/test_a.py", "tests/test_h.py"))
    named = instance(held_out=held_out, fail_to_pass=("tests/test_a.py::x", "tests/test_h.py::y"))
    found = await baseline(ScriptedSandbox([hangs, hangs]), named, repeats=1)
    assert found.visible.fail_to_pass == ("tests/test_a.py::x",)
    assert found.graded.fail_to_pass == named.fail_to_pass


async def test_no_repeats_are_refused():
    with pytest.raises(ConfigError, match="repeats=0"):
        await baseline(ScriptedSandbox([]), instance(), repeats=0)
