from __future__ import annotations

from math import comb

import pytest
from report_runs import info, made_run, record, usage

from archon.errors import RunError
from archon.report.compare import compare, mcnemar
from archon.report.records import LayerUse, Run
from archon.types import Usage


def run(outcomes: dict[str, bool | None], system: str, **changes) -> Run:
    return Run(
        info=info(system), records=tuple(record(key, correct, system, **changes) for key, correct in outcomes.items())
    )


def test_mcnemar_by_hand():
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(0, 5) == pytest.approx(2 / 32)
    assert mcnemar(2, 8) == pytest.approx(2 * (1 + 10 + comb(10, 2)) / 1024)
    assert mcnemar(8, 2) == mcnemar(2, 8)
    assert 0 < mcnemar(0, 5000) < 1e-300 or mcnemar(0, 5000) == 0.0


def test_a_comparison_by_hand():
    first = run({"a": True, "b": False, "c": False, "d": None, "e": True, "x": True}, "one")
    second = run({"a": True, "b": True, "c": True, "d": True, "e": False, "y": False, "z": True}, "two")
    seen = compare(first, second)
    assert (seen.shared, seen.only_first, seen.only_second, seen.not_judged) == (5, 1, 2, 1)
    assert (seen.both_right, seen.only_first_right, seen.only_second_right, seen.both_wrong) == (1, 1, 2, 0)
    assert (seen.first_accuracy, seen.second_accuracy) == (0.5, 0.75)
    assert seen.accuracy.estimate is not None
    assert seen.accuracy.estimate.value == pytest.approx(0.25)
    assert seen.accuracy.estimate.interval.low < 0 < seen.accuracy.estimate.interval.high
    assert seen.accuracy.unknown == 1
    assert seen.p_value == 1.0


def test_what_it_took_is_paired_and_unknowns_are_counted():
    first = run({"a": True, "b": True}, "one", usage=usage(1, 100, 100, 0.01, 1.0))
    records = (
        record("a", True, "two", usage=usage(3, 300, 300, None, 2.5)),
        record("b", True, "two", usage=usage(3, 100, 300, 0.04, 1.5)),
    )
    seen = compare(first, Run(info=info("two", parameters=()), records=records))
    assert seen.tokens.estimate is not None
    assert seen.tokens.estimate.value == 300
    assert seen.critical_s.estimate is not None
    assert seen.critical_s.estimate.value == pytest.approx(1.0)
    assert seen.usd.estimate is not None
    assert seen.usd.estimate.value == pytest.approx(0.03)
    assert seen.usd.unknown == 1
    assert seen.flops.estimate is None
    assert seen.flops.unknown == 2


def test_flops_are_two_per_weight_and_token():
    def spent(used: Usage) -> dict[str, object]:
        return {"usage": used, "layers": (LayerUse(layer="generator", kind="generator", usage=used),)}

    first = run({"a": True}, "small", **spent(usage(1, 100, 200)))
    second = run({"a": True}, "large", **spent(usage(1, 100, 100)))
    large = Run(info=info("large", parameters=(("generator", 10),)), records=second.records)
    small = Run(info=info("small", parameters=(("generator", 5),)), records=first.records)
    seen = compare(small, large).flops.estimate
    assert seen is not None
    assert seen.value == 2 * 10 * 200 - 2 * 5 * 300


def test_nothing_judged_is_not_zero():
    seen = compare(run({"a": None}, "one"), run({"a": True}, "two"))
    assert seen.first_accuracy is None
    assert seen.accuracy.estimate is None
    assert seen.p_value == 1.0


def test_runs_without_a_shared_problem_are_refused():
    with pytest.raises(RunError, match="no problem is in both runs"):
        compare(run({"a": True}, "one"), run({"b": True}, "two"))


def test_a_problem_recorded_twice_is_refused():
    twice = Run(info=info("one"), records=(record("a", True, "one"), record("a", False, "one")))
    with pytest.raises(RunError, match="problem 'a' of 'humaneval' is recorded twice"):
        compare(twice, run({"a": True}, "two"))


def test_a_record_of_another_system_is_refused():
    mixed = Run(info=info("one"), records=(record("a", True, "other"),))
    with pytest.raises(RunError, match="holds a record of 'other'"):
        compare(mixed, run({"a": True}, "two"))


def test_a_run_against_itself_is_no_difference():
    same = made_run()
    seen = compare(same, same)
    assert seen.accuracy.estimate is not None
    assert (seen.accuracy.estimate.value, seen.p_value) == (0.0, 1.0)
