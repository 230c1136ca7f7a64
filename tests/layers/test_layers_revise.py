import pytest
from layers_doubles import prompt_of, trace_of

from archon.budget import Budget, Ledger
from archon.errors import ConfigError, ModelUnavailable
from archon.layers.revise import Revise
from archon.models.metered import Metered
from archon.testing import ScriptedModel


def counting():
    done = iter(range(1, 100))
    return lambda request, index: f"revision-{next(done)}"


async def test_chains_are_sequential_inside_and_side_by_side():
    model = ScriptedModel(lambda request, index: "better", latency_s=0.02)
    after = await Revise(model=model, rounds=3)(trace_of("a", "b"))
    assert (model.calls, model.most_in_flight) == (6, 2)
    assert after.usage.critical_s == pytest.approx(0.06)
    assert [c.id for c in after.candidates] == ["revise#2", "revise#5"]
    assert [c.id for c in after.retired] == [
        "generator#0",
        "revise#0",
        "revise#1",
        "generator#1",
        "revise#3",
        "revise#4",
    ]
    assert after.candidates[0].parents == ("revise#1",)


async def test_a_revision_sees_the_window_of_its_own_chain():
    model = ScriptedModel(counting())
    await Revise(model=model, rounds=3, window=2)(trace_of("first"))
    assert "first" in prompt_of(model.requests[1])
    last = prompt_of(model.requests[2])
    assert "first" not in last
    assert last.index("revision-1") < last.index("revision-2")


async def test_earlier_answers_stay_when_asked_for():
    after = await Revise(model=ScriptedModel(["a2", "a3"]), rounds=2, keep_inputs=True)(trace_of("a1"))
    assert [c.text for c in after.candidates] == ["a3", "a2", "a1"]


async def test_a_lost_revision_ends_its_chain_and_keeps_the_newest():
    after = await Revise(model=ScriptedModel(["a2", ModelUnavailable("down")]), rounds=3)(trace_of("a1"))
    assert [c.text for c in after.candidates] == ["a2"]
    assert after.spans[0].parses == (("ok", 1), ("call_failed", 1))
    assert [c.error for c in after.retired] == [None, "ModelUnavailable: down"]


async def test_budget_stop_keeps_the_newest():
    model = Metered(ScriptedModel(["a2"]), Ledger(Budget(calls=1)))
    after = await Revise(model=model, rounds=2)(trace_of("a1"))
    assert (after.stop, after.answer.text) == ("budget", "a2")


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="revise rounds=0"):
        Revise(rounds=0)
    with pytest.raises(ConfigError, match="revise window=0"):
        Revise(window=0)
