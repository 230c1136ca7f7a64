import asyncio
from dataclasses import replace

import pytest
from pipeline_doubles import PROBLEM, Do, Evaluate, Judge, Make, Write, says

from archon.budget import Budget, Ledger
from archon.errors import ConfigError, ModelRefused
from archon.pipeline import Parallel, Refine, Sequence, layer
from archon.pipeline.compose import gather
from archon.testing import ScriptedModel
from archon.types import Candidate, Span, Trace, Usage

A, B, C = Make(label="a"), Make(label="b"), Make(label="c")


def test_operators_flatten_so_that_brackets_do_not_matter():
    assert ((A >> B) >> C) == A >> (B >> C) == Sequence(layers=(A, B, C))
    assert ((A | B) | C) == A | (B | C) == Parallel(layers=(A, B, C))
    assert Parallel(layers=(Sequence(layers=(A, B)), C)) == (A >> B) | C
    assert Sequence(layers=(A, Parallel(layers=(B, C)))) == A >> (B | C)
    assert (A >> B).refine(max_rounds=3) == Refine(body=Sequence(layers=(A, B)), max_rounds=3)


async def test_brackets_do_not_matter_to_what_a_pipeline_does():
    def parts():
        return [Make(label=label, model=says(label), n=2, seconds=s) for label, s in (("a", 1), ("b", 3), ("c", 2))]

    a, b, c = parts()
    d = Do(label="d", seconds=1)
    traces = [
        await pipe.run(PROBLEM)
        for pipe in (
            ((a | b) | c) >> d,
            Sequence(layers=(Parallel(layers=(a, Parallel(layers=(b, c)))), Sequence(layers=(d,)))),
        )
    ]
    assert traces[0] == traces[1]
    assert traces[0].usage.critical_s == 3 + 1


@pytest.mark.parametrize("kind", [Sequence, Parallel])
def test_a_composite_of_nothing_is_refused(kind):
    with pytest.raises(ConfigError, match=f"{kind.__name__} of no layers: must hold at least one"):
        kind(layers=())


def test_running_changes_nothing_in_the_layers():
    model = says()
    pipe = (Make(model=model) >> Do()).refine()
    pipe.run_sync(PROBLEM)
    assert model.calls == 2
    assert pipe == (Make(model=model) >> Do()).refine()


# Side by side.


async def test_branches_start_from_the_same_trace_and_their_work_is_put_together():
    slow, quick = says("slow"), says("quick")
    left = Make(label="left", model=slow, n=2, seconds=5.0) >> Do(label="sort", seconds=1.0)
    right = Make(label="right", model=quick, n=1, seconds=4.0)
    trace = await (left | right).run(PROBLEM)
    assert [c.id for c in trace.candidates] == ["left#0", "left#1", "right#0"]
    assert [span.layer for span in trace.spans] == ["left", "sort", "right"]
    assert trace.usage.calls == 2 + 1 + 1
    assert trace.usage.critical_s == 6.0


async def test_branches_run_at_the_same_time():
    model = says(latency_s=0.05)
    pipe = Parallel(layers=tuple(Make(label=f"m{i}", model=model) for i in range(20)))
    await pipe.run(PROBLEM)
    assert model.most_in_flight == 20


async def test_candidates_that_branches_share_are_joined_once():
    start = Trace(problem=PROBLEM, candidates=(Candidate(id="x#0", text="x"), Candidate(id="y#0", text="y")))
    keep_last = Do(label="r", does=lambda trace: trace.advance(trace.candidates[1:]))
    joined = await Parallel(layers=(keep_last, Make(label="m", model=says())))(start)
    assert [c.id for c in joined.candidates] == ["y#0", "m#0"]
    # One branch retired what the other kept: it is live, and so not retired.
    assert [c.id for c in joined.retired] == ["x#0"]
    joined = await Parallel(layers=(keep_last, Do(label="s")))(start)
    assert [c.id for c in joined.candidates] == ["y#0", "x#0"]
    assert joined.retired == ()
    assert [c.id for c in joined.everyone] == ["y#0", "x#0"]


async def test_test_outcomes_keep_their_places_when_branches_write_tests_of_their_own():
    def branch(label, n):
        make = Make(label=label, model=says())
        return make >> Write(label=f"{label}-tests", n=n) >> Evaluate(label=f"{label}-evaluate")

    trace = await (branch("a", 2) | branch("b", 3)).run(PROBLEM)
    assert [test.text for test in trace.tests] == ["a-tests 0", "a-tests 1", "b-tests 0", "b-tests 1", "b-tests 2"]
    a, b = trace.candidates
    assert a.verdicts[0].tests == (True, False)
    assert b.verdicts[0].tests == (None, None, True, False, False)


def stopping(label, stop):
    return Do(label=label, does=lambda trace: replace(trace, stop=stop, stop_reason=f"{label} says so"))


