from dataclasses import replace

import pytest
from layers_doubles import CODE, PLAIN, TEXT, program, prompt_of, trace_of

from archon.budget import Budget, Ledger
from archon.errors import ConfigError, ModelUnavailable
from archon.layers.unit_tests import UnitTestEvaluator, UnitTestGenerator
from archon.models.metered import Metered
from archon.models.protocol import Completion
from archon.testing import ScriptedModel
from archon.types import Candidate, UnitTest

STATEMENTS = tuple(UnitTest(text=text, source="model") for text in ("It greets.", "It is short."))


async def written(reply, problem=CODE, **settings):
    return await UnitTestGenerator(model=ScriptedModel([reply]), **settings)(trace_of(problem=problem))


async def with_tests(*texts, reply="assert f(3) == 6\nassert f(5) == 10", problem=CODE):
    trace = await written(reply, problem=problem)
    return trace.advance(trace_of(*texts).candidates)


async def test_examples_come_first_then_the_models_tests():
    trace = await written("assert f(3) == 6\nassert f(5) == 10")
    assert [(t.source, t.text) for t in trace.tests] == [
        ("example", "assert f(2) == 4"),
        ("model", "assert f(3) == 6"),
        ("model", "assert f(5) == 10"),
    ]
    assert trace.spans[0].notes == ("unit_tests: 1 examples, 2 written",)
    assert trace.spans[0].parses == (("ok", 1),)


async def test_what_contradicts_or_repeats_an_example_is_dropped_and_counted():
    trace = await written("assert f(2) == 5\nassert f(3) == 6\nassert g(1) == 2", n=8)
    assert [t.text for t in trace.tests] == ["assert f(2) == 4", "assert f(3) == 6"]
    assert trace.spans[0].notes[1:] == ("dropped contradicts_example: 1", "dropped other_function: 1")
    again = await written("assert f(2) == 4")
    assert len(again.tests) == 1
    assert again.spans[0].notes[1:] == ("dropped known: 1",)


async def test_examples_can_be_left_out():
    trace = await written("assert f(3) == 6", use_examples=False)
    assert [t.source for t in trace.tests] == ["model"]


async def test_a_writer_that_is_down_leaves_the_examples():
    trace = await written(ModelUnavailable("down"))
    assert [t.source for t in trace.tests] == ["example"]
    assert trace.spans[0].parses == (("call_failed", 1),)


async def test_a_cut_off_writer_gives_the_tests_that_it_finished():
    trace = await written(Completion(text="assert f(3) == 6\nassert f([1,", model="m", finish_reason="length"))
    assert len(trace.tests) == 2
    assert trace.spans[0].parses == (("truncated", 1),)


async def test_prose_gets_statements():
    trace = await written("1. It greets.\n2. It is short.", problem=TEXT)
    assert trace.tests == STATEMENTS


async def test_later_rounds_keep_the_tests():
    trace = replace(await written("assert f(3) == 6"), round=1)
    after = await UnitTestGenerator(model=ScriptedModel([]))(trace)
    assert after.tests == trace.tests


async def test_programs_are_run_and_ordered_without_any_call(sandbox):
    trace = await with_tests(program("x + 1"), program("x * 2"), program("x + x"), "no program here")
    after = await UnitTestEvaluator(model=ScriptedModel([]), sandbox=sandbox)(trace)
    assert [c.id for c in after.candidates] == ["generator#1", "generator#2", "generator#0", "generator#3"]
    assert [c.passed for c in after.candidates] == [True, True, False, False]
    best, worst = after.candidates[0], after.candidates[-1]
    assert best.verdicts[-1].tests == (True, True, True)
    assert worst.verdicts[-1].reason == "no program was found in the answer"
    # Weight 2 for one example: 2 of 4 answers agree, and all tests are passed: (2·1 + 2/4·(0.2 + 1)/1.2) / 3 = 5/6.
    assert best.score == best.verdicts[-1].score == pytest.approx(5 / 6)
    assert after.usage.calls == trace.usage.calls
    assert after.spans[-1].usage.critical_s == 0.5


