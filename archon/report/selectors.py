"""What a selector without the key gets from k samples: majority, best-of-N, weighted best-of-N.

Each gives the expected accuracy over random size-k subsets of a problem's judged samples, so the curves share an axis
with coverage and the distance to it is what the selector leaves on the table. The rules, the same for all three:

- samples that were not judged are left out, as they are for coverage; reports count them;
- a tie pays the mean over what is tied, never the first in the list;
- a sample without a readable answer does not vote; a subset without a vote selects nothing, which is wrong;
- a sample without a score is best-of-N's last resort, and adds no weight to its answer in the weighted vote.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from archon.report.majority import EXACT_LIMIT, majority_values
from archon.report.passk import pass_at_ks
from archon.report.records import Sample
from archon.report.subsets import subsets

Selector = Literal["majority", "best_of_n", "weighted_best_of_n"]
SELECTORS: tuple[Selector, ...] = ("majority", "best_of_n", "weighted_best_of_n")
Weighting = Literal["score", "exp"]
"""Votes weigh their score as it is, or exp(score) for reward models whose scores may be negative."""


def judged(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """Return the samples that were judged."""
    return tuple(sample for sample in samples if sample.correct is not None)


def available(selector: Selector, problems: Sequence[Sequence[Sample]]) -> bool:
    """Return whether any judged sample has what the selector reads: an answer, a score, or both."""
    for sample in (sample for samples in problems for sample in judged(samples)):
        votes, scored = sample.answer is not None, _score(sample) is not None
        if {"majority": votes, "best_of_n": scored, "weighted_best_of_n": votes and scored}[selector]:
            return True
    return False


def selector_values(
    selector: Selector,
    problems: Sequence[Sequence[Sample]],
    ks: NDArray[np.int64],
    *,
    seed: int = 0,
    weighting: Weighting = "score",
) -> NDArray[np.float64]:
    """Return the expected accuracy of each problem at each k, shape (P, K); NaN above its judged samples.

    Raises:
        ValueError: a negative weight, or a selector that does not exist.
    """
    if selector not in SELECTORS:
        raise ValueError(f"selector {selector!r}: valid are {', '.join(SELECTORS)}")
    out_P_K = np.full((len(problems), ks.size), np.nan)
    for row, samples in enumerate(map(judged, problems)):
        columns = np.flatnonzero(ks <= len(samples))
        if not columns.size:
            continue
        if selector == "best_of_n":
            out_P_K[row, columns] = _best_of_n(samples, ks[columns])
        elif selector == "majority":
            out_P_K[row, columns] = _majority(samples, ks[columns], seed)
        else:
            out_P_K[row, columns] = _vote(samples, _weights(samples, weighting), ks[columns], seed)
    return out_P_K


def _best_of_n(samples: Sequence[Sample], ks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Exact: the best group of equal scores is drawn from unless a subset misses it and all better ones.

    P(the best drawn group is g) = pass@k with the samples of g and better as the right ones, less the same without g.
    Given that, the drawn members of g are a uniform draw of g, so a fair tie pays g's share of right ones.
    """
    groups: dict[float, list[bool | None]] = {}
    for sample in samples:
        score = _score(sample)
        groups.setdefault(-math.inf if score is None else score, []).append(sample.correct)
    ranked = [groups[score] for score in sorted(groups, reverse=True)]
    reached_G = np.cumsum([len(group) for group in ranked])
    chance_G_K = np.diff(pass_at_ks(len(samples), reached_G, ks), axis=0, prepend=0.0)
    share_G = np.array([sum(bool(right) for right in group) / len(group) for group in ranked])
    values: NDArray[np.float64] = share_G @ chance_G_K
    return values


def _majority(samples: Sequence[Sample], ks: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    if len(samples) > EXACT_LIMIT:
        return _vote(samples, np.ones(len(samples)), ks, seed)
    groups: dict[str, list[bool | None]] = {}
    for sample in samples:
        if sample.answer is not None:
            groups.setdefault(sample.answer, []).append(sample.correct)
    # Sorted, so that problems with the same shape share one cached table.
    shape = sorted((len(group), sum(map(bool, group)) / len(group)) for group in groups.values())
    silent = len(samples) - sum(size for size, _ in shape)
    return majority_values(tuple(shape), silent)[ks - 1]


def _vote(
    samples: Sequence[Sample], weights: NDArray[np.float64], ks: NDArray[np.int64], seed: int
) -> NDArray[np.float64]:
    """Return the mean over subsets of the winner's value, the heaviest answer among those drawn winning."""
    answers = sorted({sample.answer for sample in samples if sample.answer is not None})
    if not answers:
        return np.zeros(ks.size)
    place = {answer: index for index, answer in enumerate(answers)}
    # Those without an answer are counted in a column of their own, which no vote reads.
    group = np.array([len(answers) if s.answer is None else place[s.answer] for s in samples])
    right = np.bincount(group, weights=[bool(sample.correct) for sample in samples], minlength=len(answers) + 1)
    share_A = (right / np.maximum(np.bincount(group, minlength=len(answers) + 1), 1))[:-1]
    return np.array([_mean_win(subsets(len(samples), k, seed), group, weights, share_A) for k in ks.tolist()])


def _mean_win(
    drawn_S_k: NDArray[np.int32], group: NDArray[np.int64], weights: NDArray[np.float64], share_A: NDArray[np.float64]
) -> float:
    rows, columns = drawn_S_k.shape[0], share_A.size + 1
    cells = (np.arange(rows)[:, None] * columns + group[drawn_S_k]).ravel()
    present = np.bincount(cells, minlength=rows * columns).reshape(rows, columns)[:, :-1] > 0
    total = np.bincount(cells, weights=weights[drawn_S_k].ravel(), minlength=rows * columns).reshape(rows, columns)
    total = np.where(present, total[:, :-1], -np.inf)
    best = total.max(axis=1, keepdims=True)
    # Sums of the same weights in another order differ in the last bits: they are a tie.
    tied = present & (total >= best - 1e-9 * np.abs(best))
    winners = tied.sum(axis=1)
    value = np.divide((tied * share_A).sum(axis=1), winners, out=np.zeros(rows), where=winners > 0)
    return float(value.mean())


def _weights(samples: Sequence[Sample], weighting: Weighting) -> NDArray[np.float64]:
    scores = [_score(sample) for sample in samples]
    if weighting == "exp":
        # The largest score is taken off first: it scales every weight of the problem alike and keeps exp finite.
        top = max((score for score in scores if score is not None), default=0.0)
        return np.array([0.0 if score is None else math.exp(score - top) for score in scores])
    if weighting != "score":
        raise ValueError(f"weighting {weighting!r}: valid are 'score', 'exp'")
    if negative := [score for score in scores if score is not None and score < 0]:
        raise ValueError(f"score {negative[0]!r}: a vote cannot weigh less than 0; use weighting='exp' for such scores")
    return np.array([0.0 if score is None else score for score in scores])


def _score(sample: Sample) -> float | None:
    return None if sample.score is None or math.isnan(sample.score) else sample.score
