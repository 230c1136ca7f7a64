from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archon.report.passk import log_spaced, pass_at_k, pass_at_ks


def exact(n: int, c: int, k: int) -> Fraction:
    return 1 - Fraction(comb(n - c, k), comb(n, k))


def test_every_subset_of_every_small_problem():
    for n in range(1, 9):
        for c in range(n + 1):
            for k in range(1, n + 1):
                hits = [any(index < c for index in chosen) for chosen in combinations(range(n), k)]
                assert pass_at_k(n, c, k) == pytest.approx(sum(hits) / len(hits), abs=1e-15)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_within_1e12_of_exact_fractions(case):
    n, c, k = case
    assert abs(Fraction(pass_at_k(n, c, k)) - exact(n, c, k)) <= Fraction(1, 10**12)


@pytest.mark.parametrize("by_rows", [True, False])
def test_both_directions_of_the_product_are_exact_at_the_worst_sizes(by_rows):
    n, few, many = 10_000, [1, 5000], [1, 2, 37, 1000, 5000, 9999, 10_000]
    cs, ks = (few, many) if by_rows else (many, few)
    seen = pass_at_ks(n, cs, ks)
    for row, c in enumerate(cs):
        for column, k in enumerate(ks):
            assert abs(Fraction(float(seen[row, column])) - exact(n, c, k)) <= Fraction(1, 10**12), (c, k)


def test_k_above_n_is_undefined_and_never_one():
    with pytest.raises(ValueError, match=r"undefined for k=5 > n=4"):
        pass_at_k(4, 4, 5)
    seen = pass_at_ks([4, 8, 0], [4, 1, 0], [4, 5, 9])
    assert np.isnan(seen[0]).tolist() == [False, True, True]
    assert np.isnan(seen[1]).tolist() == [False, False, True]
    assert np.isnan(seen[2]).all()


def test_problems_may_differ_in_n_and_ks_come_in_any_order():
    n, c, ks = [5, 3, 5, 8], [2, 0, 5, 1], [3, 1, 8]
    seen = pass_at_ks(n, c, ks)
    for row in range(4):
        for column in range(3):
            if ks[column] <= n[row]:
                assert seen[row, column] == pytest.approx(float(exact(n[row], c[row], ks[column])), abs=1e-15)
            else:
                assert np.isnan(seen[row, column])


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (3, 4, 1, "c=4 right samples of n=3"),
        (-1, 0, 1, "n=-1"),
        (3, -2, 1, "c=-2"),
        (3, 1, 0, "k=0: k must be at least 1"),
        (3, 1, -1, "k=-1"),
        (3.0, 1, 1, "n must be integers"),
        (3, True, 1, "c must be integers"),
    ],
)
def test_counts_that_make_no_sense_are_errors(n, c, k, message):
    with pytest.raises(ValueError, match=message):
        pass_at_ks([n], [c], [k])


def test_no_problems_and_no_ks_are_empty_tables():
    assert pass_at_ks([], [], [1, 2]).shape == (0, 2)
    assert pass_at_ks([3], [1], []).shape == (1, 0)


def test_log_spaced_is_distinct_and_reaches_both_ends():
    ks = log_spaced(10_000, 40)
    assert (ks[0], ks[-1]) == (1, 10_000)
    assert len(set(ks.tolist())) == ks.size <= 40
    assert log_spaced(1).tolist() == [1]
    with pytest.raises(ValueError, match="largest=0"):
        log_spaced(0)


def test_published_values_of_ten_thousand_samples(read_data):
    rows = read_data("09_llm_monkeys_math_pythia_counts.jsonl.gz")
    ks = [int(k) for k in rows[0]["pass_at_k"]]
    seen = pass_at_ks([row["n"] for row in rows], [row["c"] for row in rows], ks)
    published = np.array([[row["pass_at_k"][str(k)] for k in ks] for row in rows])
    assert len(rows) >= 128
    np.testing.assert_allclose(seen, published, rtol=0, atol=1e-12)


def test_published_curve_of_one_hundred_samples(read_data):
    rows = read_data("09_codet_humaneval_codegen16b_counts.jsonl")
    means = pass_at_ks([row["n"] for row in rows], [row["c"] for row in rows], [1, 10, 100]).mean(axis=0)
    assert (100 * means).round(2).tolist() == [22.13, 50.38, 73.78]
