from __future__ import annotations

import numpy as np
import pytest

from archon.report.gap import gap_of


def test_the_gap_by_hand():
    one, chosen, ceiling = (
        np.array([0.5, 0.0, 1.0, 0.1]),
        np.array([1.0, 0.0, 1.0, 0.3]),
        np.array([1.0, 0.4, 1.0, 0.5]),
    )
    gap = gap_of("best_of_n", 4, one, chosen, ceiling)
    assert gap is not None
    assert gap.lift.value == pytest.approx(0.7 / 4)
    assert gap.gap == pytest.approx(0.6 / 4)
    assert gap.share_closed == pytest.approx(0.7 / 1.3)
    assert gap.share_interval is not None
    assert gap.share_interval.low <= gap.share_closed <= gap.share_interval.high


def test_problems_without_a_value_are_left_out():
    nan = np.nan
    gap = gap_of("majority", 4, np.array([0.5, 0.5, 0.0]), np.array([1.0, nan, 0.0]), np.array([1.0, 1.0, nan]))
    assert gap is not None
    assert gap.problems == 1
    assert gap_of("majority", 4, np.array([nan]), np.array([1.0]), np.array([1.0])) is None


def test_no_room_has_no_share():
    ones = np.ones(3)
    gap = gap_of("majority", 4, ones, ones, ones)
    assert gap is not None
    assert gap.share_closed is None
    assert gap.share_interval is None
