"""Exact expected accuracy of a majority vote over a random size-k subset of the samples.

Groups of equal answers are drawn together like coloured balls: the number of subsets in which group h has j members is
C(m_h, j). For each winning count v, the number of subsets of size k whose tied winners are the groups T is the
coefficient of x^(k−v·|T|) in Π_{h∉T} Σ_{j<v} C(m_h, j) x^j times Π_{h∈T} C(m_h, v). A table over (number of tied
groups, subset size) holds that count and the sum of the winners' values, so a tie pays the mean of the tied groups.
Every term is positive, so nothing cancels. Cost: about (largest group)² array steps per problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

EXACT_LIMIT = 100
"""The most samples for which the table is made: above, C(n, k) strains a double and time grows with the square."""

Group = tuple[int, float]
"""A group of equal answers: how many samples, and the share of them that is right."""


@lru_cache(maxsize=4096)
def majority_values(groups: tuple[Group, ...], silent: int) -> NDArray[np.float64]:
    """Return the expected accuracy at k = 1 … n, shape (n,), read-only; a subset without a vote counts as wrong.

    Args:
        groups: one per distinct answer.
        silent: samples whose answer could not be read; they are drawn, and do not vote.

    Raises:
        ValueError: more than `EXACT_LIMIT` samples.
    """
    n = sum(size for size, _ in groups) + silent
    if n > EXACT_LIMIT:
        raise ValueError(f"{n!r} samples: the exact vote is for at most {EXACT_LIMIT}")
    won_K = np.zeros(n + 1)
    for votes in range(1, max((size for size, _ in groups), default=0) + 1):
        won_K += _won_with(votes, groups, silent, n)
    out: NDArray[np.float64] = won_K[1:] / np.array([comb(n, k) for k in range(1, n + 1)], dtype=np.float64)
    out.flags.writeable = False
    return out


def _won_with(votes: int, groups: Sequence[Group], silent: int, n: int) -> NDArray[np.float64]:
    """Return, per subset size 0 … n, the summed value of the subsets whose winners have exactly `votes` votes."""
    able = [group for group in groups if group[0] >= votes]
    # Groups smaller than `votes` can never win or tie: any number of their members may be drawn.
    free = silent + sum(size for size, _ in groups if size < votes)
    count_T_K = np.zeros((len(able) + 1, n + 1))
    value_T_K = np.zeros_like(count_T_K)
    count_T_K[0, : free + 1] = [comb(free, j) for j in range(free + 1)]
    for size, share in able:
        ties = float(comb(size, votes))
        tied_count, tied_value = ties * _shift(count_T_K, votes), ties * _shift(value_T_K, votes)
        below = [float(comb(size, j)) for j in range(votes)]
        count_T_K, value_T_K = _times(count_T_K, below), _times(value_T_K, below)
        value_T_K[1:] += tied_value[:-1] + share * tied_count[:-1]
        count_T_K[1:] += tied_count[:-1]
    total: NDArray[np.float64] = (value_T_K[1:] / np.arange(1, len(able) + 1)[:, None]).sum(axis=0)
    return total


def _times(table_T_K: NDArray[np.float64], factors: Sequence[float]) -> NDArray[np.float64]:
    """Multiply each row, a polynomial in x, by Σ factors[j]·x^j."""
    out = factors[0] * table_T_K
    for power, factor in enumerate(factors[1:], start=1):
        out += factor * _shift(table_T_K, power)
    return out


def _shift(table_T_K: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    out = np.zeros_like(table_T_K)
    out[:, power:] = table_T_K[:, : table_T_K.shape[1] - power]
    return out
