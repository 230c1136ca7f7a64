"""The tables of a report as plain text cells: made once here, drawn by the HTML, Markdown and terminal outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from archon.report.compare import Comparison, Difference
from archon.report.cost import Spend
from archon.report.format import (
    NAMES,
    NONE,
    NOT_KNOWN,
    count,
    ends,
    estimate,
    flops,
    p_value,
    percent,
    points,
    seconds,
    tally,
    usd,
)
from archon.report.ledger import LedgerRow
from archon.report.powerlaw import NoFit
from archon.report.sampling import Sampling
from archon.report.summary import Summary

Named = Sequence[tuple[str, Summary]]
"""Summaries with the names that their runs go by in this report."""
Writer = Callable[[float | None], str]


SYSTEMS_NOTE = "Calls, tokens and dollars are means per problem; critical path: median and 95th percentile per problem."


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One table: a header and rows of text; the first column is names, the others are figures."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def systems(named: Named) -> Grid:
    """Return the headline table, one row per system; `SYSTEMS_NOTE` belongs under it."""
    ks = {found[0] for _, summary in named if (found := summary.pass_at_k)}
    same_k = f"pass@{next(iter(ks))}" if len(ks) == 1 else "pass@k"
    return Grid(
        columns=(
            "system",
            "n",
            "accuracy [95 %]",
            same_k,
            "calls",
            "tokens",
            "$",
            "critical p50",
            "p95",
        ),
        rows=tuple(_system(name, summary, with_k=len(ks) > 1) for name, summary in named),
    )


def _system(name: str, summary: Summary, *, with_k: bool) -> tuple[str, ...]:
    cost, found = summary.cost, summary.pass_at_k
    at_k = NONE if found is None else (f"k={found[0]}: " if with_k else "") + percent(found[1].value)
    judged = "" if summary.judged == summary.problems else f" ({summary.judged:,} judged)"
    return (
        name,
        f"{summary.problems:,}{judged}",
        estimate(summary.accuracy),
        at_k,
        count(cost.calls.per_problem),
        count(cost.tokens.per_problem),
        usd(cost.usd.per_problem),
        seconds(cost.critical_p50_s),
        seconds(cost.critical_p95_s),
    )


def comparisons(named: Sequence[tuple[str, str, Comparison]]) -> Grid:
    """Return one row per comparison, given as (name, name of the baseline, comparison)."""
    return Grid(
        columns=(
            "system",
            "accuracy",
            "difference [95 %]",
            "McNemar p",
            "only it right",
            "only the other",
            "tokens",
            "$",
            "critical path",
        ),
        rows=tuple(_comparison(name, compared) for name, _, compared in named),
    )


def _comparison(name: str, compared: Comparison) -> tuple[str, ...]:
    return (
        name,
        f"{percent(compared.second_accuracy)} against {percent(compared.first_accuracy)}",
        points(compared.accuracy.estimate),
        p_value(compared.p_value),
        f"{compared.only_second_right:,}",
        f"{compared.only_first_right:,}",
        _change(compared.tokens, count),
        _change(compared.usd, usd),
        _change(compared.critical_s, _plain_seconds),
    )


def left_out(name: str, base: str, compared: Comparison) -> str:
    """Say on how many problems a comparison rests, and which it leaves out."""
    return (
        f"{name} and {base} share {compared.shared:,} problems; {compared.not_judged:,} of them not judged on a "
        f"side and left out of the accuracy. Not shared: {compared.only_second:,} that only {name} has, "
        f"{compared.only_first:,} that only {base} has."
    )


def _change(difference: Difference, write: Writer) -> str:
    if difference.estimate is None:
        return NOT_KNOWN
    value, interval = difference.estimate.value, difference.estimate.interval
    sign = "+" if value > 0 else ""
    missing = f" ({difference.unknown:,} {NOT_KNOWN})" if difference.unknown else ""
    ends_text = "" if interval.low == interval.high else f" [{write(interval.low)}, {write(interval.high)}]"
    return f"{sign}{write(value)}{ends_text}{missing}"


def _plain_seconds(value: float | None) -> str:
    return NOT_KNOWN if value is None else f"{value:.2f} s"


def costs(named: Named) -> Grid:
    """Return what each system took per problem and, in the column beside it, per solved problem."""
    return Grid(
        columns=(
            "system",
            "solved",
            "tokens/problem",
            "per solved",
            "$/problem",
            "per solved",
            "critical path/problem",
            "per solved",
            "FLOPs/problem",
            "per solved",
        ),
        rows=tuple(
            (
                name,
                f"{summary.solved:,} of {summary.judged:,}",
                *_pair(summary.cost.tokens, count),
                *_pair(summary.cost.usd, usd),
                *_pair(summary.cost.critical_s, seconds),
                *_pair(summary.cost.flops, flops),
            )
            for name, summary in named
        ),
    )


def _pair(spend: Spend, write: Writer) -> tuple[str, str]:
    missing = "" if not spend.unknown else f" ({spend.unknown:,} problems)"
    if spend.total is None:
        return NOT_KNOWN + missing, NOT_KNOWN + missing
    return write(spend.per_problem), "none solved" if spend.per_solved is None else write(spend.per_solved)


def gaps(sampling: Sampling) -> Grid:
    """Return how far each selector comes from one sample towards coverage, at the headline k."""
    return Grid(
        columns=(
            f"selected from {sampling.k} samples by",
            "accuracy",
            "over one sample [95 % interval]",
            "left on the table",
            "share of the gap closed [95 % interval]",
            "problems",
        ),
        rows=tuple(
            (
                NAMES.get(gap.selector, gap.selector),
                percent(gap.precision),
                points(gap.lift),
                f"{100 * gap.gap:.1f} points",
                NONE
                if gap.share_closed is None or gap.share_interval is None
                else f"{percent(gap.share_closed)} {ends(gap.share_interval)}",
                f"{gap.problems:,}",
            )
            for gap in sampling.gaps
        ),
    )


def ledger_grid(rows: Sequence[LedgerRow]) -> Grid:
    """Return what each layer took and how its replies read."""
    return Grid(
        columns=(
            "layer",
            "kind",
            "problems",
            "calls",
            "tokens in",
            "tokens out",
            "dollars",
            "critical path p50",
            "p95",
            "replies read",
            "not judged",
        ),
        rows=tuple(
            (
                row.layer,
                row.kind,
                f"{row.problems:,}",
                f"{row.usage.calls:,}",
                count(row.usage.prompt_tokens),
                count(row.usage.completion_tokens),
                usd(row.usage.cost_usd),
                seconds(row.critical_p50_s),
                seconds(row.critical_p95_s),
                tally(row.parses),
                f"{row.not_judged:,}",
            )
            for row in rows
        ),
    )


def outcomes(named: Named) -> Grid:
    """Return how solves ended, and everything that was not judged or not read."""
    return Grid(
        columns=(
            "system",
            "right",
            "wrong",
            "not judged",
            "answered",
            "abstained",
            "stopped by budget",
            "errors",
            "samples not judged",
            "verdicts not judged",
            "replies read",
        ),
        rows=tuple(_outcome(name, summary) for name, summary in named),
    )


def _outcome(name: str, summary: Summary) -> tuple[str, ...]:
    statuses, sampling = dict(summary.statuses), summary.sampling
    return (
        name,
        f"{summary.solved:,}",
        f"{summary.judged - summary.solved:,}",
        f"{summary.not_judged:,}",
        *(f"{statuses.get(status, 0):,}" for status in ("answered", "abstained", "budget", "error")),
        NONE if sampling is None else f"{sampling.not_judged:,} of {sampling.samples:,}",
        f"{summary.verdicts_not_judged:,}",
        tally(summary.parses),
    )


def levels(named: Named) -> Grid | None:
    """Return accuracy by difficulty; None when no problem states one."""
    difficulties = {level.difficulty for _, summary in named for level in summary.levels}
    if not difficulties:
        return None
    order = sorted(difficulties, key=lambda level: (level is None, level or 0))
    tables = [{level.difficulty: level for level in summary.levels} for _, summary in named]
    return Grid(
        columns=("difficulty", *(name for name, _ in named)),
        rows=tuple(
            (
                "not stated" if level is None else str(level),
                *(
                    f"{estimate(table[level].accuracy)} of {table[level].problems:,}" if level in table else NONE
                    for table in tables
                ),
            )
            for level in order
        ),
    )


def power_law(sampling: Sampling) -> str:
    """Say what the power-law fit found, or why there is none or why it does not extrapolate."""
    fit = sampling.power_law
    if isinstance(fit, NoFit):
        return f"No power law: {fit.reason}."
    how = (
        f"coverage ≈ exp({fit.a:.3g}·k^{fit.b:.3g}) on {fit.points} values of k; mean error "
        f"{100 * fit.mean_error:.2f} ± {100 * fit.std_error:.2f} points, largest {100 * fit.max_error:.2f}"
    )
    if fit.poor is not None:
        return f"{how}. Not extrapolated: {fit.poor}."
    return f"{how}. Expected at k = {10 * fit.largest_k:,}: {percent(fit.predict(10 * fit.largest_k))} (extrapolated)."
