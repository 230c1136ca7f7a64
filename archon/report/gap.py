"""The coverage–precision gap as numbers: what k samples hold, and how much of it a selector gets out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archon.report.intervals import Estimate, Interval, bootstrap_mean, resample_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One selector at one k against one sample (the floor) and coverage (the ceiling), on the same problems."""

    selector: str
    k: int
    pass_at_1: float
    precision: float
    """The selector's accuracy."""
    coverage: float
    problems: int
    lift: Estimate
    """Precision − pass@1, paired over problems."""
    share_closed: float | None
    """(precision − pass@1) / (coverage − pass@1); None when one sample already reaches coverage."""
    share_interval: Interval | None

    @property
    def gap(self) -> float:
        """Return coverage − precision: what is solved by some sample and not selected."""
        return self.coverage - self.precision


def gap_of(
    selector: str,
    k: int,
    one_P: NDArray[np.float64],
    precision_P: NDArray[np.float64],
    coverage_P: NDArray[np.float64],
    seed: int = 0,
) -> Gap | None:
    """Return the gap over the problems where all three are known (not NaN); None when there is none.

    Args:
        selector: its name.
        k: the number of samples it chose from.
        one_P: pass@1 per problem.
        precision_P: the selector's expected accuracy per problem.
        coverage_P: pass@k per problem.
        seed: of the bootstrap.
    """
    known = ~(np.isnan(one_P) | np.isnan(precision_P) | np.isnan(coverage_P))
    one, precision, ceiling = one_P[known], precision_P[known], coverage_P[known]
    lift = bootstrap_mean(precision - one, seed)
    if lift is None:
        return None
    room = float((ceiling - one).mean())
    return Gap(
        selector=selector,
        k=k,
        pass_at_1=float(one.mean()),
        precision=float(precision.mean()),
        coverage=float(ceiling.mean()),
        problems=int(known.sum()),
        lift=lift,
        share_closed=None if room <= 0 else lift.value / room,
        share_interval=None if room <= 0 else _ratio_interval(precision - one, ceiling - one, seed),
    )


def _ratio_interval(gained_P: NDArray[np.float64], room_P: NDArray[np.float64], seed: int) -> Interval:
    """Return the bootstrap interval of Σ gained / Σ room; resamples without any room have no share and are left out."""
    weights = resample_weights(gained_P.size, seed)
    gained, room = weights @ gained_P, weights @ room_P
    shares = gained[room > 0] / room[room > 0]
    low, high = np.quantile(shares, [0.025, 0.975])
    return Interval(low=float(low), high=float(high))
