from dataclasses import replace

import pytest
from layers_doubles import prompt_of, trace_of

from archon.budget import Budget, Ledger
from archon.errors import ConfigError, ModelUnavailable
from archon.layers.ranker import Ranker, ranked, votes
from archon.models.metered import Metered
from archon.models.protocol import Completion
from archon.testing import ScriptedModel
from archon.types import Candidate, Verdict


def texts(trace):
    return [c.text for c in trace.candidates]


def with_outcomes(candidate, *outcomes, score=None):
    return replace(candidate, verdicts=(Verdict(passed=None, by="e", tests=outcomes, score=score),))


async def test_listwise_orders_scores_and_cuts():
    after = await Ranker(model=ScriptedModel(["[3] > [1] > [2]"]), top_k=2)(trace_of("a", "b", "c"))
    assert texts(after) == ["c", "a"]
    assert [c.score for c in after.candidates] == pytest.approx([1.0, 2 / 3])
    assert [c.text for c in after.retired] == ["b"]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("I like them all", "failed"),
        (ModelUnavailable("down"), "call_failed"),
        (Completion(text="[3] > [1]", model="m", finish_reason="length"), "truncated"),
    ],
)
async def test_without_an_opinion_the_incoming_order_stays_visibly(reply, status):
    after = await Ranker(model=ScriptedModel([reply]))(trace_of("a", "b", "c"))
    assert texts(after) == ["a", "b", "c"]
    assert [c.score for c in after.candidates] == [None] * 3
    assert after.spans[0].parses == ((status, 1),)


async def test_pairwise_asks_each_pair_in_both_orders_and_cancels_position_bias():
    biased = ScriptedModel(["[1]"] * 6)
    after = await Ranker(model=biased, method="pairwise")(trace_of("a", "b", "c"))
    assert biased.calls == 6
    assert texts(after) == ["a", "b", "c"]
    assert [c.score for c in after.candidates] == [0.5] * 3


@pytest.mark.parametrize("scores", ["copeland", "bradley_terry"])
async def test_pairwise_finds_the_best(scores):
    def judge(request, _):
        return "[1]" if prompt_of(request).index("good") < prompt_of(request).index("candidate 2") else "[2]"

    def fair(request, index):
        return judge(request, index) if "good" in prompt_of(request) else "[tie]"

    model = ScriptedModel(fair, latency_s=0.01)
    after = await Ranker(model=model, method="pairwise", scores=scores)(trace_of("a", "good", "c"))
    assert texts(after) == ["good", "a", "c"]
    assert model.most_in_flight == 6
    assert after.usage.critical_s == pytest.approx(0.01)
    if scores == "copeland":
        assert [c.score for c in after.candidates] == [1.0, 0.25, 0.25]


async def test_pairwise_with_a_lost_judge_leaves_that_pair_out():
    def judge(request, _):
        shown = prompt_of(request)
        if "aa" in shown and "bb" in shown:
            return ModelUnavailable("down")
        return "[1]" if shown.index("cc") < shown.index("candidate 2") else "[2]"

    after = await Ranker(model=ScriptedModel(judge), method="pairwise")(trace_of("aa", "bb", "cc"))
    assert texts(after) == ["cc", "aa", "bb"]
    assert after.spans[0].parses == (("ok", 4), ("call_failed", 2))


async def test_one_candidate_takes_no_call():
    for method in ("listwise", "pairwise"):
        after = await Ranker(model=ScriptedModel([]), method=method)(trace_of("a"))
        assert after.usage.calls == 0


async def test_executed_tests_outrank_the_opinion():
    trace = trace_of("a", "b", "c")
    a, b, c = trace.candidates
    trace = replace(
        trace, candidates=(with_outcomes(a, True, False), with_outcomes(b, True, True), with_outcomes(c, True, False))
    )
    after = await Ranker(model=ScriptedModel(["[3] > [1] > [2]"]))(trace)
    assert texts(after) == ["b", "c", "a"]
    assert [one.score for one in after.candidates] == pytest.approx([1.0, 2 / 3, 1 / 3])
    plain = await Ranker(model=ScriptedModel(["[3] > [1] > [2]"]), use_tests=False)(trace)
    assert texts(plain) == ["c", "a", "b"]


def test_one_not_judged_takes_the_mean_of_the_others():
    a, b, c = trace_of("a", "b", "c").candidates
    ordered = ranked(
        (with_outcomes(a, score=None), with_outcomes(b, False, score=0.2), with_outcomes(c, True, score=0.8)),
        None,
        tests=True,
    )
    assert [one.text for one in ordered] == ["c", "a", "b"]


async def test_critiques_and_tests_are_shown_only_when_asked_for():
    trace = trace_of("a", "b")
    trace = replace(
        trace,
        candidates=tuple(with_outcomes(replace(c, critique="sloppy"), True, None, False) for c in trace.candidates),
    )
    for flag in (True, False):
        model = ScriptedModel(["[1] > [2]"])
        await Ranker(model=model, use_critiques=flag, use_tests=flag)(trace)
        assert ("sloppy" in prompt_of(model.requests[0])) is flag
        assert ("passes 1 of 2 tests" in prompt_of(model.requests[0])) is flag


async def test_majority_counts_final_answers_without_calls():
    answers = ["The answer is \\boxed{4}", "\\boxed{5}", "So \\boxed{5}", "no idea"]
    after = await Ranker(model=ScriptedModel([]), method="majority")(trace_of(*answers))
    assert texts(after)[:2] == ["\\boxed{5}", "So \\boxed{5}"]
    assert after.candidates[0].score == 0.5
    assert after.usage.calls == 0
    assert votes(trace_of("none", "here").candidates) is None


async def test_lost_candidates_go_last_and_never_fill_top_k():
    trace = trace_of("a", "b")
    trace = trace.advance((Candidate(id="x", text="", error="down"), *trace.candidates))
    after = await Ranker(model=ScriptedModel(["[2] > [1]"]))(trace)
    assert [c.id for c in after.candidates] == ["generator#1", "generator#0", "x"]
    cut = await Ranker(model=ScriptedModel(["[2] > [1]"]), top_k=3)(trace)
    assert [c.error for c in cut.candidates] == [None, None]


async def test_budget_stop_keeps_the_order():
    for method in ("listwise", "pairwise"):
        model = Metered(ScriptedModel([]), Ledger(Budget(calls=0)))
        after = await Ranker(model=model, method=method, top_k=1)(trace_of("a", "b"))
        assert (after.stop, texts(after)) == ("budget", ["a"])


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="ranker method='listwize': did you mean 'listwise'"):
        Ranker(method="listwize")
    with pytest.raises(ConfigError, match="ranker top_k=0"):
        Ranker(top_k=0)
    with pytest.raises(ConfigError, match="ranker scores='elo'"):
        Ranker(scores="elo")
