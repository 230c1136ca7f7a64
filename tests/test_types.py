import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archon.types import Candidate, Image, Message, Problem, Span, Trace, UnitTest, Usage, Verdict, beside, text_of

# Whole numbers as seconds and dollars, so that sums are exact whatever their order.
counts = st.integers(0, 10**9)
maybe = st.none() | counts
usages = st.builds(
    Usage,
    calls=counts,
    prompt_tokens=maybe,
    completion_tokens=maybe,
    reasoning_tokens=maybe,
    cached_prompt_tokens=maybe,
    cost_usd=maybe,
    critical_s=counts,
    wait_s=counts,
    attempts=counts,
    saved_calls=counts,
    saved_tokens=maybe,
    saved_usd=maybe,
)
NOTHING = Usage()
# A busy machine may take longer over one example than over a hundred.
unhurried = settings(deadline=None)


@unhurried
@given(usages, usages, usages)
def test_both_operations_are_associative_and_have_the_same_identity(a, b, c):
    assert (a + b) + c == a + (b + c)
    assert (a | b) | c == a | (b | c)
    assert a + NOTHING == NOTHING + a == a | NOTHING == NOTHING | a == a


@unhurried
@given(usages, usages)
def test_side_by_side_takes_the_same_work_in_the_longer_time(a, b):
    assert a | b == b | a
    assert a + b == b + a
    assert dataclasses.replace(a + b, critical_s=0) == dataclasses.replace(a | b, critical_s=0)
    assert (a | b).critical_s == max(a.critical_s, b.critical_s) <= (a + b).critical_s == a.critical_s + b.critical_s


@unhurried
@given(st.lists(usages, max_size=5))
def test_beside_is_the_sum_side_by_side(works):
    total = beside(works)
    assert total.calls == sum(work.calls for work in works)
    assert total.critical_s == max((work.critical_s for work in works), default=0)


@unhurried
@given(usages, usages)
def test_what_is_not_known_stays_unknown(a, b):
    for name in ("prompt_tokens", "completion_tokens", "cost_usd", "saved_tokens", "saved_usd"):
        unknown = getattr(a, name) is None or getattr(b, name) is None
        assert (getattr(a + b, name) is None) == (getattr(a | b, name) is None) == unknown


def test_every_field_of_usage_is_combined():
    one = Usage(**{field.name: 1 for field in dataclasses.fields(Usage)})
    assert one + one == Usage(**{field.name: 2 for field in dataclasses.fields(Usage)})


def test_paid_is_without_what_a_cache_answered():
    usage = Usage(
        calls=5, prompt_tokens=70, completion_tokens=30, cost_usd=1.0, saved_calls=2, saved_tokens=40, saved_usd=0.25
    )
    assert (usage.tokens, usage.paid_calls, usage.paid_tokens, usage.paid_usd) == (100, 3, 60, 0.75)
    assert Usage(prompt_tokens=None).tokens is None
    assert Usage(prompt_tokens=None).paid_tokens is None
    assert Usage(saved_tokens=None).paid_tokens is None
    assert Usage(cost_usd=None).paid_usd is None


def test_text_of_content():
    assert text_of("a") == "a"
    assert text_of(("a", Image(url="http://x/y.png"), "b")) == "a\nb"
    assert Problem(id="p", prompt=(Image(url="data:,"),)).text == ""


def test_values_are_frozen_and_hashable():
    trace = Trace(problem=Problem(id="p", prompt="q", history=(Message(role="user", content="x"),)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        trace.round = 1
    assert hash(trace) == hash(dataclasses.replace(trace))


def candidate(name, **more):
    return Candidate(id=name, text=name, **more)


def judged(*outcomes):
    return candidate("c", verdicts=tuple(Verdict(passed=outcome, by="v") for outcome in outcomes))


@pytest.mark.parametrize(
    ("outcomes", "passed"),
    [
        ((), None),
        ((None,), None),
        ((True,), True),
        ((True, False), False),
        ((False, None), False),
        ((None, True), True),
    ],
)
def test_a_candidate_stands_as_its_newest_judged_verdict_says(outcomes, passed):
    assert judged(*outcomes).passed is passed


PROBLEM = Problem(id="p", prompt="q")


def test_the_answer_is_the_first_candidate_whose_call_did_not_fail():
    lost, good, other = candidate("a", error="down"), candidate("b"), candidate("c")
    trace = Trace(problem=PROBLEM, candidates=(lost, good, other))
    assert trace.answer == good
    assert trace.usable == (good, other)
    assert dataclasses.replace(trace, stop="budget").answer == good
    assert dataclasses.replace(trace, stop="abstained").answer is None
    assert Trace(problem=PROBLEM, candidates=(lost,)).answer is None


def test_names_are_unique_over_rounds():
    first, second = Trace(problem=PROBLEM), Trace(problem=PROBLEM, round=2)
    assert (first.name("generator", 3), second.name("generator", 3)) == ("generator#3", "generator@2#3")


def test_spending_records_the_span_with_its_round_and_adds_in_sequence():
    usage = Usage(calls=1, critical_s=2.0)
    trace = Trace(problem=PROBLEM, round=1).spend(Span(layer="a", kind="k", usage=usage))
    trace = trace.spend(Span(layer="b", kind="k", usage=usage, notes=("n",)))
    assert [(span.layer, span.round, span.notes) for span in trace.spans] == [("a", 1, ()), ("b", 1, ("n",))]
    assert trace.usage == Usage(calls=2, critical_s=4.0)


def test_advancing_retires_those_that_are_no_longer_live():
    a, b, c = candidate("a"), candidate("b"), candidate("c")
    trace = Trace(problem=PROBLEM, candidates=(a, b)).advance((dataclasses.replace(b, critique="x"), c))
    assert [each.id for each in trace.candidates] == ["b", "c"]
    assert trace.retired == (a,)
    assert trace.candidates[0].critique == "x"
    trace = trace.advance((a,))
    assert [each.id for each in trace.everyone] == ["b", "c", "a"]
    assert Trace(problem=PROBLEM).advance(()) == Trace(problem=PROBLEM)


def test_a_unit_test_is_a_sentence_until_it_names_a_function():
    assert UnitTest(text="It rhymes.", source="model").function is None
