from __future__ import annotations

import numpy as np
import pytest

from archon.report.intervals import bootstrap_columns, bootstrap_mean, resample_weights, wilson


def test_wilson_by_hand():
    seen = wilson(8, 10)  # 0.8 of 10: the textbook interval
    assert (round(seen.low, 4), round(seen.high, 4)) == (0.4902, 0.9433)


def test_wilson_has_width_where_nothing_or_everything_is_solved():
    assert wilson(0, 40).low == 0.0
    assert 0.05 < wilson(0, 40).high < 0.12
    assert wilson(40, 40).high == 1.0
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)


@pytest.mark.parametrize(("solved", "judged"), [(3, 2), (-1, 2)])
def test_wilson_refuses_impossible_counts(solved, judged):
    with pytest.raises(ValueError, match="between 0 and judged"):
        wilson(solved, judged)


def test_resamples_draw_each_time_as_many_problems():
    weights = resample_weights(7, seed=3, resamples=50)
    assert weights.shape == (50, 7)
    assert (weights.sum(axis=1) == 7).all()


def test_bootstrap_agrees_with_the_normal_interval_of_many_problems():
    values = np.random.default_rng(0).random(400)
    seen = bootstrap_mean(values, seed=1)
    assert seen is not None
    half = 1.96 * values.std() / 20
    assert seen.interval.low == pytest.approx(values.mean() - half, abs=0.004)
    assert seen.interval.high == pytest.approx(values.mean() + half, abs=0.004)


def test_same_seed_same_interval_and_another_seed_another():
    values = np.random.default_rng(0).random(30)
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1)
    assert bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)
    assert bootstrap_mean([], seed=1) is None


def test_columns_leave_out_undefined_problems():
    values = np.array([[1.0, np.nan], [1.0, 0.5], [1.0, 0.5], [0.0, np.nan]])
    low, high = bootstrap_columns(values, seed=0)
    assert low[0] < 0.75 < high[0]
    assert (low[1], high[1]) == (0.5, 0.5)
