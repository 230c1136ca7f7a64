"""What a system took per problem and per solved problem: tokens, dollars, seconds, FLOPs.

An unknown stays unknown: one problem whose tokens or dollars are not known makes the total None, printed as
"not known", and the number of such problems is kept. Nothing here ever reads None as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from archon.report.records import Record

Weights = tuple[tuple[str, int], ...]
"""A layer's label and the weights of its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """One quantity summed over problems."""

    total: float | None
    """None: not known for at least one problem."""
    per_problem: float | None
    per_solved: float | None
    """Total over solved problems; None too when none was solved."""
    unknown: int
    """Problems for which it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a system took, whoever paid: answers from a cache count as if they had been asked for."""

    problems: int
    solved: int
    calls: Spend
    prompt_tokens: Spend
    completion_tokens: Spend
    tokens: Spend
    usd: Spend
    paid_usd: Spend
    """Dollars less what a cache saved."""
    critical_s: Spend
    """Seconds on the longest chain of dependent work, summed over problems."""
    flops: Spend
    """2·N per token, N the weights of the model that read or wrote it; unknown when N is not."""
    critical_p50_s: float | None
    critical_p95_s: float | None
    wall_p50_s: float | None
    """The median of the seconds solves took on the machine, queues included, where recorded."""


def cost_of(records: Sequence[Record], parameters: Weights = ()) -> Cost:
    """Return what the records took; `parameters` as `RunInfo` has them."""
    solved = sum(record.correct is True for record in records)

    def spend(read: Callable[[Record], float | None]) -> Spend:
        return _spend([read(record) for record in records], solved)

    seconds = [record.usage.critical_s for record in records]
    return Cost(
        problems=len(records),
        solved=solved,
        calls=spend(lambda record: record.usage.calls),
        prompt_tokens=spend(lambda record: record.usage.prompt_tokens),
        completion_tokens=spend(lambda record: record.usage.completion_tokens),
        tokens=spend(lambda record: record.usage.tokens),
        usd=spend(lambda record: record.usage.cost_usd),
        paid_usd=spend(lambda record: record.usage.paid_usd),
        critical_s=spend(lambda record: record.usage.critical_s),
        flops=spend(lambda record: flops_of(record, parameters)),
        critical_p50_s=quantile(seconds, 0.5),
        critical_p95_s=quantile(seconds, 0.95),
        wall_p50_s=quantile([record.wall_s for record in records if record.wall_s is not None], 0.5),
    )


def flops_of(record: Record, parameters: Weights) -> float | None:
    """Return 2·N per token of one solve, N the weights of each layer's own model.

    None when the tokens or the weights of one layer that made calls are not known.
    """
    weights = dict(parameters)
    called = [use for use in record.layers if use.usage.calls]
    if record.usage.calls != sum(use.usage.calls for use in called):
        return None
    total = 0.0
    for use in called:
        if use.usage.tokens is None or use.layer not in weights:
            return None
        total += 2.0 * weights[use.layer] * use.usage.tokens
    return total


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the linearly interpolated quantile; None for no values."""
    return float(np.quantile(np.array(values, dtype=np.float64), share)) if values else None


def _spend(values: Sequence[float | None], solved: int) -> Spend:
    known = [value for value in values if value is not None]
    unknown = len(values) - len(known)
    total = None if unknown else float(sum(known))
    return Spend(
        total=total,
        per_problem=None if total is None or not values else total / len(values),
        per_solved=None if total is None or not solved else total / solved,
        unknown=unknown,
    )
