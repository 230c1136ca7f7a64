"""What the graded samples of one run show: coverage, selectors, the gap between them, the power law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archon.report.coverage import Curve, curve_of, judged_counts
from archon.report.gap import Gap, gap_of
from archon.report.passk import log_spaced, pass_at_ks
from archon.report.powerlaw import NoFit, PowerLaw, fit_power_law
from archon.report.records import Record
from archon.report.selectors import SELECTORS, Weighting, available, selector_values

OWN_ANSWER = "own_answer"
"""The name under which a system's own final answer stands among the selectors."""
EVERY_K = 64
"""Selectors are computed at every k up to here, and at 40 log-spaced k beyond: a vote costs its subsets at each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What repeated sampling shows: present when a run kept judged samples."""

    k: int
    """The headline k: the commonest number of samples a problem has."""
    problems: int
    """Problems with at least one judged sample."""
    coverage: Curve
    selectors: tuple[Curve, ...]
    """Majority, best-of-N and weighted best-of-N, as far as the samples have answers and scores."""
    weighting: Weighting
    """What a vote weighs in the weighted best-of-N: the score, or exp(score) when some score is negative."""
    gaps: tuple[Gap, ...]
    """At the headline k: each selector, and the system's own answer, between pass@1 and coverage."""
    power_law: PowerLaw | NoFit
    samples: int
    not_judged: int
    """Samples that were not judged and are left out of every curve."""
    without_answer: int
    """Judged samples whose answer could not be read: they do not vote."""
    without_score: int
    """Judged samples without a score: best-of-N's last resort."""


def sampling_of(records: Sequence[Record], *, seed: int = 0) -> Sampling | None:
    """Return what the samples of some records show; None when none was judged."""
    records = [record for record in records if record.samples]
    n_P, c_P = judged_counts(records)
    if not n_P.any():
        return None
    headline, every = _headline_k(n_P, records), np.arange(1, int(n_P.max()) + 1)
    ks = every if every.size <= EVERY_K else np.union1d(np.append(every[:EVERY_K], headline), log_spaced(every.size))
    problems = [record.samples for record in records]
    judged = [sample for samples in problems for sample in samples if sample.correct is not None]
    weighting: Weighting = "exp" if any(s.score is not None and s.score < 0 for s in judged) else "score"
    tables = {
        name: selector_values(name, problems, ks, seed=seed, weighting=weighting)
        for name in SELECTORS
        if available(name, problems)
    }
    coverage_P_K = pass_at_ks(n_P, c_P, every)
    coverage = curve_of("coverage", coverage_P_K, every, seed=seed)
    chosen = {name: table[:, int(np.searchsorted(ks, headline))] for name, table in tables.items()}
    total = sum(map(len, problems))
    return Sampling(
        k=headline,
        problems=int((n_P > 0).sum()),
        coverage=coverage,
        selectors=tuple(curve_of(name, table, ks, seed=seed) for name, table in tables.items()),
        weighting=weighting,
        gaps=_gaps(headline, coverage_P_K, chosen | {OWN_ANSWER: _own(records)}, seed),
        power_law=fit_power_law(coverage),
        samples=total,
        not_judged=total - len(judged),
        without_answer=sum(sample.answer is None for sample in judged),
        without_score=sum(sample.score is None for sample in judged),
    )


def _headline_k(n_P: NDArray[np.int64], records: Sequence[Record]) -> int:
    """Return the commonest number of samples, the larger of two equally common ones, as far as some n reaches it."""
    counts = Counter(len(record.samples) for record in records)
    commonest = max(counts, key=lambda size: (counts[size], size))
    return min(commonest, int(n_P.max()))


def _own(records: Sequence[Record]) -> NDArray[np.float64]:
    return np.array([np.nan if record.correct is None else float(record.correct) for record in records])


def _gaps(
    k: int, coverage_P_K: NDArray[np.float64], chosen: dict[str, NDArray[np.float64]], seed: int
) -> tuple[Gap, ...]:
    one, ceiling = coverage_P_K[:, 0], coverage_P_K[:, k - 1]
    gaps = (gap_of(name, k, one, values, ceiling, seed) for name, values in chosen.items())
    return tuple(gap for gap in gaps if gap is not None)
