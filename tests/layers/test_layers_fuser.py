from dataclasses import replace

import pytest
from layers_doubles import prompt_of, trace_of

from archon.budget import Budget, Ledger
from archon.errors import ConfigError, ModelUnavailable
from archon.layers.fuser import Fuser
from archon.models.metered import Metered
from archon.testing import ScriptedModel


async def test_n_answers_in_one_request_with_their_parents():
    model = ScriptedModel(["x", "y"])
    after = await Fuser(model=model, n=2, top_k=2)(trace_of("a", "b", "c"))
    assert [c.text for c in after.candidates] == ["x", "y"]
    assert after.candidates[0].parents == ("generator#0", "generator#1")
    assert [c.id for c in after.candidates] == ["fuser#0", "fuser#1"]
    assert len(after.retired) == 3
    assert len(model.requests) == 1
    assert "<candidate 3>" not in prompt_of(model.requests[0])


async def test_inputs_are_kept_behind_the_fused_ones():
    after = await Fuser(model=ScriptedModel(["x"]), keep_inputs=True, top_k=2)(trace_of("a", "b", "c"))
    assert [c.text for c in after.candidates] == ["x", "a", "b"]


async def test_lost_fusions_leave_no_more_than_were_planned():
    trace = trace_of("a", "b")
    trace = replace(trace, candidates=tuple(replace(c, critique="fine") for c in trace.candidates))
    after = await Fuser(model=ScriptedModel([ModelUnavailable("down")]))(trace)
    assert (after.answer.text, after.answer.critique) == ("a", None)
    assert len(after.usable) == 1
    assert after.spans[0].notes == ("no fused answer: inputs kept",)
    partly = await Fuser(model=ScriptedModel(["", "y"]), n=2)(trace)
    assert [c.text for c in partly.usable] == ["y"]


async def test_length_control_is_in_the_prompt():
    for control in (True, False):
        model = ScriptedModel(["x"])
        await Fuser(model=model, length_control=control)(trace_of("a"))
        assert ("longest candidate" in prompt_of(model.requests[0])) is control


async def test_without_candidates_it_does_nothing():
    after = await Fuser(model=ScriptedModel([]))(trace_of())
    assert after.candidates == ()


async def test_budget_stop_keeps_the_best_input():
    after = await Fuser(model=Metered(ScriptedModel([]), Ledger(Budget(calls=0))))(trace_of("a", "b"))
    assert (after.stop, after.answer.text) == ("budget", "a")


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="fuser n=0"):
        Fuser(n=0)
    with pytest.raises(ConfigError, match="fuser keep_inputs='no'"):
        Fuser(keep_inputs="no")
