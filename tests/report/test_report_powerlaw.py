from __future__ import annotations

import numpy as np
import pytest

from archon.report.coverage import Curve, coverage
from archon.report.passk import log_spaced
from archon.report.powerlaw import NoFit, PowerLaw, fit_power_law


def curve_from(law, largest=1000) -> Curve:
    ks = log_spaced(largest, 60)
    mean = tuple(np.array([law(k) for k in ks.tolist()]).tolist())
    nothing = (0,) * ks.size
    return Curve(
        name="coverage", ks=tuple(ks.tolist()), mean=mean, low=mean, high=mean, problems=nothing, undefined=nothing
    )


def test_finds_the_law_that_made_the_curve_and_extrapolates():
    fit = fit_power_law(curve_from(lambda k: np.exp(-2.0 * k**-0.4)))
    assert isinstance(fit, PowerLaw)
    assert (fit.a, fit.b) == pytest.approx((-2.0, -0.4), abs=1e-6)
    assert fit.poor is None
    assert fit.points <= 40
    assert fit.predict(100_000) == pytest.approx(np.exp(-2.0 * 100_000**-0.4))


def test_a_poor_fit_refuses_to_extrapolate_and_says_why():
    fit = fit_power_law(curve_from(lambda k: 0.1 if k < 100 else 0.8))
    assert isinstance(fit, PowerLaw)
    assert fit.poor is not None
    with pytest.raises(ValueError, match=r"no extrapolation to k=2000 from k <= 1000: the fit is off by"):
        fit.predict(2000)
    assert 0 <= fit.predict(500) <= 1  # within the measured range it may still be drawn
    with pytest.raises(ValueError, match="k=0"):
        fit.predict(0)


def test_a_curve_that_saturates_below_one_is_poor():
    fit = fit_power_law(curve_from(lambda k: 0.5 * (1 - 0.9**k)))
    assert isinstance(fit, PowerLaw)
    assert fit.poor is not None


@pytest.mark.parametrize(
    ("n", "c", "reason"),
    [([4], [1], "4 values of k"), ([50, 50], [0, 0], "no problem was solved"), ([50], [50], "coverage is 1")],
)
def test_no_fit_where_there_is_nothing_to_fit(n, c, reason):
    fit = fit_power_law(coverage(n, c, resamples=10))
    assert isinstance(fit, NoFit)
    assert reason in fit.reason


def test_few_ks_do_not_extrapolate():
    fit = fit_power_law(curve_from(lambda k: np.exp(-2.0 * k**-0.4), largest=8))
    assert isinstance(fit, PowerLaw)
    assert fit.poor is not None
    assert "square root" in fit.poor


def test_only_ks_at_which_no_problem_drops_out_are_fitted():
    fit = fit_power_law(coverage([20, 20, 40], [2, 5, 1], resamples=10))
    assert isinstance(fit, PowerLaw)
    assert fit.largest_k == 20


def test_real_curves_of_ten_thousand_samples(read_data):
    rows = read_data("09_llm_monkeys_math_pythia_counts.jsonl.gz")
    own = [row for row in rows if row["model"] == "Pythia 12B"]
    n, c = [row["n"] for row in own], [row["c"] for row in own]
    short, whole = (
        fit_power_law(coverage(n, c, log_spaced(1000, 60), resamples=10)),
        coverage(n, c, [10_000]).at(10_000),
    )
    assert isinstance(short, PowerLaw)
    assert short.poor is None
    assert short.r2 is not None
    assert short.r2 > 0.99
    assert short.predict(10_000) == pytest.approx(whole.value, abs=0.05)
