import pytest
from layers_doubles import TEXT, prompt_of, trace_of

from archon.budget import Budget
from archon.errors import ConfigError, ModelUnavailable
from archon.layers.generator import Generator
from archon.models.protocol import Completion
from archon.testing import ScriptedModel
from archon.types import Candidate, UnitTest, Verdict


def numbered(prefix=""):
    return lambda request, index: f"{prefix}{index}"


async def test_a_fixed_temperature_is_one_request():
    model = ScriptedModel(numbered())
    trace = await Generator(model=model, n=4, temperature=0.0, max_tokens=7).run(TEXT)
    (request,) = model.requests
    assert (request.n, request.temperature, request.max_tokens) == (4, 0.0, 7)
    assert [(c.id, c.text, c.temperature) for c in trace.candidates] == [
        (f"generator#{i}", str(i), 0.0) for i in range(4)
    ]
    assert trace.usage.calls == 4
    assert trace.spans[0].parses == (("ok", 4),)


async def test_a_spread_is_even_and_asked_side_by_side():
    model = ScriptedModel(numbered(), latency_s=0.02)
    trace = await Generator(model=model, n=3, temperature=(0.2, 0.8)).run(TEXT)
    assert [r.temperature for r in model.requests] == pytest.approx([0.2, 0.5, 0.8])
    assert [r.sample_index for r in model.requests] == [0, 1, 2]
    assert len({r.seed - r.sample_index for r in model.requests}) == 1
    assert model.most_in_flight == 3
    assert trace.usage.critical_s == pytest.approx(0.02)


async def test_several_models_never_draw_the_same_sample():
    model = ScriptedModel(numbered())
    other = ScriptedModel(numbered("b"), name="b")
    trace = await Generator(model=(model, model, other), n=2).run(TEXT)
    assert [c.text for c in trace.candidates] == ["0", "1", "2", "3", "b4", "b5"]
    assert [c.model for c in trace.candidates] == ["scripted"] * 4 + ["b"] * 2
    seeds = [r.seed + i for r in model.requests + other.requests for i in range(r.n)]
    assert len(set(seeds)) == 6


async def test_the_first_samples_are_those_of_a_smaller_n():
    small, large = ScriptedModel(numbered()), ScriptedModel(numbered())
    await Generator(model=small, n=1).run(TEXT, seed=5)
    await Generator(model=large, n=8).run(TEXT, seed=5)
    assert small.requests[0].seed == large.requests[0].seed
    other = ScriptedModel(numbered())
    await Generator(model=other, n=1).run(TEXT, seed=6)
    assert other.requests[0].seed != small.requests[0].seed


async def test_a_lost_sample_is_data_and_thinking_stays_outside():
    script = [
        Completion(text="", model="m", finish_reason="length", reasoning="secret"),
        Completion(text="x", model="m", finish_reason="length", reasoning="secret"),
        Completion(text="", model="m", error="lost"),
        "fine",
    ]
    trace = await Generator(model=ScriptedModel(script), n=4).run(TEXT)
    assert [c.error is None for c in trace.candidates] == [False, True, False, True]
    assert "finish_reason='length'" in trace.candidates[0].error
    assert "secret" not in repr(trace)
    assert trace.answer.text == "x"
    assert trace.spans[0].parses == (("ok", 1), ("truncated", 2), ("call_failed", 1))


async def test_no_candidate_at_all_raises_the_endpoints_error():
    with pytest.raises(ModelUnavailable, match="down"):
        await Generator(model=ScriptedModel([ModelUnavailable("down")] * 2), n=2).run(TEXT)
    lost = [Completion(text="", model="m", error="reset by peer")] * 2
    with pytest.raises(ModelUnavailable, match="reset by peer"):
        await Generator(model=ScriptedModel(lost), n=2).run(TEXT)


async def test_one_model_down_leaves_the_other_ones():
    models = (ScriptedModel([ModelUnavailable("down")]), ScriptedModel(["up"], name="b"))
    trace = await Generator(model=models, n=1).run(TEXT)
    assert [c.error for c in trace.candidates] == ["ModelUnavailable: down", None]


async def test_empty_answers_leave_a_trace_without_an_answer():
    trace = await Generator(model=ScriptedModel(["", " "]), n=2).run(TEXT)
    assert trace.answer is None
    assert trace.stop is None


async def test_budget_keeps_what_there_is_and_says_so():
    trace = await Generator(model=ScriptedModel(numbered()), n=3, temperature=(0.0, 1.0)).run(
        TEXT, budget=Budget(calls=2)
    )
    assert trace.stop == "budget"
    assert "2 calls" in trace.stop_reason
    assert [c.error is None for c in trace.candidates] == [True, True, False]
    nothing = await Generator(model=ScriptedModel(numbered())).run(TEXT, budget=Budget(calls=0))
    assert (nothing.stop, nothing.answer) == ("budget", None)


async def test_a_later_round_shows_the_last_answer_and_why_it_failed():
    model = ScriptedModel(["43"])
    failed = Candidate(
        id="generator#0", text="41", verdicts=(Verdict(passed=False, by="verifier", reason="f(1) returned 41"),)
    )
    trace = trace_of(round=1).advance((failed,))
    after = await Generator(model=model, label="generator")(trace)
    assert [c.id for c in after.candidates] == ["generator@1#0"]
    assert after.retired == (failed,)
    assert [m.role for m in model.requests[0].messages] == ["user", "assistant", "user"]
    assert "f(1) returned 41" in prompt_of(model.requests[0])


async def test_a_later_round_that_fails_keeps_the_last_candidates():
    trace = trace_of("41", "42", round=1)
    after = await Generator(model=ScriptedModel([ModelUnavailable("down")]))(trace)
    assert [c.text for c in after.candidates] == ["41"]  # no more live ones than were planned for what follows
    assert after.spans[-1].notes == ("no new candidate: the last ones kept",)


async def test_tests_are_shown_when_asked_for():
    tests = (UnitTest(text="It greets.", source="model"),)
    for show, seen in ((True, True), (False, False)):
        model = ScriptedModel(["hi"])
        await Generator(model=model, show_tests=show)(trace_of(tests=tests))
        assert ("It greets." in prompt_of(model.requests[0])) is seen


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n": 0}, "generator n=0: must be a whole number of at least 1"),
        ({"n": "8"}, "generator n='8'"),
        ({"n": True}, "generator n=True"),
        ({"temperature": 3.0}, "generator temperature=3.0: must be a number from 0 to 2"),
        ({"temperature": (0.8, 0.2)}, "the first must be the lower one"),
        ({"temperature": (0.1, 0.2, 0.3)}, "one number or"),
        ({"top_p": 1.5}, "generator top_p=1.5"),
        ({"max_tokens": 0}, "generator max_tokens=0"),
        ({"effort": "hgih"}, "did you mean 'high'"),
        ({"show_tests": "yes"}, "must be true or false"),
        ({"model": ()}, "at least one model"),
    ],
)
def test_settings_are_checked(setting, message):
    with pytest.raises(ConfigError, match=message):
        Generator(**setting)