async def test_the_reason_shows_what_really_came_out(sandbox):
    after = await UnitTestEvaluator(model="judge", sandbox=sandbox)(await with_tests(program("1 // x + 1 // (x - 3)")))
    reason = after.candidates[0].verdicts[-1].reason
    assert "assert f(2) == 4: returned -1" in reason
    assert "assert f(3) == 6: raised ZeroDivisionError" in reason


async def test_the_same_program_runs_once(sandbox):
    await UnitTestEvaluator(model="judge", sandbox=sandbox)(await with_tests(*[program("x * 2")] * 5, program("x")))
    assert len(sandbox.programs) == 2


async def test_wrong_expected_values_do_not_mislead(sandbox):
    reply = "assert f(3) == 7\nassert f(5) == 11\nassert f(6) == 99"
    trace = await with_tests(program("x + 4"), program("x * 2"), program("2 * x"), reply=reply, problem=PLAIN)
    after = await UnitTestEvaluator(model="judge", sandbox=sandbox, pass_share=0.5)(trace)
    # x + 4 passes the first, wrong test; two programs agree on every value and pass none.
    assert after.spans[-1].notes == ("tests not counted: 2 of 3",)
    assert [c.passed for c in after.candidates] == [True, False, False]
    scores = {c.id: c.score for c in after.candidates}
    assert scores["generator#1"] == scores["generator#2"] == pytest.approx((2 / 3) * 0.2 / 1.2 / 2)
    assert scores["generator#0"] == pytest.approx((1 / 3) * 1.2 / 1.2 / 2)


async def test_without_examples_pass_share_decides(sandbox):
    for share, passed in ((1.0, False), (0.5, True)):
        trace = await with_tests(
            program("x * 2"), program("x + 3"), problem=PLAIN, reply="assert f(3) == 6\nassert f(5) == 8"
        )
        after = await UnitTestEvaluator(model="judge", sandbox=sandbox, pass_share=share)(trace)
        assert {c.id: c.passed for c in after.candidates}["generator#0"] is passed


async def test_share_alone_when_agreement_is_off(sandbox):
    trace = await with_tests(program("x + 2"), program("x * 2"))
    after = await UnitTestEvaluator(model="judge", sandbox=sandbox, agreement=False)(trace)
    assert [c.score for c in after.candidates] == pytest.approx([1.0, 1 / 3])


async def test_dual_agreement_chooses_by_the_tests_that_programs_pass_together(sandbox):
    reply = "assert f(3) == 6\nassert f(5) == 8\nassert f(6) == 9"
    programs = program("x + 3"), program("x * 2"), program("2 * x"), program("x + x")
    trace = await with_tests(*programs, problem=PLAIN, reply=reply)
    after = await UnitTestEvaluator(model="judge", sandbox=sandbox, agreement="dual")(trace)
    # x + 3 passes all three alone, √1 × 3; the others pass the first together, √3 × 1; at most √4 × 3, halved.
    scores = {c.id: c.score for c in after.candidates}
    assert scores["generator#0"] == pytest.approx(3 / 6 / 2)
    assert scores["generator#1"] == scores["generator#3"] == pytest.approx(3**0.5 / 6 / 2)
    assert after.candidates[0].id == "generator#0"


async def test_examples_come_before_dual_agreement(sandbox):
    trace = await with_tests(program("x + 3"), program("x + 3 "), program("x * 2"), reply="assert f(4) == 7")
    after = await UnitTestEvaluator(model="judge", sandbox=sandbox, agreement="dual")(trace)
    # One example, weight 2: (2·1 + 0) / 3 for the one that passes it, (0 + √2·1/√3) / 3 for the pair.
    assert [c.id for c in after.candidates] == ["generator#2", "generator#0", "generator#1"]
    assert [c.score for c in after.candidates] == pytest.approx([2 / 3, (2 / 3) ** 0.5 / 3, (2 / 3) ** 0.5 / 3])


