import asyncio
import threading
import time
from dataclasses import replace

import pytest
from pipeline_doubles import PROBLEM, Do, Judge, Make, says

from archon.budget import Budget, Ledger
from archon.errors import ConfigError, ScriptExhausted, UnknownPrice
from archon.layers import Critic, Fuser, Generator, Ranker, Verifier
from archon.models.protocol import Completion, Price
from archon.pipeline import Parallel, Pipeline, Sequence, layer
from archon.pipeline.layer import FunctionLayer
from archon.testing import ScriptedModel
from archon.types import Usage

G = Generator(model="local/a")


def labels(pipe):
    return [leaf.name for leaf in pipe.compiled().leaves]


# Labels and models.


def test_layers_are_named_by_kind_and_numbered():
    pipe = G >> (Fuser() | Fuser()) >> Critic() >> Fuser(label="last") >> Fuser()
    assert labels(pipe) == ["generator", "fuser", "fuser-2", "critic", "last", "fuser-3"]
    assert [leaf.label for leaf in pipe.leaves] == [None, None, None, None, "last", None]


def test_a_function_is_named_by_its_name_and_may_stand_twice():
    @layer
    async def tidy(trace):
        return trace

    assert isinstance(tidy, FunctionLayer)
    assert labels(G >> tidy >> Fuser() >> tidy) == ["generator", "tidy", "fuser", "tidy-2"]


def test_one_label_for_two_layers_is_refused():
    with pytest.raises(ConfigError, match="2 layers are labelled 'x': a label names one layer"):
        (Generator(model="m", label="x") >> Fuser(label="x")).compiled()
    with pytest.raises(ConfigError, match="2 layers are labelled 'fuser'"):
        (G >> Fuser() >> Fuser(label="fuser")).compiled()


@pytest.mark.parametrize("label", ["a#1", "a@1", "a\nb"])
def test_a_label_that_would_make_ids_ambiguous_is_refused(label):
    with pytest.raises(ConfigError, match="must not hold '#', '@' or a line break"):
        Generator(model="m", label=label).compiled()


def test_layers_without_a_model_take_the_first_one_that_is_named():
    pipe = Generator(model=("local/a", "local/b")) >> Critic() >> Ranker(model="local/c") >> Fuser()
    assert [leaf.model for leaf in pipe.compiled().leaves] == [("local/a", "local/b"), "local/a", "local/c", "local/a"]
    assert pipe.compiled().named_models == ("local/a", "local/b", "local/c")


def test_no_model_at_all_is_refused():
    with pytest.raises(ConfigError, match="generator has no model and there is no generator before it whose model"):
        Generator().compiled()


def test_a_compiled_pipeline_is_a_layer_that_is_named_anew():
    one, two = (G >> Fuser()).compiled("one"), (Generator(model="local/b") >> Fuser()).compiled("two")
    both = ((one | two) >> Ranker()).compiled("both")
    assert labels(both) == ["generator", "fuser", "generator-2", "fuser-2", "ranker"]
    assert [leaf.model for leaf in both.leaves] == ["local/a", "local/a", "local/b", "local/b", "local/a"]
    assert ((one | one) >> Ranker()).compiled().plan(PROBLEM).calls == 2 + 2 + 1
    assert (one >> Fuser()).compiled().root.leaves[2].model == "local/a"
    assert one.refine().compiled().named_models == ("local/a",)


def test_compiling_again_changes_at_most_the_title():
    pipe = G.compiled("one")
    assert pipe.compiled() is pipe
    assert pipe.compiled("two") == replace(pipe, title="two")
    assert Pipeline.of(G, name="one") == pipe


def test_resolving_replaces_names_and_leaves_the_source_alone():
    model, sandbox = says(), object()
    pipe = (G >> Verifier(unit_tests=2)).compiled()
    assert pipe.needs_sandbox
    resolved = pipe.resolved({"local/a": model}, sandbox)
    assert [leaf.model for leaf in resolved.leaves] == [model, model]
    assert resolved.leaves[1].sandbox is sandbox
    assert not resolved.needs_sandbox
    assert resolved.named_models == ()
    assert resolved.source == pipe.source


async def test_resolving_with_a_ledger_holds_every_run_to_it():
    ledger = Ledger(Budget(calls=3))
    pipe = (G >> Fuser()).compiled().resolved({"local/a": says()}, None, ledger=ledger)
    first, second = await pipe.run(PROBLEM), await pipe.run(PROBLEM)
    assert (first.stop, second.stop) == (None, "budget")
    assert ledger.spent.calls == 3


