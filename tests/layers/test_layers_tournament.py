import itertools
import math

import pytest

from archon.layers.tournament import bradley_terry, copeland, wins_from


def test_wins_by_hand():
    results = {(0, 1): 1, (1, 0): 2, (0, 2): 1, (2, 0): 1, (1, 2): 0, (2, 1): 0}
    # 0 beats 1 in both orders; 0 and 2 each win when shown first, so the order decided; 1 and 2 tie.
    assert wins_from(results, 3) == ((0.0, 1.0, 0.5), (0.0, 0.0, 0.5), (0.5, 0.5, 0.0))
    assert copeland(wins_from(results, 3)) == (0.75, 0.25, 0.5)


def test_an_unreadable_order_leaves_the_pair_out():
    wins = wins_from({(0, 1): 1, (1, 0): None, (0, 2): 2, (2, 0): 1}, 3)
    assert wins == ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    assert copeland(wins) == (0.0, 0.5, 1.0)


def test_a_judge_that_always_prefers_the_first_says_nothing():
    results = dict.fromkeys(itertools.permutations(range(4), 2), 1)
    assert copeland(wins_from(results, 4)) == (0.5,) * 4
    assert bradley_terry(wins_from(results, 4)) == pytest.approx((0.5,) * 4)


def test_bradley_terry_of_one_win_by_hand():
    # One win of a over b, and a tie of each with a ghost of strength 1. By symmetry b = 1/a, and a's equation
    # 1.5 = a/(a + 1/a) + a/(a + 1) reads a^3 - a^2 - a - 3 = 0 after multiplying out.
    a, b = bradley_terry(((0.0, 1.0), (0.0, 0.0)))
    strength = a / (1 - a)
    assert strength**3 - strength**2 - strength - 3 == pytest.approx(0, abs=1e-6)
    assert a + b == pytest.approx(1)


def test_bradley_terry_is_the_most_likely_fit():
    wins = ((0.0, 2.0, 1.0), (1.0, 0.0, 2.0), (0.0, 1.0, 0.0))

    def likelihood(logs):
        total = sum(0.5 * x - math.log1p(math.exp(x)) for x in logs)  # half a win over the ghost, half a loss
        for i, j in itertools.permutations(range(3), 2):
            total += wins[i][j] * (logs[i] - math.log(math.exp(logs[i]) + math.exp(logs[j])))
        return total

    best = [math.log(p / (1 - p)) for p in bradley_terry(wins)]
    for i, step in itertools.product(range(3), (-0.01, 0.01)):
        moved = [x + step * (k == i) for k, x in enumerate(best)]
        assert likelihood(moved) < likelihood(best)


def test_scores_stay_inside_0_and_1_and_follow_a_clear_order():
    n = 6
    wins = tuple(tuple(1.0 if i < j else 0.0 for j in range(n)) for i in range(n))
    for scores in (copeland(wins), bradley_terry(wins)):
        assert list(scores) == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
    assert copeland(wins)[0] == 1.0
    assert copeland(()) == bradley_terry(()) == ()
