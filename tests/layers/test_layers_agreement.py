import itertools

import pytest

from archon.layers.agreement import Observation, agreement, believed, trivial
from archon.types import UnitTest


def made(source, args="(1,)", expected="2"):
    return UnitTest(text="t", source=source, function="f", args=args, expected=expected)


def saw(passed, value=None):
    return Observation(passed=passed, value=value)


EXAMPLE, WRITTEN = made("example"), made("model", args="(3,)", expected="6")


def test_an_example_outweighs_any_agreement():
    alone = [saw(True, "2"), saw(False, "99")]
    crowd = [[saw(False, "5"), saw(True, "6")]] * 9
    scores = agreement([EXAMPLE, WRITTEN], [alone, *crowd]).scores
    assert scores[0] > max(scores[1:])


def test_scores_by_hand():
    # No examples, so weight 1: score = within / 2. Two of three return 6 and pass the only test that has weight:
    # within = (2/3)(0.2 + 1)/1.2 = 2/3. The third one returns 7 alone and fails: within = (1/3)(0.2 + 0)/1.2 = 1/18.
    observed = [[saw(True, "6")], [saw(True, "6")], [saw(False, "7")]]
    assert agreement([WRITTEN], observed).scores == pytest.approx((1 / 3, 1 / 3, 1 / 36))


def test_a_test_weighs_as_the_square_of_the_share_that_passes_it():
    # Test a is passed by three of four, test b by the fourth alone: weights 9/16 and 1/16, so 0.9 and 0.1 of all.
    # All values differ between the two camps: agreement 3/4 and 1/4. within = (3/4)(1.1)/1.2 and (1/4)(0.3)/1.2.
    other = made("model", args="(4,)", expected="9")
    observed = [[saw(True, "6"), saw(False, "8")]] * 3 + [[saw(False, "7"), saw(True, "9")]]
    assert agreement([WRITTEN, other], observed).scores == pytest.approx((0.34375,) * 3 + (0.03125,))


def test_agreement_on_values_finds_the_majority_when_the_expected_value_is_wrong():
    wrong_test = made("model", args="(3,)", expected="7")
    observed = [[saw(False, "6")], [saw(False, "5")], [saw(False, "6")]]
    scores = agreement([wrong_test], observed).scores
    assert scores[0] == scores[2] > scores[1]


def test_programs_that_raise_do_not_agree():
    observed = [[saw(False)], [saw(False)], [saw(False)], [saw(False, "8")]]
    scores = agreement([WRITTEN], observed).scores
    assert scores[3] > scores[0] == scores[1] == 0.0


def test_what_was_not_run_is_not_scored():
    observed = [[saw(None), saw(None)], [saw(True, "2"), saw(None)]]
    scores = agreement([EXAMPLE, WRITTEN], observed).scores
    assert scores[0] is None
    assert scores[1] is not None


def test_tests_that_all_of_several_programs_fail_are_not_believed():
    everyone_fails = [[saw(True), saw(False)], [saw(True), saw(False)]]
    assert believed([WRITTEN, WRITTEN], everyone_fails) == (True, False)
    assert believed([WRITTEN], [[saw(False)]]) == (True,)  # one program says nothing about a test
    assert believed([EXAMPLE], [[saw(False)], [saw(False)]]) == (True,)


@pytest.mark.parametrize(
    ("args", "expected", "is_trivial"),
    [
        ("(1,)", "None", True),
        ("([1],)", "[1]", True),
        ("(1, 2)", "2", False),
        ("()", "0", False),
        ("(1,)", "1.0", False),
    ],
)
def test_tests_that_trivial_programs_pass(args, expected, is_trivial):
    assert trivial(made("model", args, expected)) is is_trivial


def test_scores_are_ordered_by_examples_first_and_stay_inside_0_and_1():
    tests = [EXAMPLE, EXAMPLE, WRITTEN, WRITTEN]
    rows = [
        [saw(a, "2"), saw(b, "2"), saw(c, v), saw(d, v)]
        for a, b, c, d in itertools.product((True, False), repeat=4)
        for v in ("6", None)
    ]
    scores = agreement(tests, rows).scores
    shares = [sum(one.passed for one in row[:2]) for row in rows]
    assert all(0 <= score <= 1 for score in scores)
    for (share, score), (other_share, other) in itertools.combinations(zip(shares, scores, strict=True), 2):
        if share > other_share:
            assert score > other
        if share < other_share:
            assert score < other
