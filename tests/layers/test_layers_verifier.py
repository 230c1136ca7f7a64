from dataclasses import replace

import pytest
from layers_doubles import CODE, MATHS, TEXT, program, prompt_of, replies, step_of, trace_of

from archon.budget import Budget, Ledger
from archon.errors import ConfigError, ModelUnavailable
from archon.layers.generator import Generator
from archon.layers.verifier import Verifier
from archon.models.metered import Metered
from archon.models.protocol import Completion
from archon.testing import ScriptedModel


def judging(verdict):
    return ScriptedModel(replies(verdict=verdict, reasoning="It says so."), latency_s=0.01)


async def test_reasons_then_verdict_two_calls_for_each_candidate():
    model = judging(lambda request, _: "[Correct]" if "good" in prompt_of(request) else "[Incorrect]")
    after = await Verifier(model=model)(trace_of("bad", "good"))
    assert [(c.text, c.passed) for c in after.candidates] == [("good", True), ("bad", False)]
    assert after.candidates[0].verdicts[0].reason == "It says so."
    assert (model.calls, model.most_in_flight) == (4, 2)
    assert after.usage.critical_s == pytest.approx(0.02)
    assert [step_of(r) for r in model.requests] == ["reasoning"] * 2 + ["verdict"] * 2
    assert "It says so." in prompt_of(model.requests[-1])


@pytest.mark.parametrize(
    ("verdict", "status"),
    [
        (Completion(text="[Corr", model="m", finish_reason="length"), "truncated"),
        (ModelUnavailable("HTTP 500"), "call_failed"),
        ("I am not sure", "failed"),
    ],
)
async def test_a_judge_that_is_cut_off_or_down_judges_nothing(verdict, status):
    after = await Verifier(model=judging(lambda *_: verdict))(trace_of("a"))
    assert after.candidates[0].passed is None
    assert after.candidates[0].verdicts[0].passed is None
    assert after.spans[0].parses == ((status, 1),)
    assert after.spans[0].notes == ()
    assert after.stop is None


async def test_lost_reasons_take_no_second_call():
    model = ScriptedModel(replies(reasoning=lambda *_: ModelUnavailable("down")))
    after = await Verifier(model=model)(trace_of("a"))
    assert (model.calls, after.candidates[0].passed) == (1, None)


@pytest.mark.parametrize("policy", ["best_effort", "abstain"])
async def test_when_all_are_rejected_the_policy_decides_and_says_so(policy):
    after = await Verifier(model=judging("[Incorrect]"), on_reject=policy)(trace_of("a", "b"))
    assert after.spans[0].notes == (f"all_rejected: {policy}",)
    assert [c.passed for c in after.candidates] == [False, False]
    if policy == "abstain":
        assert (after.stop, after.answer) == ("abstained", None)
        assert after.stop_reason == "verifier rejected all 2 candidates"
    else:
        assert (after.stop, after.answer.text) == (None, "a")


async def test_one_not_judged_is_no_rejection():
    model = judging(lambda request, _: "[Incorrect]" if "bad" in prompt_of(request) else "hm")
    after = await Verifier(model=model, on_reject="abstain")(trace_of("bad", "other"))
    assert (after.stop, after.answer.text) == (None, "other")


@pytest.mark.parametrize(("keep", "live"), [("all", ["good", "bad"]), ("passed", ["good"]), ("best", ["good"])])
async def test_keep(keep, live):
    model = judging(lambda request, _: "[Correct]" if "good" in prompt_of(request) else "[Incorrect]")
    after = await Verifier(model=model, keep=keep)(trace_of("bad", "good"))
    assert [c.text for c in after.candidates] == live
    rejected = await Verifier(model=judging("[Incorrect]"), keep="passed")(trace_of("x", "y"))
    assert len(rejected.candidates) == 2


async def test_tests_are_written_and_run(sandbox):
    model = ScriptedModel(replies())
    trace = trace_of(program("x + 1"), program("x * 2"), problem=CODE)
    after = await Verifier(model=model, unit_tests=5, sandbox=sandbox)(trace)
    assert [c.id for c in after.candidates] == ["generator#1", "generator#0"]
    assert [c.passed for c in after.candidates] == [True, False]
    assert model.calls == 1
    assert len(after.tests) == 4
    assert after.spans[0].usage.critical_s == 0.5


async def test_tests_that_exist_are_used_and_new_candidates_judged(sandbox):
    once = await Verifier(model=ScriptedModel(replies()), unit_tests=5, sandbox=sandbox)(
        trace_of(program("x + 1"), problem=CODE)
    )
    fresh = replace(trace_of(program("x * 2")).candidates[0], id="fuser#0")
    more = once.advance((fresh, *once.candidates))
    after = await Verifier(model=ScriptedModel([]), unit_tests=5, sandbox=sandbox)(more)
    assert [(c.id, c.passed) for c in after.candidates] == [("fuser#0", True), ("generator#0", False)]
    assert after.tests == once.tests


async def test_unreadable_tests_are_not_asked_for_again_in_a_loop(sandbox):
    model = ScriptedModel(replies(code_tests="I would rather not."))
    plain = replace(CODE, prompt="Write f.")
    pipe = (Generator(model=model) >> Verifier(unit_tests=4)).refine(max_rounds=3)
    trace = await pipe.run(plain, sandbox=sandbox)
    assert sum(step_of(r) == "code_tests" for r in model.requests) == 1
    assert trace.answer.passed is None
    assert trace.spans[1].notes[0] == "unit_tests: 0 examples, 0 written"


async def test_prose_and_maths_are_judged_by_statements():
    for problem in (TEXT, MATHS):
        model = ScriptedModel(replies())
        after = await Verifier(model=model, unit_tests=2)(trace_of("a", "b", problem=problem))
        assert model.calls == 3
        assert [c.passed for c in after.candidates] == [True, True]


async def test_refine_shows_the_failure_and_stops_when_verified(sandbox):
    answers = iter([program("x + 1"), program("x * 2")])
    model = ScriptedModel(replies(generation=lambda *_: next(answers)))
    pipe = (Generator(model=model) >> Verifier(unit_tests=3)).refine(until="verified", max_rounds=5)
    trace = await pipe.run(CODE, sandbox=sandbox)
    assert trace.answer.id == "generator@1#0"
    assert [step_of(r) for r in model.requests] == ["generation", "code_tests", "generation"]
    assert "assert f(2) == 4: returned 3" in prompt_of(model.requests[-1])


async def test_budget_stop_keeps_the_best_and_does_not_abstain():
    for settings in ({}, {"unit_tests": 2}):
        model = Metered(ScriptedModel([]), Ledger(Budget(calls=0)))
        after = await Verifier(model=model, on_reject="abstain", **settings)(trace_of("a", "b"))
        assert (after.stop, after.answer.text, after.answer.passed) == ("budget", "a", None)


def test_only_tests_need_a_sandbox():
    assert not Verifier().needs_sandbox
    assert Verifier(unit_tests=1).needs_sandbox


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="verifier on_reject='abstein': did you mean 'abstain'"):
        Verifier(on_reject="abstein")
    with pytest.raises(ConfigError, match="verifier unit_tests=-1"):
        Verifier(unit_tests=-1)
    with pytest.raises(ConfigError, match="verifier keep='none'"):
        Verifier(keep="none")
