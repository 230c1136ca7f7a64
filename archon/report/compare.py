"""Paired comparison of two runs on the problems they share.

Accuracy: McNemar's exact test on the problems where just one of the two is right, and the bootstrap over problems of
the difference. Tokens, dollars, seconds and FLOPs: the same bootstrap. A pair of which either side is not judged (or
not known) is left out of that figure and counted.

Source: McNemar 1947, in its exact binomial form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

from archon.errors import RunError
from archon.report.cost import flops_of
from archon.report.intervals import Estimate, bootstrap_mean
from archon.report.records import Record, Run

Key = tuple[str, str]
"""Task and problem id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Second run less first run, per problem."""

    quantity: str
    estimate: Estimate | None
    """None when no shared problem has it on both sides."""
    unknown: int
    """Shared problems that are left out because a side is not judged or not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`second` against `first`: every difference is second − first."""

    first: str
    second: str
    shared: int
    only_first: int
    """Problems that only the first run has."""
    only_second: int
    both_right: int
    only_first_right: int
    only_second_right: int
    both_wrong: int
    not_judged: int
    """Shared problems of which either side is not judged."""
    first_accuracy: float | None
    """On the shared problems that both sides judged; None when there are none."""
    second_accuracy: float | None
    p_value: float
    """McNemar's exact two-sided test that the two are equally often right."""
    accuracy: Difference
    tokens: Difference
    usd: Difference
    critical_s: Difference
    flops: Difference


def compare(first: Run, second: Run, *, seed: int = 0) -> Comparison:
    """Compare two runs problem by problem.

    Raises:
        RunError: they share no problem, or one of them has a problem twice.
    """
    a, b = by_problem(first), by_problem(second)
    shared = [key for key in a if key in b]
    if not shared:
        tasks = f"{first.info.task!r} and {second.info.task!r}"
        raise RunError(f"no problem is in both runs (tasks {tasks}): compare runs of the same problems")
    pairs = [(a[key], b[key]) for key in shared]
    outcomes = [(x.correct, y.correct) for x, y in pairs if x.correct is not None and y.correct is not None]
    only_a, only_b = outcomes.count((True, False)), outcomes.count((False, True))
    both = outcomes.count((True, True))

    def difference(quantity: str, of_a: Reader, of_b: Reader) -> Difference:
        return _difference(quantity, [(of_a(x), of_b(y)) for x, y in pairs], seed)

    def same(quantity: str, of: Reader) -> Difference:
        return difference(quantity, of, of)

    return Comparison(
        first=first.info.system,
        second=second.info.system,
        shared=len(shared),
        only_first=len(a) - len(shared),
        only_second=len(b) - len(shared),
        both_right=both,
        only_first_right=only_a,
        only_second_right=only_b,
        both_wrong=outcomes.count((False, False)),
        not_judged=len(pairs) - len(outcomes),
        first_accuracy=(both + only_a) / len(outcomes) if outcomes else None,
        second_accuracy=(both + only_b) / len(outcomes) if outcomes else None,
        p_value=mcnemar(only_a, only_b),
        accuracy=same("accuracy", lambda record: record.correct),
        tokens=same("tokens per problem", lambda record: record.usage.tokens),
        usd=same("dollars per problem", lambda record: record.usage.cost_usd),
        critical_s=same("critical-path seconds per problem", lambda record: record.usage.critical_s),
        flops=difference(
            "FLOPs per problem",
            lambda record: flops_of(record, first.info.parameters),
            lambda record: flops_of(record, second.info.parameters),
        ),
    )


def mcnemar(only_first: int, only_second: int) -> float:
    """Return McNemar's exact two-sided p-value: a fair coin over the problems where just one side is right."""
    trials, fewer = only_first + only_second, min(only_first, only_second)
    tail = sum(comb(trials, wins) for wins in range(fewer + 1))
    return min(1.0, float(Fraction(2 * tail, 1 << trials)))


def by_problem(run: Run) -> dict[Key, Record]:
    """Return a run's records by task and problem id.

    Raises:
        RunError: a problem is there twice, or a record is of another system than the run.
    """
    records: dict[Key, Record] = {}
    for record in run.records:
        key = (record.task, record.problem_id)
        if record.system != run.info.system:
            raise RunError(f"a run of {run.info.system!r} holds a record of {record.system!r}: one system per run")
        if key in records:
            raise RunError(f"problem {key[1]!r} of {key[0]!r} is recorded twice: each counts once")
        records[key] = record
    return records


Reader = Callable[[Record], float | None]


def _difference(quantity: str, pairs: list[tuple[float | None, float | None]], seed: int) -> Difference:
    known = [float(y) - float(x) for x, y in pairs if x is not None and y is not None]
    return Difference(quantity=quantity, estimate=bootstrap_mean(known, seed), unknown=len(pairs) - len(known))
