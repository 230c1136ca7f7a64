"""The layer that judges patches, with suites that answer at once; and the fix loop that it makes."""

from __future__ import annotations

import pytest

from archon import Generator, Problem
from archon.codefix import patch_tests as module
from archon.codefix.baseline import Baseline, Expectation
from archon.codefix.patch_tests import Case, PatchTests, why
from archon.codefix.types import File, Instance, TestRun, Tree
from archon.errors import ConfigError
from archon.sandbox.fake import ScriptedSandbox
from archon.testing import ScriptedModel

TREE = (File(path="app.py", content=b"def add(a, b):\n    return a - b\n"),)
MUST = Expectation(fail_to_pass=("t.py::add", "t.py::zero"), pass_to_pass=("t.py::kept",))
BASELINE = Baseline(
    instance_id="i", visible=MUST, graded=MUST, repeats=1, run=TestRun(outcomes=(), status="finished", output="")
)
CASE = Case(instance=Instance(id="i", tree=TREE, entry_point="add"), baseline=BASELINE)
PROBLEM = Problem(id="i", prompt="Fix it.", kind="code", entry_point="add")


def answer(body: str) -> str:
    return f"```python\ndef add(a, b):\n    return {body}\n```"


SAID = {
    # what the function returns: the tests that pass then
    "a + b": {"t.py::add", "t.py::zero", "t.py::kept"},
    "b + a": {"t.py::add", "t.py::zero", "t.py::kept"},
    "a * b": {"t.py::zero", "t.py::kept"},
    "a / b": {"t.py::zero"},
    "0": {"t.py::kept"},
    "1": {"t.py::kept"},
    "2": {"t.py::kept", "t.py::zero"},
}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Suites that answer from the table, and the trees that they were run on."""
    seen: list[str] = []

    async def run_tests(sandbox: object, tree: Tree, *, pristine: Tree, ids: tuple[str, ...], **_: object) -> TestRun:
        assert pristine == TREE
        source = next(file.content for file in tree if file.path == "app.py").decode()
        seen.append(body := source.partition("return ")[2].strip())
        if body == "boom":
            return TestRun(outcomes=(), status="infra_error", detail="daemon gone")
        if body == "hang":
            return TestRun(outcomes=(), status="timeout", detail="300 s are up")
        outcomes = tuple((name, "passed" if name in SAID[body] else "failed") for name in ids)
        return TestRun(outcomes=outcomes, status="finished", output=f"E   it was {body}\n", wall_s=2.0)

    monkeypatch.setattr(module, "run_tests", run_tests)
    return seen


async def solved(replies: list[str], n: int, rounds: int = 1):
    model = ScriptedModel(replies)
    layer = (Generator(model=model, n=n) >> PatchTests(cases={"i": CASE})).refine(max_rounds=rounds)
    return await layer.run(PROBLEM, sandbox=ScriptedSandbox([])), model


async def test_candidates_are_ordered_by_what_their_patches_mend_and_break(ran: list[str]):
    bodies = ["0", "a / b", "a * b", "a + b"]
    trace, _ = await solved([answer(body) for body in bodies], n=4)
    assert [candidate.id for candidate in trace.candidates] == [
        "generator#3",  # all three tests
        "generator#2",  # mends one of two, breaks none
        "generator#1",  # mends one of two, breaks one
        "generator#0",  # mends none
    ]
    assert [candidate.passed for candidate in trace.candidates] == [True, False, False, False]
    assert [candidate.score for candidate in trace.candidates] == [1.0, 2 / 3, 1 / 3, 1 / 3]
    assert trace.spans[-1].usage.critical_s == 2.0


async def test_patches_that_pass_the_same_tests_vouch_for_each_other(ran: list[str]):
    # Nothing else tells the four apart in pairs: two mend one test each, two mend none, and none breaks any.
    trace, _ = await solved([answer(body) for body in ("a * b", "0", "1", "2")], n=4)
    best = [candidate.id for candidate in trace.candidates]
    assert best[:2] == ["generator#0", "generator#3"]  # two that pass the same two tests, as they came
    assert best[2:] == ["generator#1", "generator#2"]


async def test_equal_patches_are_tested_once(ran: list[str]):
    await solved([answer("a + b")] * 3 + ["I think it is:\n" + answer("a + b")], n=4)
    assert ran == ["a + b"]


async def test_refused_answers_fail_with_the_reason_and_run_nothing(ran: list[str]):
    trace, _ = await solved(["no code at all", "```python\ndef add(a, b:\n```"], n=2)
    assert ran == []
    assert [candidate.passed for candidate in trace.candidates] == [False, False]
    assert trace.candidates[0].verdicts[-1].reason.startswith("empty_patch: ")
    assert trace.spans[-1].notes == ("empty_patch: 2 of 2 patches",)


async def test_a_refused_patch_comes_after_one_that_breaks_everything(ran: list[str]):
    trace, _ = await solved(["no code", answer("a / b")], n=2)
    assert [(candidate.id, candidate.score) for candidate in trace.candidates] == [
        ("generator#1", 1 / 3),
        ("generator#0", None),
    ]


async def test_an_engine_that_fails_judges_nothing_and_a_timeout_fails(ran: list[str]):
    trace, _ = await solved([answer("boom"), answer("hang")], n=2)
    assert {candidate.id: candidate.passed for candidate in trace.candidates} == {
        "generator#0": None,
        "generator#1": False,
    }
    assert "300 s are up" in trace.candidates[1].verdicts[-1].reason


async def test_the_loop_shows_why_and_ends_at_the_first_fix(ran: list[str]):
    trace, model = await solved([answer("0"), answer("a * b"), answer("a + b"), answer("b + a"), "never asked"], 2, 3)
    assert trace.answer is not None
    assert trace.answer.passed is True
    assert model.calls == 4  # two rounds of two, not three
    shown = model.requests[1].messages
    assert "a * b" in str(shown[-2].content)  # the best of the first round
    assert "2 of 3 tests pass." in str(shown[-1].content)
    assert "failed: t.py::add" in str(shown[-1].content)
    assert "E   it was a * b" in str(shown[-1].content)


async def test_the_plan_is_the_generators(ran: list[str]):
    pipeline = (Generator(model=ScriptedModel([]), n=3) >> PatchTests(cases={"i": CASE})).refine(max_rounds=2)
    plan = pipeline.plan(PROBLEM)
    assert (plan.calls, plan.max_calls) == (3, 6)


async def test_without_a_sandbox_or_for_another_problem_it_says_so():
    from archon.types import Trace

    with pytest.raises(ConfigError, match="needs a sandbox"):
        await PatchTests(cases={"i": CASE})(Trace(problem=PROBLEM))
    other = Problem(id="other", prompt="?")
    with pytest.raises(ConfigError, match="instance 'other'"):
        await PatchTests(cases={"i": CASE}, sandbox=ScriptedSandbox([]))(Trace(problem=other))


def test_what_a_solver_reads_of_a_run_is_short():
    run = TestRun(outcomes=(("a", "failed"),), status="finished", output="E   " + "x" * 5000)
    assert len(why(run, ("a",))) <= 600
    assert why(TestRun(outcomes=(("a", "passed"),), status="finished"), ("a",)) == "all tests passed"
