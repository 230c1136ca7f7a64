"""Planned calls are made calls, and token figures are bounds, over a grid of pipelines and problems."""

import itertools
from dataclasses import replace

import pytest
from layers_doubles import CODE, MATHS, TEXT, replies

from archon.layers import Critic, Fuser, Generator, Ranker, Revise, UnitTestEvaluator, UnitTestGenerator, Verifier
from archon.models.protocol import Completion
from archon.testing import ScriptedModel
from archon.types import Image, Message

PICTURE = Image(url="https://example.com/cat.png")
SEEN = replace(
    TEXT, id="p5", prompt=("Look:", PICTURE, "What is it?"), history=(Message(role="system", content="Be kind."),)
)

FIRST = {
    "one": {"n": 1},
    "four": {"n": 4, "max_tokens": 40},
    "spread": {"n": 3, "temperature": (0.2, 0.8)},
}
MIDDLE = {
    "none": (),
    "ranker": (Ranker(),),
    "pairwise": (Ranker(method="pairwise", top_k=2),),
    "majority": (Ranker(method="majority", top_k=3),),
    "critic-ranker": (Critic(), Ranker(top_k=2)),
    "critic-fuser": (Critic(), Fuser(n=2, keep_inputs=True)),
    "ranker-fuser": (Ranker(top_k=3), Fuser(top_k=2)),
    "critic-revise": (Critic(), Revise(rounds=2, keep_inputs=True)),
    "tests": (UnitTestGenerator(n=4), UnitTestEvaluator(top_k=3)),
    "tests-ranker": (UnitTestGenerator(n=4), UnitTestEvaluator(), Critic(), Ranker(top_k=2), Fuser()),
}
LAST = {
    "none": (),
    "reasoned": (Verifier(),),
    "best": (Verifier(keep="best"), Ranker()),
    "executed": (Verifier(unit_tests=5, keep="all"),),
}


def pipeline(first, middle, last, model):
    layer = Generator(model=model, **FIRST[first])
    for more in (*MIDDLE[middle], *LAST[last]):
        layer = layer >> more
    return layer


GRID = list(itertools.product(FIRST, MIDDLE, LAST))


@pytest.mark.parametrize("problem", [TEXT, CODE, MATHS, SEEN], ids=lambda problem: problem.id)
@pytest.mark.parametrize(("first", "middle", "last"), GRID)
async def test_planned_calls_are_made_calls_and_tokens_are_bounded(first, middle, last, problem, sandbox):
    model = ScriptedModel(replies())
    pipe = pipeline(first, middle, last, model)
    plan = pipe.plan(problem)
    trace = await pipe.run(problem, sandbox=sandbox)
    made = {span.layer: span.usage.calls for span in trace.spans}
    assert {row.layer: row.calls for row in plan.rows} == made
    assert plan.calls == model.calls == trace.usage.calls
    for row, span in zip(plan.rows, trace.spans, strict=True):
        assert span.usage.prompt_tokens <= row.prompt_tokens
        assert span.usage.completion_tokens <= row.completion_tokens


