from __future__ import annotations

import math
from itertools import combinations
from random import Random

import numpy as np
import pytest

from archon.report.majority import EXACT_LIMIT, majority_values
from archon.report.records import Sample
from archon.report.selectors import SELECTORS, available, selector_values
from archon.report.subsets import DRAWN, subsets


def values(selector, samples, ks=None, **settings):
    ks = np.arange(1, len(samples) + 1) if ks is None else np.array(ks)
    return selector_values(selector, [samples], ks, **settings)[0]


def brute(selector: str, samples: list[Sample], k: int) -> float:
    """Enumerate subsets, and choose as plainly as can be written."""
    total = []
    for chosen in combinations(samples, k):
        if selector == "best_of_n":
            key = [-math.inf if sample.score is None else sample.score for sample in chosen]
            tied = [sample.correct for sample, score in zip(chosen, key, strict=True) if score == max(key)]
            total.append(sum(tied) / len(tied))
            continue
        weight: dict[str, float] = {}
        for sample in chosen:
            if sample.answer is not None:
                worth = 1.0 if selector == "majority" else (sample.score or 0.0)
                weight[sample.answer] = weight.get(sample.answer, 0.0) + worth
        winners = [answer for answer in weight if weight[answer] >= max(weight.values()) - 1e-9]
        # A winning answer is worth what its samples are worth over the whole problem.
        worth_of = {
            answer: np.mean([sample.correct for sample in samples if sample.answer == answer]) for answer in winners
        }
        total.append(sum(worth_of.values()) / len(winners) if winners else 0.0)
    return sum(total) / len(total)


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("seed", range(12))
def test_every_subset_of_every_small_problem(selector, seed):
    rng = Random(seed)
    for n in range(1, 9):
        samples = [
            Sample(
                correct=rng.random() < 0.4,
                answer=rng.choice(["1", "2", "3", None]),
                score=rng.choice([0.0, 0.25, 0.5, 1.0, None]),
            )
            for _ in range(n)
        ]
        seen = values(selector, samples)
        wanted = [brute(selector, samples, k) for k in range(1, n + 1)]
        assert seen == pytest.approx(wanted, abs=1e-12), samples


def test_a_tie_pays_the_mean_and_not_the_first():
    right, wrong = Sample(correct=True, answer="4", score=0.5), Sample(correct=False, answer="5", score=0.5)
    for selector in SELECTORS:
        assert values(selector, [right, wrong], [2]) == pytest.approx([0.5])
        assert values(selector, [wrong, right], [2]) == pytest.approx([0.5])


def test_unread_answers_do_not_vote_and_an_empty_vote_is_wrong():
    unread = [Sample(correct=True, answer=None)] * 2
    assert values("majority", [*unread, Sample(correct=True, answer="4")], [3]) == pytest.approx([1.0])
    assert values("majority", unread, [1, 2]) == pytest.approx([0.0, 0.0])


def test_samples_not_judged_are_left_out():
    samples = [Sample(correct=True, answer="4"), Sample(correct=None, answer="5"), Sample(correct=None, answer="5")]
    seen = values("majority", samples)
    assert seen[0] == 1.0
    assert np.isnan(seen[1:]).all()


def test_a_sample_without_score_is_best_of_n_s_last_resort():
    scored, unscored = Sample(correct=False, score=0.0), Sample(correct=True, score=None)
    assert values("best_of_n", [unscored, scored], [1, 2]) == pytest.approx([0.5, 0.0])
    assert values("best_of_n", [unscored, Sample(correct=False, score=math.nan)], [2]) == pytest.approx([0.5])


def test_negative_scores_cannot_weigh_a_vote_as_they_are():
    samples = [Sample(correct=True, answer="4", score=-1.0), Sample(correct=False, answer="5", score=-2.0)]
    with pytest.raises(ValueError, match=r"score -1.0: a vote cannot weigh less than 0"):
        values("weighted_best_of_n", samples)
    assert values("weighted_best_of_n", samples, [2], weighting="exp") == pytest.approx([1.0])
    with pytest.raises(ValueError, match="weighting 'log'"):
        values("weighted_best_of_n", samples, weighting="log")


