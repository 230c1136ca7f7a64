"""What a report says first: the results in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from archon.report.compare import Comparison
from archon.report.format import NAMES, ends, estimate, p_value, percent, points
from archon.report.grids import Named
from archon.report.summary import Summary


def findings(named: Named, compared: Sequence[tuple[str, str, Comparison]]) -> tuple[str, ...]:
    """Return one sentence per result, most important first."""
    sentences = [_against(name, base, comparison) for name, base, comparison in compared]
    if not sentences:
        sentences = [
            f"{name} solves {estimate(summary.accuracy)} of {summary.judged:,} judged problems."
            for name, summary in named
        ]
    return (*sentences, *(sentence for name, summary in named for sentence in _samples(name, summary)))


def _against(name: str, base: str, compared: Comparison) -> str:
    difference = compared.accuracy.estimate
    if difference is None:
        return f"{name} and {base} share {compared.shared:,} problems, none of which both sides judged."
    low, high = difference.interval.low, difference.interval.high
    verdict = "better" if low > 0 else "worse" if high < 0 else "not told apart from it by these problems"
    tokens = ""
    if compared.tokens.estimate is not None:
        tokens = f", for {compared.tokens.estimate.value:+,.0f} tokens a problem"
    return (
        f"{name} solves {percent(compared.second_accuracy)} and {base} {percent(compared.first_accuracy)} of "
        f"{difference.problems:,} shared problems: {points(difference)}, McNemar p {_equals(compared.p_value)}"
        f"{tokens}. It is {verdict}."
    )


def _samples(name: str, summary: Summary) -> list[str]:
    sampling = summary.sampling
    if sampling is None or sampling.k < 2 or not sampling.gaps:
        return []
    best = max(sampling.gaps, key=lambda gap: gap.precision)
    sentence = (
        f"{name}: one sample is right on {percent(best.pass_at_1)}, at least one of {sampling.k} on "
        f"{percent(best.coverage)}; {NAMES[best.selector]} gets {percent(best.precision)}"
    )
    if best.share_closed is not None and best.share_interval is not None:
        sentence += f" and so closes {percent(best.share_closed)} {ends(best.share_interval)} of that gap"
    return [sentence + "."]


def _equals(p: float) -> str:
    written = p_value(p)
    return written if written.startswith("<") else f"= {written}"