async def test_dual_agreement_scores_nothing_that_did_not_run(sandbox):
    sandbox.broken = ("x * 2",)
    trace = await with_tests(program("x * 2"), program("x + x"))
    after = await UnitTestEvaluator(model="judge", sandbox=sandbox, agreement="dual")(trace)
    assert {c.id: c.score for c in after.candidates} == {"generator#0": None, "generator#1": 1.0}


@pytest.mark.parametrize("agreement", [True, False, "dual"])
async def test_undiscriminating_tests_are_dropped_and_counted(sandbox, agreement):
    # f(0) == 0 is passed by whatever returns 0 or its argument, f(1) == 5 by nobody.
    reply = "assert f(0) == 0\nassert f(1) == 5\nassert f(3) == 6"
    trace = await with_tests(program("0"), program("x * 2"), problem=PLAIN, reply=reply)
    evaluator = UnitTestEvaluator(model="judge", sandbox=sandbox, agreement=agreement, drop_undiscriminating=True)
    after = await evaluator(trace)
    assert after.spans[-1].notes == (
        "tests not counted: 2 of 3",
        "dropped failed_by_all: 1",
        "dropped passed_by_returns_first_argument: 1",
    )
    assert {c.id: c.passed for c in after.candidates} == {"generator#0": False, "generator#1": True}
    assert after.candidates[0].id == "generator#1"
    assert len(sandbox.programs) == 3
    assert after.usage.calls == trace.usage.calls


async def test_trivial_programs_run_only_when_they_are_asked_for(sandbox):
    trace = await with_tests(program("0"), program("x * 2"), problem=PLAIN, reply="assert f(3) == 0")
    plain = await UnitTestEvaluator(model="judge", sandbox=sandbox, agreement=False)(trace)
    assert len(sandbox.programs) == 2
    assert [c.score for c in plain.candidates] == [1.0, 0.0]
    # The only test is one that a constant passes: it stays, since a weak test is better than none.
    asked = UnitTestEvaluator(model="judge", sandbox=sandbox, agreement=False, drop_undiscriminating=True)
    assert (await asked(trace)).spans[-1].notes == (
        "kept though trivial programs pass them, since no others are left: 1",
    )


async def test_a_sandbox_failure_is_not_judged_never_failed(sandbox):
    sandbox.broken = ("x + 1",)
    trace = await with_tests(program("x + 1"), program("x * 3"))
    after = await UnitTestEvaluator(model="judge", sandbox=sandbox)(trace)
    assert [(c.id, c.passed, c.score is None) for c in after.candidates] == [
        ("generator#0", None, True),
        ("generator#1", False, False),
    ]
    assert "sandbox failed: 1 candidates not judged" in after.spans[-1].notes


async def test_no_sandbox_and_no_tests_judge_nothing(sandbox):
    without = await UnitTestEvaluator(model="judge")(await with_tests(program("x")))
    assert (without.candidates[0].passed, without.candidates[0].score) == (None, None)
    assert without.spans[-1].notes == ("not judged: there is no sandbox to run tests in",)
    bare = await UnitTestEvaluator(model="judge", sandbox=sandbox)(trace_of(program("x"), problem=CODE))
    assert bare.candidates[0].passed is None
    assert bare.spans[-1].notes == ("not judged: there are no tests",)