def test_exp_weights_of_large_scores_stay_finite():
    samples = [Sample(correct=True, answer="4", score=5000.0), Sample(correct=False, answer="5", score=4999.0)]
    assert values("weighted_best_of_n", samples, [2], weighting="exp") == pytest.approx([1.0])


def test_an_unknown_selector_is_refused():
    with pytest.raises(ValueError, match="selector 'oracle': valid are majority"):
        values("oracle", [Sample(correct=True)])


def test_available_needs_what_the_selector_reads():
    assert not available("majority", [[Sample(correct=True, score=1.0)]])
    assert available("best_of_n", [[Sample(correct=True, score=1.0)]])
    assert not available("weighted_best_of_n", [[Sample(correct=True, score=1.0), Sample(correct=True, answer="4")]])
    assert not available("best_of_n", [[Sample(correct=None, score=1.0)]])


def test_the_exact_vote_agrees_with_drawn_subsets_at_fifty_samples():
    groups = ((20, 0.0), (17, 1.0), (6, 0.0), (1, 1.0))
    seen = majority_values(groups, silent=6)
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 2, 3, 4], [20, 17, 6, 1, 6])
    for k in (3, 12, 40):
        total = 0.0
        for _ in range(4000):
            votes = np.bincount(labels[rng.choice(50, k, replace=False)], minlength=5)[:4]
            winners = np.flatnonzero(votes == votes.max()) if votes.max() else []
            total += np.mean([groups[g][1] for g in winners]) if len(winners) else 0.0
        assert seen[k - 1] == pytest.approx(total / 4000, abs=0.03)
    assert seen[49] == 0.0
    with pytest.raises(ValueError, match="at most 100"):
        majority_values(((EXACT_LIMIT + 1, 1.0),), 0)


def test_many_samples_are_voted_over_seeded_subsets():
    samples = [Sample(correct=i < 80, answer="right" if i < 80 else f"wrong {i % 7}") for i in range(150)]
    seen = values("majority", samples, [1, 150], seed=3)
    assert seen[0] == pytest.approx(80 / 150)
    assert seen[1] == 1.0
    assert values("majority", samples, [20], seed=3) == values("majority", samples, [20], seed=3)


def test_subsets_are_all_of_them_or_a_fair_draw():
    assert subsets(5, 2, 0).tolist() == [list(pair) for pair in combinations(range(5), 2)]
    drawn = subsets(40, 20, 0)
    assert drawn.shape == (DRAWN, 20)
    assert all(len(set(row)) == 20 for row in drawn.tolist())
    assert np.bincount(drawn.ravel(), minlength=40) == pytest.approx(np.full(40, DRAWN / 2), abs=60)


def test_published_selection_of_eight_samples(read_data):
    rows = read_data("04_qwen25math_bon8_rm_scores.jsonl.gz")
    problems = [
        [
            Sample(correct=right, answer=answer, score=score)
            for right, answer, score in zip(row["correct"], row["preds"], row["rm_scores"], strict=True)
        ]
        for row in rows
    ]
    ks = np.array([1, 8])
    best = selector_values("best_of_n", problems, ks).mean(axis=0)
    weighted = selector_values("weighted_best_of_n", problems, ks, weighting="exp").mean(axis=0)
    assert best == pytest.approx([0.91, 0.94])
    assert weighted == pytest.approx([0.91, 0.94])
    # 93 is published with ties going to one side: the fair figure lies among all ways of breaking them.
    majority = selector_values("majority", problems, ks)[:, 1]
    assert np.floor(majority).sum() <= 93 <= np.ceil(majority).sum()
    assert majority.mean() == pytest.approx(0.925)
