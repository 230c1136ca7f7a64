"""The exponentiated power law of coverage, c ≈ exp(a·k^b), with a goodness of fit that decides whether it may predict.

Source: Large Language Monkeys (arXiv 2407.21787), §3: SciPy's `curve_fit` on up to 40 log-spaced k. Some sets of
problems do not follow it (MiniF2F there), so a fit predicts beyond the measured k only when

- a < 0 and b < 0: coverage rises towards 1;
- no fitted point is off by more than 3 points of coverage, over up to 100 log-spaced k;
- a second fit to the k below the square root of the largest misses the largest by at most 5 points: it is asked to do
  over the measured range what extrapolating does beyond it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archon.report.coverage import Curve
from archon.report.passk import log_spaced

MOST_POINTS = 40
FEWEST_POINTS = 5
MAX_ERROR = 0.03
MAX_HOLDOUT_ERROR = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLaw:
    """A fit c ≈ exp(a·k^b) and how well it holds."""

    a: float
    b: float
    points: int
    """How many k it was fitted to."""
    largest_k: int
    r2: float | None
    """Share of variance explained; None when coverage does not vary."""
    mean_error: float
    std_error: float
    max_error: float
    """Absolute errors in coverage over up to 100 log-spaced k of the measured curve."""
    holdout_error: float | None
    """Error at the largest k of a fit to the lower half of the log axis; None with too few points there."""
    poor: str | None
    """Why it may not extrapolate; None when it may."""

    def predict(self, k: int) -> float:
        """Return the coverage the fit expects at k.

        Raises:
            ValueError: k is beyond the measured ones and the fit is poor, or k < 1.
        """
        if k < 1:
            raise ValueError(f"k={k!r}: k must be at least 1")
        if k > self.largest_k and self.poor is not None:
            raise ValueError(f"no extrapolation to k={k!r} from k <= {self.largest_k}: {self.poor}")
        return float(_law(np.array([k], dtype=np.float64), self.a, self.b)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    """Why there is no fit at all."""

    reason: str


def fit_power_law(curve: Curve) -> PowerLaw | NoFit:
    """Fit the law to a coverage curve over the k at which no problem is left out."""
    whole = [k for k, undefined in zip(curve.ks, curve.undefined, strict=True) if undefined == curve.undefined[0]]
    if len(whole) < FEWEST_POINTS:
        return NoFit(reason=f"{len(whole)} values of k; a fit needs at least {FEWEST_POINTS}")
    curve = curve.thin(whole)
    ks, seen = _points(curve, MOST_POINTS)
    if seen.max() <= 0:
        return NoFit(reason="no problem was solved by any sample")
    if seen.min() >= 1:
        return NoFit(reason="coverage is 1 at every k")
    law = _fit(ks, seen)
    if law is None:
        return NoFit(reason="the least-squares search did not converge")
    checked_ks, checked = _points(curve, 100)
    errors = np.abs(_law(checked_ks, *law) - checked)
    spread = float(((seen - seen.mean()) ** 2).sum())
    residual = float(((_law(ks, *law) - seen) ** 2).sum())
    holdout = _holdout_error(ks, seen)
    return PowerLaw(
        a=law[0],
        b=law[1],
        points=ks.size,
        largest_k=int(ks[-1]),
        r2=None if spread == 0 else 1 - residual / spread,
        mean_error=float(errors.mean()),
        std_error=float(errors.std()),
        max_error=float(errors.max()),
        holdout_error=holdout,
        poor=_why_poor(law, float(errors.max()), holdout),
    )


def _why_poor(law: tuple[float, float], max_error: float, holdout: float | None) -> str | None:
    if law[0] >= 0 or law[1] >= 0:
        return f"a={law[0]:.3g} and b={law[1]:.3g} must both be below 0 for coverage to rise towards 1"
    if max_error > MAX_ERROR:
        return f"the fit is off by {100 * max_error:.1f} points where measured (allowed: {100 * MAX_ERROR:.0f})"
    if holdout is None:
        return f"fewer than {FEWEST_POINTS} values of k below the square root of the largest to check a prediction with"
    if holdout > MAX_HOLDOUT_ERROR:
        off, allowed = 100 * holdout, 100 * MAX_HOLDOUT_ERROR
        return f"a fit to the smaller k misses the largest by {off:.1f} points (allowed: {allowed:.0f})"
    return None


def _points(curve: Curve, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    wanted = curve.thin(log_spaced(curve.ks[-1], count).tolist())
    return np.array(wanted.ks, dtype=np.float64), np.array(wanted.mean)


def _holdout_error(ks: NDArray[np.float64], seen: NDArray[np.float64]) -> float | None:
    lower = ks <= math.sqrt(ks[-1])
    if lower.sum() < FEWEST_POINTS or seen[lower].max() <= 0:
        return None
    law = _fit(ks[lower], seen[lower])
    return None if law is None else float(abs(_law(ks[-1:], *law)[0] - seen[-1]))


def _law(ks: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # a search step may overshoot: exp(inf) is only a bad step, not a result
        out: NDArray[np.float64] = np.exp(np.minimum(a * ks**b, 0.0 if a < 0 else 1.0))
    return out


def _fit(ks: NDArray[np.float64], seen: NDArray[np.float64]) -> tuple[float, float] | None:
    # Imported here: SciPy's optimiser takes as long to load as the rest of a text report.
    from scipy.optimize import OptimizeWarning, curve_fit

    inside = (seen > 0) & (seen < 1)
    start = (-1.0, -0.3)
    if inside.sum() >= 2:  # log(−log c) is a straight line in log k under the law
        slope, height = np.polyfit(np.log(ks[inside]), np.log(-np.log(seen[inside])), 1)
        start = (-math.exp(height), float(slope))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)  # about the covariance, which is not used
            (a, b), _ = curve_fit(_law, ks, seen, p0=start, maxfev=10_000)
    except RuntimeError:  # SciPy's "optimal parameters not found": the caller reports it
        return None
    return float(a), float(b)
