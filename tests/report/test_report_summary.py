from __future__ import annotations

from dataclasses import replace

import pytest
from report_runs import info, made_run, record

from archon.errors import RunError
from archon.report.records import Run, Sample
from archon.report.sampling import OWN_ANSWER, sampling_of
from archon.report.summary import summarise


def test_not_judged_is_left_out_of_the_accuracy_and_counted():
    run = Run(
        info=info(),
        records=(
            record("a", True),
            record("b", None),
            record("c", False, status="abstained", notes=("all_rejected: abstain", "all_rejected: abstain")),
            record("d", False, status="error", error="ModelUnavailable: refused\nTraceback"),
        ),
    )
    seen = summarise(run)
    assert (seen.problems, seen.judged, seen.not_judged, seen.solved) == (4, 3, 1, 1)
    assert seen.accuracy is not None
    assert seen.accuracy.value == pytest.approx(1 / 3)
    assert dict(seen.statuses) == {"answered": 2, "abstained": 1, "error": 1}
    assert seen.errors == (("ModelUnavailable: refused", 1),)
    assert seen.notes == (("all_rejected: abstain", 1),)
    assert seen.sampling is None
    assert seen.pass_at_k is None
    assert seen.levels == ()


def test_nothing_judged_has_no_accuracy():
    assert summarise(Run(info=info(), records=(record("a", None),))).accuracy is None


def test_a_whole_run_and_its_determinism():
    run = made_run(problems=30)
    seen = summarise(run)
    assert seen == summarise(run)
    assert seen != summarise(run, seed=1)
    assert seen.sampling is not None
    assert seen.sampling.k == 8
    assert [curve.name for curve in seen.sampling.selectors] == ["majority", "best_of_n", "weighted_best_of_n"]
    assert [gap.selector for gap in seen.sampling.gaps][-1] == OWN_ANSWER
    assert [row.layer for row in seen.layers] == ["generator", "critic", "verifier"]
    assert [level.difficulty for level in seen.levels] == [1, 2, 3]
    assert dict(seen.parses)["truncated"] == seen.verdicts_not_judged == 5


def test_one_failure_does_not_lower_the_headline_k():
    full = tuple(Sample(correct=True, answer="4") for _ in range(4))
    hurt = (*full[:3], Sample(correct=None, answer="4"))
    seen = sampling_of(
        [record("a", True, samples=full), record("b", True, samples=full), record("c", True, samples=hurt)]
    )
    assert seen is not None
    assert seen.k == 4
    assert seen.coverage.at(4).problems == 2
    assert seen.coverage.undefined == (0, 0, 0, 1)
    assert (seen.samples, seen.not_judged, seen.without_score) == (12, 1, 11)


def test_every_sample_not_judged_is_no_sampling():
    assert sampling_of([record("a", None, samples=(Sample(correct=None),))]) is None
    assert sampling_of([record("a", True)]) is None


def test_negative_scores_are_weighed_by_exp():
    samples = tuple(Sample(correct=True, answer="4", score=score) for score in (-1.0, 2.0))
    seen = sampling_of([record("a", True, samples=samples)])
    assert seen is not None
    assert seen.weighting == "exp"


def test_large_n_keeps_coverage_at_every_k_and_selectors_at_some():
    samples = tuple(Sample(correct=i % 9 == 0, answer=str(i % 9), score=(i % 13) / 13) for i in range(150))
    seen = sampling_of([record("a", True, samples=samples), record("b", True, samples=samples[::-1])])
    assert seen is not None
    assert len(seen.coverage.ks) == 150
    assert len(seen.selectors[0].ks) < 120
    assert seen.selectors[0].ks[-1] == 150


def test_a_damaged_run_is_refused():
    run = made_run(problems=3)
    with pytest.raises(RunError, match="recorded twice"):
        summarise(replace(run, records=(*run.records, run.records[0])))