async def test_a_pipeline_called_as_a_layer_runs_its_models_as_they_are():
    from archon.types import Trace

    trace = await (Make(model=says(), n=2) >> Do()).compiled()(Trace(problem=PROBLEM))
    assert len(trace.candidates) == 2


# Plans.


def test_a_loops_plan_is_one_pass_and_at_most_all():
    plan = (G >> Critic() >> Fuser() >> Verifier()).refine(max_rounds=3).plan(PROBLEM)
    assert [(row.calls, row.max_calls) for row in plan.rows] == [(1, 3), (1, 3), (1, 3), (2, 6)]
    assert (plan.calls, plan.max_calls) == (5, 15)


def test_a_plan_is_a_sum_over_branches():
    plan = ((Generator(model="m", n=3) | Generator(model="m", n=2)) >> Ranker(method="pairwise") >> Fuser()).plan(
        PROBLEM
    )
    assert [row.calls for row in plan.rows] == [3, 2, 5 * 4, 1]


async def test_planned_calls_are_made_in_branches_and_loops():
    def pipe(model):
        left = Make(label="l", model=model, n=4) >> Do(label="top", does=lambda t: t.advance(t.candidates[:2]), keeps=2)
        right = Make(label="r", model=model, n=3)
        return ((left | right) >> Judge(label="j", outcomes=(False,))).refine(max_rounds=3)

    model = says()
    plan = pipe(model).plan(PROBLEM)
    trace = await pipe(model).run(PROBLEM)
    made = {row.layer: 0 for row in plan.rows}
    for span in trace.spans:
        made[span.layer] += span.usage.calls
    assert made == {row.layer: row.max_calls for row in plan.rows}
    assert trace.usage.tokens <= plan.max_tokens


# Budgets.


@pytest.mark.parametrize("limit", range(0, 26, 5))
async def test_a_budget_of_calls_is_kept_by_branches_that_run_at_once(limit):
    model = ScriptedModel(lambda request, i: "42", latency_s=0.001)
    branches = tuple(Generator(model=model, n=1, label=f"g{i}") for i in range(20))
    trace = await (Parallel(layers=branches) >> Ranker() >> Verifier()).run(PROBLEM, budget=Budget(calls=limit))
    assert model.calls <= limit
    assert trace.usage.calls == model.calls
    assert trace.stop == "budget"
    assert len(trace.usable) == min(limit, 20)
    assert (trace.answer is None) == (limit == 0)


async def test_a_shared_ledger_holds_several_runs_at_once():
    model = ScriptedModel(lambda request, i: "42", latency_s=0.001)
    ledger = Ledger(Budget(calls=30))
    pipe = (Generator(model=model, n=4) >> Fuser()).compiled()
    traces = await asyncio.gather(*(pipe.run(PROBLEM, budget=ledger) for _ in range(10)))
    assert model.calls == ledger.spent.calls <= 30
    assert any(trace.stop == "budget" for trace in traces)
    assert any(trace.stop is None for trace in traces)


async def test_tokens_stay_within_a_budget_that_only_part_of_a_pipeline_fits():
    model = says("one two three four", price=Price(prompt_usd=1.0, completion_usd=2.0))
    pipe = Generator(model=model, n=4, max_tokens=50) >> Critic(max_tokens=50) >> Fuser(max_tokens=50)
    full = pipe.plan(PROBLEM).max_tokens
    for tokens in range(0, full, 300):
        trace = await pipe.run(PROBLEM, budget=Budget(tokens=tokens))
        assert trace.usage.tokens <= tokens
    for usd in (0.0, 0.0005, 0.001, 0.005):
        trace = await pipe.run(PROBLEM, budget=Budget(usd=usd))
        assert trace.usage.cost_usd <= usd
    assert (await pipe.run(PROBLEM, budget=Budget(tokens=full))).stop is None


async def test_a_dollar_budget_needs_a_price():
    with pytest.raises(UnknownPrice, match="has no known price"):
        await Generator(model=says(price=None)).run(PROBLEM, budget=Budget(usd=1.0))


async def test_a_deadline_cuts_a_call_off_and_gives_what_there_is():
    quick, slow = says("42"), says("43", latency_s=30.0)
    start = time.monotonic()
    trace = await (Generator(model=quick) >> Fuser(model=slow)).run(PROBLEM, budget=Budget(seconds=0.1))
    assert time.monotonic() - start < 5
    assert trace.stop == "budget"
    assert trace.answer.text == "42"


async def test_one_call_too_many_is_loud():
    with pytest.raises(ScriptExhausted):
        await (Generator(model=ScriptedModel(["42"])) >> Fuser()).run(PROBLEM)