async def test_prose_is_judged_one_call_for_each_candidate_side_by_side():
    def judge(request, _):
        return (
            "Test 1: [Passed]\nTest 2: [Passed]"
            if "Hello" in prompt_of(request)
            else "Test 1: [Failed]\nTest 2: [Passed]"
        )

    model = ScriptedModel(judge, latency_s=0.01)
    after = await UnitTestEvaluator(model=model, top_k=2)(trace_of("bye", "Hello", "no", tests=STATEMENTS))
    assert [c.text for c in after.candidates] == ["Hello", "bye"]
    assert [c.score for c in after.candidates] == [1.0, 0.5]
    assert after.candidates[1].verdicts[-1].reason == "not true of it: It greets."
    assert (model.calls, model.most_in_flight) == (3, 3)
    assert after.usage.critical_s == pytest.approx(0.01)


async def test_verdicts_never_shift_against_candidates():
    def judge(request, _):
        shown = prompt_of(request)
        if "two" in shown:
            return ModelUnavailable("HTTP 500")
        if "three" in shown:
            return Completion(text="Test 1: [Passed]\nTest 2: [Pa", model="m", finish_reason="length")
        return "Test 1: [Passed]\nTest 2: [Passed]" if "four" in shown else "Test 1: [Failed]\nTest 2: [Passed]"

    after = await UnitTestEvaluator(model=ScriptedModel(judge))(
        trace_of("one", "two", "three", "four", tests=STATEMENTS)
    )
    assert {c.text: (c.passed, c.score) for c in after.candidates} == {
        "one": (False, 0.5),
        "two": (None, None),
        "three": (None, None),
        "four": (True, 1.0),
    }
    assert after.spans[-1].parses == (("ok", 2), ("truncated", 1), ("call_failed", 1))


async def test_candidates_with_all_outcomes_are_not_judged_again():
    once = await UnitTestEvaluator(model=ScriptedModel(["Test 1: [Passed]\nTest 2: [Failed]"]))(
        trace_of("hi", tests=STATEMENTS)
    )
    again = await UnitTestEvaluator(model=ScriptedModel([]))(once)
    assert again.candidates == once.candidates


async def test_budget_stops_keep_the_answer():
    model = Metered(ScriptedModel(["Test 1: [Passed]\nTest 2: [Passed]"]), Ledger(Budget(calls=1)))
    after = await UnitTestEvaluator(model=model)(trace_of("a", "b", tests=STATEMENTS))
    assert (after.stop, after.answer.text, after.answer.passed) == ("budget", "a", True)
    empty = Metered(ScriptedModel([]), Ledger(Budget(calls=0)))
    after = await UnitTestGenerator(model=empty)(trace_of("a", problem=CODE))
    assert (after.stop, after.answer.text, len(after.tests)) == ("budget", "a", 1)


async def test_lost_candidates_get_no_verdict():
    trace = trace_of("a", tests=STATEMENTS)
    trace = trace.advance((Candidate(id="x", text="", error="down"), *trace.candidates))
    after = await UnitTestEvaluator(model=ScriptedModel(["Test 1: [Passed]\nTest 2: [Passed]"]))(trace)
    assert [(c.id, len(c.verdicts)) for c in after.candidates] == [("generator#0", 1), ("x", 0)]


def test_settings_are_checked():
    for settings, message in [
        ({"n": 0}, "unit_test_generator n=0: must be a whole number from 1 to 100"),
        ({"use_examples": 1}, "unit_test_generator use_examples=1"),
    ]:
        with pytest.raises(ConfigError, match=message):
            UnitTestGenerator(**settings)
    for settings, message in [
        ({"pass_share": 1.2}, "unit_test_evaluator pass_share=1.2: must be a number from 0 to 1"),
        ({"per_call_s": 0}, "unit_test_evaluator per_call_s=0"),
        ({"top_k": -1}, "unit_test_evaluator top_k=-1"),
        ({"agreement": "single"}, "unit_test_evaluator agreement='single': must be true, false or dual"),
        ({"agreement": 1}, "unit_test_evaluator agreement=1"),
        ({"drop_undiscriminating": "yes"}, "unit_test_evaluator drop_undiscriminating='yes': must be true or false"),
    ]:
        with pytest.raises(ConfigError, match=message):
            UnitTestEvaluator(**settings)