@pytest.mark.parametrize("problem", [TEXT, CODE, SEEN], ids=lambda problem: problem.id)
@pytest.mark.parametrize(("first", "middle", "last"), GRID)
async def test_each_prompt_stays_within_its_row_when_replies_are_as_long_as_allowed(
    first, middle, last, problem, sandbox
):
    """Replies of one-byte tokens at the limit: then the requests' own byte bounds are what a tokenizer could make."""
    short = replies()

    def longest(request, index):
        text = short(request, index)
        return Completion(text=text + " x" * ((request.max_tokens - len(text)) // 2), model="m", finish_reason="stop")

    model = ScriptedModel(longest)
    pipe = pipeline(first, middle, last, model)
    await pipe.run(problem, sandbox=sandbox)
    bound = sum(row.prompt_tokens for row in pipe.plan(problem).rows)
    assert sum(request.n * request.prompt_tokens_bound for request in model.requests) <= bound


EVALUATED = Generator(n=4) >> UnitTestGenerator(n=4) >> UnitTestEvaluator()
JUDGED_AGAIN = {
    # Two judges of a trace's tests: what the second is planned to take, of how many candidates.
    "all known": (EVALUATED, 0, 4),
    "cut": (EVALUATED >> Critic() >> Ranker(top_k=3), 0, 3),
    "a fused one beside its inputs": (EVALUATED >> Fuser(n=1, top_k=2, keep_inputs=True), 1, 3),
    "fused": (EVALUATED >> Fuser(n=2), 2, 2),
    "revised": (EVALUATED >> Revise(rounds=2), 4, 4),
    "revised beside its inputs": (EVALUATED >> Revise(rounds=2, keep_inputs=True), 8, 12),
    "by a verifier": (Generator(n=2) >> Verifier(unit_tests=4), 0, 2),
    "reasoned": (EVALUATED >> Verifier(), 0, 4),
    "tests of one branch": (EVALUATED | (Generator(n=2) >> Fuser(n=3, keep_inputs=True)), 5, 9),
    "tests of two branches": (EVALUATED | EVALUATED, 8, 8),
}


SECOND = [
    (case, second)
    for case, second in itertools.product(JUDGED_AGAIN, (Verifier(unit_tests=4), UnitTestEvaluator()))
    # An evaluator needs a generator of tests before it.
    if (case, second.kind) != ("by a verifier", "unit_test_evaluator")
]


@pytest.mark.parametrize(("case", "second"), SECOND, ids=lambda value: getattr(value, "kind", value))
async def test_what_is_judged_by_every_test_is_planned_and_judged_once(case, second):
    before, calls, most = JUDGED_AGAIN[case]
    pipe = before >> replace(second, model=ScriptedModel(replies()), label="second")
    plan = pipe.plan(TEXT)
    assert (plan.rows[-1].calls, plan.rows[-1].max_calls) == (calls, most)
    trace = await pipe.run(TEXT)
    assert trace.spans[-1].usage.calls == calls
    assert trace.usage.calls == plan.calls


async def test_what_could_not_be_judged_is_judged_again_within_the_most_calls():
    model = ScriptedModel(replies(statement_verdicts="no idea"))
    pipe = Generator(model=model, n=3) >> UnitTestGenerator(n=2) >> UnitTestEvaluator() >> Verifier(unit_tests=2)
    plan = pipe.plan(TEXT)
    trace = await pipe.run(TEXT)
    assert [span.usage.calls for span in trace.spans] == [row.max_calls for row in plan.rows] == [3, 1, 3, 3]
    assert [row.calls for row in plan.rows] == [3, 1, 3, 0]
    assert trace.usage.tokens <= plan.max_tokens


async def test_a_loop_takes_at_most_its_bound(sandbox):
    model = ScriptedModel(replies(generation="no program"))
    pipe = (Generator(model=model, n=2) >> Critic() >> Ranker(top_k=1) >> Verifier(unit_tests=3)).refine(max_rounds=3)
    plan = pipe.plan(CODE)
    trace = await pipe.run(CODE, sandbox=sandbox)
    assert plan.calls == sum(span.usage.calls for span in trace.spans if span.round == 0) == 5
    assert plan.max_calls == model.calls == 13
    bounds = {row.layer: row.prompt_tokens for row in plan.rows}
    for label, bound in bounds.items():
        assert sum(span.usage.prompt_tokens for span in trace.spans if span.layer == label) <= bound
    assert sum(r.n * r.prompt_tokens_bound for r in model.requests) <= sum(bounds.values())


async def test_side_by_side_branches_are_planned_too(sandbox):
    model = ScriptedModel(replies())
    pipe = (Generator(model=model, n=2) | Generator(model=model)) >> Critic() >> (Fuser(n=2) | Fuser()) >> Verifier()
    trace = await pipe.run(TEXT)
    assert pipe.plan(TEXT).calls == model.calls == trace.usage.calls == 3 + 1 + 3 + 6
