from dataclasses import replace

from layers_doubles import CODE, TEXT, program, trace_of

from archon.errors import SandboxFailed
from archon.layers.execution import execute, executes
from archon.sandbox.fake import ScriptedSandbox, returning
from archon.sandbox.protocol import Outcome
from archon.types import UnitTest


def check(args, expected):
    return UnitTest(text=f"f{args} == {expected}", source="model", function="f", args=args, expected=expected)


TESTS = (check("(1,)", "2"), check("(3,)", "6"))


async def test_outcomes_and_values_come_from_the_sandbox():
    candidates = trace_of(program("x * 2"), program("x + 1"), "no program").candidates
    sandbox = ScriptedSandbox([returning(2, 6, wall_s=0.25), returning(2, 4)])
    right, wrong, none = await execute(sandbox, CODE, candidates, TESTS, per_call_s=1.0)
    assert [(o.passed, o.value) for o in right.observations] == [(True, "2"), (True, "6")]
    assert [(o.passed, o.value) for o in wrong.observations] == [(True, "2"), (False, "4")]
    assert [o.passed for o in none.observations] == [False, False]
    assert (right.wall_s, right.failures) == (0.25, ())
    assert wrong.failures == ("f(3,) == 6: returned 4",)
    assert len(sandbox.jobs) == 2


async def test_expected_values_stay_outside():
    tests = (check("(1,)", "987654321"),)
    sandbox = ScriptedSandbox([returning(1)])
    await execute(sandbox, CODE, trace_of(program("x")).candidates, tests, per_call_s=1.0)
    (job,) = sandbox.jobs
    assert b"987654321" not in job.stdin + b"".join(content for _, content in job.files)


async def test_a_job_that_timed_out_leaves_what_did_not_run_not_judged():
    cut = Outcome(end="timeout", exit_code=None, stdout=b"", stderr=b"", wall_s=10.0)
    (ran,) = await execute(ScriptedSandbox([cut]), CODE, trace_of(program("x")).candidates, TESTS, per_call_s=1.0)
    assert all(o.passed is not True and o.value is None for o in ran.observations)
    assert ran.wall_s == 10.0


async def test_an_engine_that_fails_judges_nothing():
    class Broken(ScriptedSandbox):
        async def run(self, job):
            raise SandboxFailed("no disk")

    (ran,) = await execute(Broken([]), CODE, trace_of(program("x")).candidates, TESTS, per_call_s=1.0)
    assert [o.passed for o in ran.observations] == [None, None]
    assert ran.failed == "no disk"


def test_only_code_with_an_entry_point_is_run():
    assert executes(CODE)
    assert not executes(TEXT)
    assert not executes(replace(CODE, entry_point=None))