# What a pipeline takes: seconds on the longest chain, and waiting apart.


async def test_the_critical_path_is_the_longest_chain_and_not_the_sum():
    model = says("[1]", latency_s=0.01)
    pipe = Generator(model=model, n=3) >> Ranker(method="pairwise") >> Fuser()
    trace = await pipe.run(PROBLEM)
    assert trace.usage.calls == 3 + 6 + 1
    assert trace.usage.critical_s == pytest.approx(0.03)


async def test_four_calls_side_by_side_take_the_time_of_one():
    model = says("42", latency_s=0.2)
    four = Parallel(layers=tuple(Generator(model=model, label=f"g{i}") for i in range(4)))
    fusers = [Parallel(layers=tuple(Fuser(model=model, label=f"{name}{i}") for i in range(4))) for name in "ab"]
    start = time.monotonic()
    trace = await (four >> fusers[0] >> fusers[1]).run(PROBLEM)
    assert trace.usage.calls == 12
    assert trace.usage.critical_s == pytest.approx(0.6)
    assert 0.6 <= time.monotonic() - start < 12 * 0.2
    assert model.most_in_flight == 4


async def test_a_longer_branch_that_starts_later_is_on_the_critical_path():
    left = Make(label="a", model=says(), seconds=2.0) >> Do(label="b", seconds=3.0)
    right = Make(label="c", model=says(), seconds=4.0)
    trace = await ((left | right) >> Do(label="d", seconds=1.0)).refine(max_rounds=1).run(PROBLEM)
    assert trace.usage.critical_s == 6.0
    looped = await ((left | right) >> Judge(label="j", seconds=1.0)).refine(max_rounds=3).run(PROBLEM)
    assert looped.usage.critical_s == 18.0


async def test_waiting_for_rate_limits_is_booked_apart():
    def reply(request, index):
        return Completion(text="42", model="m", usage=Usage(calls=1, critical_s=2.0, wait_s=7.0, attempts=3))

    trace = await (Generator(model=ScriptedModel(reply), n=4) >> Fuser()).run(PROBLEM)
    assert trace.usage.critical_s == 4.0
    assert trace.usage.wait_s == 35.0
    assert trace.usage.attempts == 15


# From synchronous code. Peers hang or raise when they are run twice, from a thread, or inside a running loop.


def solved(trace):
    return trace.answer.text == "42"


def in_time(work):
    start = time.monotonic()
    result = work()
    assert time.monotonic() - start < 5
    return result


def test_running_twice_in_one_process():
    pipe = Generator(model=says(), n=2) >> Fuser()
    assert in_time(lambda: solved(pipe.run_sync(PROBLEM)) and solved(pipe.run_sync(PROBLEM)))


async def test_running_inside_a_running_loop():
    pipe = Generator(model=says(), n=2) >> Fuser()
    assert in_time(lambda: solved(pipe.run_sync(PROBLEM)))
    assert solved(await pipe.run(PROBLEM))


def test_running_from_many_threads_at_once():
    pipe = (Generator(model=says(latency_s=0.01), n=2) >> Fuser()).compiled()
    results = []
    threads = [threading.Thread(target=lambda: results.append(pipe.run_sync(PROBLEM))) for _ in range(16)]

    def work():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)

    in_time(work)
    assert len(results) == 16
    assert all(map(solved, results))


def test_running_in_one_loop_after_another():
    pipe = Generator(model=says(), n=2) >> Fuser()
    for _ in range(3):
        assert solved(in_time(lambda: asyncio.run(pipe.run(PROBLEM))))


def test_an_error_comes_out_of_run_sync():
    with pytest.raises(ScriptExhausted):
        Generator(model=ScriptedModel([])).run_sync(PROBLEM)
    with pytest.raises(ConfigError, match="generator has no model"):
        Generator().run_sync(PROBLEM)


async def test_the_same_seed_asks_for_the_same_samples():
    def seeds(model):
        return [request.seed for request in model.requests]

    one, two, other = says(), says(), says()
    for model, seed in ((one, 1), (two, 1), (other, 2)):
        await (Generator(model=model, n=2, temperature=(0.1, 0.9)) >> Fuser()).run(PROBLEM, seed=seed)
    assert seeds(one) == seeds(two) != seeds(other)
    assert len(set(seeds(one))) == 3


def test_a_sequence_of_pipelines_runs_as_one():
    inner = Sequence(layers=(Generator(model=says(), n=2),)).compiled()
    assert solved((inner >> Fuser()).run_sync(PROBLEM))
