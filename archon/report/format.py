"""How figures are written for people: one rule per unit, the same in every output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from archon.report.intervals import Estimate, Interval
from archon.report.records import Run

NOT_KNOWN = "not known"
NONE = "–"

NAMES = {
    "coverage": "coverage (pass@k)",
    "majority": "majority vote",
    "best_of_n": "best-of-N by score",
    "weighted_best_of_n": "score-weighted vote",
    "own_answer": "the system's own answer",
}
"""What selectors are called in front of people."""


def percent(share: float | None) -> str:
    """Write a share as `56.1 %`."""
    return NOT_KNOWN if share is None else f"{100 * share:.1f} %"


def estimate(value: Estimate | None) -> str:
    """Write a share with its interval as `56.1 % [48.4, 63.5]`; None: nothing was judged."""
    return "not judged" if value is None else f"{percent(value.value)} {ends(value.interval)}"


def ends(interval: Interval) -> str:
    """Write an interval of shares in points: `[48.4, 63.5]`."""
    return f"[{_signless(100 * interval.low, 1)}, {_signless(100 * interval.high, 1)}]"


def points(value: Estimate | None) -> str:
    """Write a difference of shares with its interval as `+15.1 points [8.2, 21.9]`."""
    if value is None:
        return NOT_KNOWN
    return f"{_signed(100 * value.value, 1)} points {ends(value.interval)}"


def count(value: float | None) -> str:
    """Write a count or a mean of counts: `1,690`, `12.5`, `0.25`."""
    if value is None:
        return NOT_KNOWN
    if float(value).is_integer() or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.2f}"


def usd(value: float | None) -> str:
    """Write dollars: `$0`, `$0.00042`, `$12.30`."""
    if value is None:
        return NOT_KNOWN
    if value == 0:
        return "$0"
    sign = "-" if value < 0 else ""
    return f"{sign}${abs(value):,.2f}" if abs(value) >= 1 else f"{sign}${abs(value):.2g}"


def seconds(value: float | None) -> str:
    """Write seconds: `0.42 s`, `12.3 s`, `3 min 20 s`, `2 h 5 min`."""
    if value is None:
        return NOT_KNOWN
    if value < 99.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    whole = round(value)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def flops(value: float | None) -> str:
    """Write floating-point operations: `3.4 TFLOP`."""
    if value is None:
        return NOT_KNOWN
    for size, unit in ((1e18, "EFLOP"), (1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} FLOP"


def p_value(value: float) -> str:
    """Write a p-value: `0.031`, `< 0.001`."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def tally(counts: Sequence[tuple[str, int]]) -> str:
    """Write counts by name: `ok 12, failed 1`."""
    return ", ".join(f"{name} {number:,}" for name, number in counts) or NONE


def labels(runs: Sequence[Run]) -> tuple[str, ...]:
    """Return one name per run: its system, with the task where runs differ in it, numbered where still the same."""
    tasks = {run.info.task for run in runs}
    names = [run.info.system if len(tasks) < 2 else f"{run.info.system} on {run.info.task}" for run in runs]
    total, seen, out = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        out.append(name if total[name] == 1 else f"{name} ({seen[name]})")
    return tuple(out)


def printable(text: str) -> str:
    """Return the text with control characters written out, so that data cannot steer a terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _signed(value: float, digits: int) -> str:
    return f"{0.0 if round(value, digits) == 0 else value:+.{digits}f}"


def _signless(value: float, digits: int) -> str:
    return f"{0.0 if round(value, digits) == 0 else value:.{digits}f}"
