import pytest

from archon.errors import NoSandbox
from archon.sandbox.fake import ScriptedSandbox, finishing, raising, returning
from archon.sandbox.protocol import Outcome
from archon.tasks.calls import assertion, unit_test
from archon.tasks.grade_code import CodeGrader, CodeKey
from archon.types import Problem

PROBLEM = Problem(id="p", prompt="Write f.", kind="code", entry_point="f")
GOOD = "```python\ndef f(x):\n    return x + 1\n```"
CALLS = tuple(unit_test(*assertion(text), "example") for text in ("f(1) == 2", "f(2) == 3", "f(3) == 4"))
BY_CALLS = CodeGrader(keys={"p": CodeKey(calls=CALLS)})
BY_PROGRAM = CodeGrader(keys={"p": CodeKey(program="assert f(1) == 2")})
FAILED = Outcome(end="infra_error", exit_code=None, stdout=b"", stderr=b"", wall_s=0.0, detail="the engine is gone")


async def test_structured_calls():
    verdict = await BY_CALLS.grade(PROBLEM, GOOD, ScriptedSandbox([returning(2, 3, 4)]))
    assert (verdict.passed, verdict.score) == (True, 1.0)
    verdict = await BY_CALLS.grade(PROBLEM, GOOD, ScriptedSandbox([returning(2, 3, 5)]))
    assert verdict.passed is False
    assert verdict.score == pytest.approx(2 / 3)
    assert "2 of 3 passed" in verdict.reason


async def test_a_test_program():
    sandbox = ScriptedSandbox([finishing(), raising("AssertionError")])
    assert (await BY_PROGRAM.grade(PROBLEM, GOOD, sandbox)).passed is True
    verdict = await BY_PROGRAM.grade(PROBLEM, GOOD, sandbox)
    assert verdict.passed is False
    assert "AssertionError" in verdict.reason
    sent = b"".join(content for _, content in sandbox.jobs[0].files) + sandbox.jobs[0].stdin
    assert b"return x + 1" in sent
    assert b"f(1) == 2" in sent


@pytest.mark.parametrize("grader", [BY_CALLS, BY_PROGRAM], ids=["calls", "program"])
async def test_a_broken_engine_is_not_judged(grader):
    for script in ([], [FAILED, FAILED, FAILED]):
        verdict = await grader.grade(PROBLEM, GOOD, ScriptedSandbox(script))
        assert verdict.passed is None
        assert verdict.reason.startswith("not judged")


async def test_no_program_fails_without_a_run():
    sandbox = ScriptedSandbox([])
    verdict = await BY_CALLS.grade(PROBLEM, "I cannot.", sandbox)
    assert verdict.passed is False
    assert "defines 'f'" in verdict.reason
    assert sandbox.jobs == []


async def test_no_sandbox_is_an_error():
    with pytest.raises(NoSandbox, match="'p'"):
        await BY_CALLS.grade(PROBLEM, GOOD, None)


def test_programs_vote_by_what_they_do_not_by_their_comments():
    same = "Sure:\n```python\n# add one\ndef f( x ):\n    '''Add.'''\n    return (x+1)\n\nprint(f(2))\n```"
    other = "```python\ndef f(x):\n    return x + 2\n```"
    assert BY_CALLS.normalise(PROBLEM, GOOD) == BY_CALLS.normalise(PROBLEM, same)
    assert BY_CALLS.normalise(PROBLEM, GOOD) != BY_CALLS.normalise(PROBLEM, other)
    assert BY_CALLS.normalise(PROBLEM, "no code") is None
