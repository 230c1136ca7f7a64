"""Intervals: Wilson for a share of problems solved, and the bootstrap over problems for everything else.

A plain accuracy is one yes or no per problem. Wilson's interval is used there and not the bootstrap: it keeps its
coverage at the small n and extreme shares of real runs, where the bootstrap of 0 of 40 solved has no width at all, and
it needs no random numbers. Means of numbers per problem (pass@k, selectors, tokens, paired differences) have no such
formula: they get the percentile bootstrap with the problem as the unit, so samples of one problem stay together.

Sources: Wilson 1927; Efron and Tibshirani 1993, ch. 13.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2000
"""Resamples of every bootstrap here: the ends of a 95 % interval then rest on 50 resamples each."""
LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A 95 % confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over problems with its interval."""

    value: float
    interval: Interval
    problems: int
    """How many problems it is a mean over."""


def wilson(solved: int, judged: int) -> Interval:
    """Return Wilson's 95 % score interval for `solved` of `judged`; of 0 judged it is all of [0, 1].

    Raises:
        ValueError: solved is negative or more than judged.
    """
    if not 0 <= solved <= judged:
        raise ValueError(f"solved={solved!r} of judged={judged!r}: must be between 0 and judged")
    if judged == 0:
        return Interval(low=0.0, high=1.0)
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share, spread = solved / judged, z * z / judged
    centre = share + spread / 2
    half = z * math.sqrt(share * (1 - share) / judged + spread / (4 * judged))
    # At 0 and n the exact ends are 0 and 1; rounding would print −1e-17.
    low = 0.0 if solved == 0 else (centre - half) / (1 + spread)
    high = 1.0 if solved == judged else (centre + half) / (1 + spread)
    return Interval(low=low, high=high)


@lru_cache(maxsize=4)
def resample_weights(problems: int, seed: int, resamples: int = RESAMPLES) -> NDArray[np.float64]:
    """Return how often each problem is drawn in each resample, shape (resamples, problems), read-only.

    Rows sum to `problems`. Cached, because a report takes dozens of intervals over the same problems; 2.6 MB for 164.
    """
    rng = np.random.default_rng(seed)
    weights = np.empty((resamples, problems))
    for row in range(resamples):
        weights[row] = np.bincount(rng.integers(problems, size=problems), minlength=problems)
    weights.flags.writeable = False
    return weights


def bootstrap_columns(
    values_P_K: NDArray[np.float64], seed: int, resamples: int = RESAMPLES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the interval of each column's mean over the problems where it is not NaN, shapes (K,).

    All columns share the same resamples, so a curve's interval is smooth in k.
    """
    problems, columns = values_P_K.shape
    weights = resample_weights(problems, seed, resamples)
    defined = ~np.isnan(values_P_K)
    filled = np.where(defined, values_P_K, 0.0)
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    for start in range(0, columns, 512):  # 512 columns of 2,000 resamples are 8 MB, whatever n is
        part = slice(start, start + 512)
        drawn = weights @ defined[:, part]
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (weights @ filled[:, part]) / drawn
        some = defined[:, part].any(axis=0)
        ends = np.nanquantile(means[:, some], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        low[part][some], high[part][some] = ends
    return low, high


def bootstrap_mean(values: ArrayLike, seed: int, resamples: int = RESAMPLES) -> Estimate | None:
    """Return the mean of one number per problem with its bootstrap interval; None for no problems."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size:
        return None
    low, high = bootstrap_columns(array[:, None], seed, resamples)
    interval = Interval(low=float(low[0]), high=float(high[0]))
    return Estimate(value=float(array.mean()), interval=interval, problems=array.size)
