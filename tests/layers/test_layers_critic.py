from layers_doubles import prompt_of, trace_of

from archon.budget import Budget, Ledger
from archon.errors import ModelUnavailable
from archon.layers.critic import Critic
from archon.models.metered import Metered
from archon.models.protocol import Completion
from archon.testing import ScriptedModel
from archon.types import Candidate


async def test_one_call_for_the_whole_set():
    model = ScriptedModel(["[1] good\n[2] bad"])
    after = await Critic(model=model)(trace_of("a", "b"))
    assert [c.critique for c in after.candidates] == ["good", "bad"]
    assert after.spans[0].parses == (("ok", 1),)
    assert after.usage.calls == 1


async def test_lost_candidates_are_not_shown_and_ids_stay_right():
    trace = trace_of("a", "b")
    trace = trace.advance((Candidate(id="x", text="", error="down"), *trace.candidates))
    model = ScriptedModel(["[1] of a\n[2] of b"])
    after = await Critic(model=model)(trace)
    assert [c.critique for c in after.candidates] == [None, "of a", "of b"]
    assert "<candidate 3>" not in prompt_of(model.requests[0])


async def test_a_critic_that_is_down_cut_off_or_unreadable_takes_nothing_away():
    for reply, status in [
        (ModelUnavailable("down"), "call_failed"),
        ("nothing to say", "failed"),
        (Completion(text="[1] good, but", model="m", finish_reason="length"), "truncated"),
    ]:
        after = await Critic(model=ScriptedModel([reply]))(trace_of("a", "b"))
        assert after.spans[0].parses == ((status, 1),)
        assert [c.text for c in after.candidates] == ["a", "b"]
        assert after.candidates[1].critique is None
    assert after.candidates[0].critique == "good, but"


async def test_nothing_to_criticise_takes_no_call():
    after = await Critic(model=ScriptedModel([]))(trace_of())
    assert after.usage.calls == 0


async def test_budget_stop_keeps_the_candidates():
    after = await Critic(model=Metered(ScriptedModel([]), Ledger(Budget(calls=0))))(trace_of("a"))
    assert (after.stop, after.answer.text) == ("budget", "a")
