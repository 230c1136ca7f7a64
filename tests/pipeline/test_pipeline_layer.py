from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from pipeline_doubles import PROBLEM, Do, Make, own, says

from archon.layers import Critic, Generator, UnitTestEvaluator
from archon.pipeline import layer
from archon.pipeline.layer import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class Executes(Do):
    kind: ClassVar[str] = "executes"
    sandbox: Any = None

    @property
    def needs_sandbox(self):
        return True


@pytest.mark.parametrize(
    ("leaf", "models"),
    [
        (own, ()),
        (Do(), ()),
        (Make(), ()),
        (Make(model="a"), ("a",)),
        (Critic(), ()),
        (Generator(model=("a", "b", "a")), ("a", "b", "a")),
    ],
)
def test_the_models_that_a_layer_was_given(leaf, models):
    assert leaf.models == models


def test_only_a_layer_that_executes_code_needs_a_sandbox():
    assert [leaf.needs_sandbox for leaf in (own, Do(), Critic(), UnitTestEvaluator(), Executes())] == [
        False,
        False,
        False,
        True,
        True,
    ]


def test_a_run_fills_in_what_a_layer_has_and_leaves_the_rest():
    engine, theirs = object(), object()
    binding = Binding(model=lambda model: f"bound {model}", sandbox=engine, seed=7)
    assert Do().bind(binding) == Do(seed=7)
    assert Make(model="a").bind(binding) == Make(model="bound a", seed=7)
    assert Make().bind(binding) == Make(seed=7)
    assert Make(model=("a", "b")).bind(binding) == Make(model=("bound a", "bound b"), seed=7)
    assert Executes().bind(binding) == Executes(sandbox=engine, seed=7)
    assert Executes(sandbox=theirs).bind(binding) == Executes(sandbox=theirs, seed=7)


def test_a_pipeline_needs_a_sandbox_while_a_layer_that_executes_has_none():
    make = Make(model=says())
    assert not make.compiled().needs_sandbox
    assert (make >> Executes()).compiled().needs_sandbox
    assert not (make >> Executes(sandbox=object())).compiled().needs_sandbox
    assert (make >> Executes(sandbox=object()) >> Executes()).compiled().needs_sandbox


def test_only_layers_that_ask_a_model_are_lent_one():
    compiled = (Make(model="a") >> Make(label="second") >> own >> Do()).relabel(str.upper, "lent")
    assert [leaf.models for leaf in compiled.leaves] == [("a",), ("lent",), (), ()]
    assert [leaf.name for leaf in compiled.leaves] == ["GENERATOR", "second", "OWN", "RANKER"]


async def test_a_function_is_a_layer():
    @layer
    async def stop(trace):
        return trace.advance(())

    trace = await (Make(model=says()) >> stop).run(PROBLEM)
    assert trace.candidates == ()
