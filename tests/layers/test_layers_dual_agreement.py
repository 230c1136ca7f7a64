import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archon.layers.dual_agreement import dual_agreement

TWO_THEN_ONE = [(True, True, False), (True, True, False), (True, True, True), (False, False, False)]
"""Two pass the first two of three tests, one passes all three, one passes none."""


def test_scores_by_hand():
    # Against √4 × 3 = 6: the pair has √2 × 2, the third √1 × 3.
    seen = dual_agreement(TWO_THEN_ONE)
    assert seen.scores == pytest.approx((2 * math.sqrt(2) / 6, 2 * math.sqrt(2) / 6, 0.5, 0.0))
    assert seen.order == (2, 0, 1, 3)
    assert seen.best == (2,)


def test_the_papers_product_lets_the_crowd_win():
    # Against 4 × 3 = 12: the pair has 2 × 2, the third 1 × 3.
    seen = dual_agreement(TWO_THEN_ONE, form="product")
    assert seen.scores == pytest.approx((4 / 12, 4 / 12, 3 / 12, 0.0))
    assert seen.order == (0, 1, 2, 3)
    assert seen.best == (0, 1)


def test_the_same_number_of_other_tests_is_another_set():
    seen = dual_agreement([(True, False), (False, True), (True, False)])
    assert seen.scores == pytest.approx((math.sqrt(2 / 3) / 2, math.sqrt(1 / 3) / 2, math.sqrt(2 / 3) / 2))


def test_equal_scores_are_exact_ties_that_keep_their_order():
    # √4 × 2 = √1 × 4, which floating point need not find.
    seen = dual_agreement([(True, True, True, True), *[(True, False, True, False)] * 4])
    assert seen.best == seen.order == (0, 1, 2, 3, 4)
    assert len(set(seen.scores)) == 1


def test_not_judged_is_neither_passed_nor_failed():
    assert dual_agreement([(True, False), (True, False)]).scores == pytest.approx((0.5, 0.5))
    apart = dual_agreement([(True, False), (True, None)])
    assert apart.scores == pytest.approx((math.sqrt(1 / 2) / 2,) * 2)
    assert apart.best == (0, 1)


def test_a_candidate_of_which_nothing_was_judged_has_no_score_and_lends_no_weight():
    seen = dual_agreement([(None, None), (False, False), (True, True)])
    assert seen.scores == pytest.approx((None, 0.0, math.sqrt(1 / 2)))
    assert seen.order == (2, 1, 0)


def test_without_tests_or_candidates_nobody_is_best():
    assert dual_agreement([(), ()]).scores == (None, None)
    assert dual_agreement([(), ()]).order == (0, 1)
    assert dual_agreement([(), ()]).best == dual_agreement([]).best == dual_agreement([]).scores == ()


@given(
    st.integers(1, 4).flatmap(
        lambda tests: st.lists(st.tuples(*[st.sampled_from((True, False, None))] * tests), max_size=8)
    )
)
def test_against_the_formula(rows):
    seen = dual_agreement(rows)
    judged = [row for row in rows if set(row) != {None}]
    for row, score in zip(rows, seen.scores, strict=True):
        if row not in judged:
            assert score is None
            continue
        most = math.sqrt(len(judged)) * len(row)
        assert score == pytest.approx(math.sqrt(Counter(judged)[row]) * row.count(True) / most)
    ordered = [seen.scores[i] for i in seen.order]
    assert sorted(seen.order) == list(range(len(rows)))
    assert ordered == sorted(ordered, key=lambda score: math.inf if score is None else -score)
