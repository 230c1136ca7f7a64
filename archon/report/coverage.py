"""The coverage curve: mean pass@k over problems for k = 1 … n, with intervals that resample problems.

A problem with fewer than k judged samples has no pass@k: it is left out of the mean at that k and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from archon.report.intervals import RESAMPLES, Estimate, Interval, bootstrap_columns
from archon.report.passk import pass_at_ks
from archon.report.records import Record

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A mean over problems at each k, with its 95 % interval. All tuples are as long as `ks`."""

    name: str
    ks: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    problems: tuple[int, ...]
    """How many problems each mean is over."""
    undefined: tuple[int, ...]
    """How many problems have fewer than k judged samples and are left out."""

    def at(self, k: int) -> Estimate:
        """Return the estimate at k.

        Raises:
            ValueError: the curve has no such k.
        """
        if k not in self.ks:
            raise ValueError(f"k={k!r} is not on the curve {self.name!r}: it has {_span(self.ks)}")
        at = self.ks.index(k)
        interval = Interval(low=self.low[at], high=self.high[at])
        return Estimate(value=self.mean[at], interval=interval, problems=self.problems[at])

    def thin(self, ks: Sequence[int]) -> Curve:
        """Return the curve at those of its k that are in `ks`."""
        wanted = set(ks)
        keep = [index for index, k in enumerate(self.ks) if k in wanted]

        def pick(values: tuple[Number, ...]) -> tuple[Number, ...]:
            return tuple(values[index] for index in keep)

        return Curve(
            name=self.name,
            ks=pick(self.ks),
            mean=pick(self.mean),
            low=pick(self.low),
            high=pick(self.high),
            problems=pick(self.problems),
            undefined=pick(self.undefined),
        )


def judged_counts(records: Sequence[Record]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the judged samples n and the right ones c of each record, shapes (P,)."""
    n_P = [sum(sample.correct is not None for sample in record.samples) for record in records]
    c_P = [sum(sample.correct is True for sample in record.samples) for record in records]
    return np.array(n_P, dtype=np.int64), np.array(c_P, dtype=np.int64)


def coverage(
    n: ArrayLike, c: ArrayLike, ks: ArrayLike | None = None, *, seed: int = 0, resamples: int = RESAMPLES
) -> Curve:
    """Return mean pass@k over problems at each k, by default at every k from 1 to the largest n.

    Args:
        n: judged samples per problem, shape (P,).
        c: right samples per problem, shape (P,).
        ks: values of k; those above every n are left off the curve.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Raises:
        ValueError: as `pass_at_ks`.
    """
    largest = int(np.max(np.asarray(n), initial=0))
    wanted = np.arange(1, largest + 1) if ks is None else np.unique(np.asarray(ks))
    values_P_K = pass_at_ks(n, c, wanted)
    return curve_of("coverage", values_P_K, wanted, seed=seed, resamples=resamples)


def curve_of(
    name: str, values_P_K: NDArray[np.float64], ks: NDArray[np.int64], *, seed: int, resamples: int = RESAMPLES
) -> Curve:
    """Return the curve of column means of `values_P_K` (P problems, K values of k; NaN: undefined)."""
    defined = ~np.isnan(values_P_K)
    some = defined.any(axis=0)
    values, counts = values_P_K[:, some], defined[:, some].sum(axis=0)
    low, high = bootstrap_columns(values, seed, resamples) if some.any() else (np.empty(0), np.empty(0))
    return Curve(
        name=name,
        ks=tuple(ks[some].tolist()),
        mean=tuple(np.nanmean(values, axis=0).tolist()) if some.any() else (),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        problems=tuple(counts.tolist()),
        undefined=tuple((values_P_K.shape[0] - counts).tolist()),
    )


def _span(ks: tuple[int, ...]) -> str:
    return f"k from {ks[0]} to {ks[-1]}" if ks else "no k at all"