@pytest.mark.parametrize(
    ("stops", "stop", "reason"),
    [
        ((None, None), None, ""),
        (("abstained", None), None, ""),
        (("abstained", "abstained"), "abstained", "s0 says so"),
        ((None, "budget"), "budget", "s1 says so"),
        (("abstained", "budget"), "budget", "s1 says so"),
    ],
)
async def test_how_stops_of_branches_join(stops, stop, reason):
    branches = [stopping(f"s{i}", s) if s else Do(label=f"s{i}") for i, s in enumerate(stops)]
    trace = await Parallel(layers=tuple(branches))(Trace(problem=PROBLEM))
    assert (trace.stop, trace.stop_reason) == (stop, reason)


async def test_a_stop_skips_what_is_left():
    pipe = Make(label="m", model=says()) >> stopping("s", "abstained") >> Do(label="never")
    trace = await pipe.run(PROBLEM)
    assert [span.layer for span in trace.spans] == ["m", "s"]
    assert trace.answer is None


async def test_an_error_in_one_branch_cancels_the_others():
    slow = says(latency_s=30.0)
    broken = ScriptedModel([ModelRefused("no such model")])
    pipe = Make(label="slow", model=slow) | Make(label="broken", model=broken)
    ledger = Ledger(Budget(calls=10))
    with pytest.raises(ModelRefused, match="no such model"):
        await asyncio.wait_for(pipe.run(PROBLEM, budget=ledger), 5)
    assert slow.in_flight == 0
    assert len(asyncio.all_tasks()) == 1


async def test_gather_leaves_no_task_behind_when_it_is_cancelled():
    ended = []

    async def work(i):
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(i)

    task = asyncio.ensure_future(gather([work(i) for i in range(3)]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == [0, 1, 2]
    assert await gather([]) == []


# Again.


def loop(outcomes, rounds, scores=(0.0,), model=None, n=1):
    make = Make(label="m", model=model or says(), n=n)
    return (make >> Judge(label="j", outcomes=outcomes, scores=scores)).refine(max_rounds=rounds)


@pytest.mark.parametrize(
    ("outcomes", "rounds", "made"),
    [
        ((True,), 3, 1),
        ((False, True), 3, 2),
        ((False,), 3, 3),
        ((None,), 3, 3),
        ((None, None, True), 5, 3),
        ((False,), 1, 1),
    ],
)
async def test_a_loop_ends_when_verified_and_at_its_last_round(outcomes, rounds, made):
    model = says()
    trace = await loop(outcomes, rounds, model=model).run(PROBLEM)
    assert model.calls == made
    assert trace.round == made - 1
    assert [span.round for span in trace.spans if span.layer == "m"] == list(range(made))


async def test_the_best_of_all_rounds_comes_first_and_each_is_there_once():
    trace = await loop((False, None, False), 3, scores=(0.9, 0.1, 0.95)).run(PROBLEM)
    assert [(c.id, c.passed) for c in trace.candidates] == [("m@1#0", None), ("m@2#0", False), ("m#0", False)]
    assert trace.retired == ()
    trace = await loop((False, True), 2, scores=(0.9, 0.1)).run(PROBLEM)
    assert [c.id for c in trace.candidates] == ["m@1#0", "m#0"]
    assert trace.answer.passed is True


async def test_equals_keep_the_newest_round_first():
    trace = await loop((None,), 3).run(PROBLEM)
    assert [c.id for c in trace.candidates] == ["m@2#0", "m@1#0", "m#0"]


async def test_a_loop_goes_on_after_an_abstention_and_not_after_the_budget():
    for stop, made in (("abstained", 3), ("budget", 1)):
        model = says()
        body = Make(label="m", model=model) >> stopping("s", stop) >> Judge(label="never", outcomes=(True,))
        trace = await body.refine(max_rounds=3).run(PROBLEM)
        assert (model.calls, trace.stop) == (made, stop)
        assert "never" not in {span.layer for span in trace.spans}


async def test_a_loop_in_a_branch_inside_a_loop_gives_no_name_twice():
    inner = loop((False,), 2)
    other = Make(label="other", model=says())
    outer = ((inner | other) >> Judge(label="last", outcomes=(False,))).refine(max_rounds=3)
    trace = await outer.run(PROBLEM)
    made = [span for span in trace.spans if span.kind == "generator"]
    names = [candidate.id for candidate in trace.everyone]
    assert len(made) == len(set(names)) == 3 * (2 + 1)


@pytest.mark.parametrize("rounds", [0, -1, 1.5, "2"])
def test_rounds_that_cannot_be(rounds):
    with pytest.raises(ConfigError, match="must be a whole number of at least 1"):
        A.refine(max_rounds=rounds)


def test_until_says_verified():
    with pytest.raises(ConfigError, match="refine until='right': valid: 'verified'"):
        A.refine(until="right")


async def test_a_plain_function_is_a_layer():
    @layer
    async def reverse(trace):
        return replace(trace, candidates=trace.candidates[::-1]).spend(
            Span(layer="reverse", kind="function", usage=Usage())
        )

    pipe = Make(label="m", model=says(), n=3) >> reverse
    trace = await pipe.run(PROBLEM)
    assert [c.id for c in trace.candidates] == ["m#2", "m#1", "m#0"]
    assert [(row.layer, row.calls) for row in pipe.plan(PROBLEM).rows] == [("m", 3), ("reverse", 0)]
