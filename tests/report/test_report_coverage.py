from __future__ import annotations

import pytest

from archon.report.coverage import coverage


def test_a_curve_by_hand():
    curve = coverage([4, 4], [1, 0])
    assert curve.ks == (1, 2, 3, 4)
    assert curve.mean == pytest.approx((0.125, 0.25, 0.375, 0.5))
    assert curve.undefined == (0, 0, 0, 0)
    assert all(low <= mean <= high for low, mean, high in zip(curve.low, curve.mean, curve.high, strict=True))


def test_problems_with_too_few_samples_are_left_out_and_counted():
    curve = coverage([2, 4, 0], [2, 1, 0])
    assert curve.problems == (2, 2, 1, 1)
    assert curve.undefined == (1, 1, 2, 2)
    assert curve.mean[2] == pytest.approx(0.75)  # the second problem's alone


def test_ks_above_every_n_are_not_on_the_curve():
    curve = coverage([3], [1], ks=[1, 3, 4])
    assert curve.ks == (1, 3)
    with pytest.raises(ValueError, match=r"k=4 is not on the curve 'coverage': it has k from 1 to 3"):
        curve.at(4)


def test_no_samples_no_curve():
    assert coverage([0, 0], [0, 0]).ks == ()


def test_thin_keeps_only_the_wanted_ks():
    curve = coverage([5, 5], [1, 2]).thin([1, 5, 9])
    assert curve.ks == (1, 5)
    assert curve.mean[1] == 1.0


def test_published_curves_of_ten_thousand_samples(read_data):
    rows = read_data("09_llm_monkeys_math_pythia_counts.jsonl.gz")
    curves = read_data("09_llm_monkeys_math_pythia_curves.jsonl")
    for published in curves:
        own = [row for row in rows if row["model"] == published["model"]]
        seen = coverage([row["n"] for row in own], [row["c"] for row in own], published["k"], resamples=50)
        assert len(own) == published["n_problems"]
        assert seen.mean == pytest.approx(published["mean_pass_at_k"], abs=1e-12)


def test_intervals_of_a_real_curve_hold_the_mean_and_narrow_with_more_problems(read_data):
    rows = read_data("09_codet_humaneval_codegen16b_counts.jsonl")
    n, c = [row["n"] for row in rows], [row["c"] for row in rows]
    whole, few = coverage(n, c, [10]).at(10), coverage(n[:20], c[:20], [10]).at(10)
    assert whole.interval.low < whole.value < whole.interval.high
    assert whole.interval.high - whole.interval.low < few.interval.high - few.interval.low
