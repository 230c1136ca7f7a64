"""Dual execution agreement: programs that pass exactly the same tests vouch for each other, and for those tests.

Source: Chen et al. 2022, CodeT (arXiv 2207.10397). A consensus set is the programs that pass the same tests, with those
tests; the paper scores it by their product, size × tests. The authors' own program takes the square root of the size,
so that a crowd of programs that pass little does not win, and so does `form="sqrt"`, the default here; `"product"` is
the paper's. Differs from both: a test counts once however often it was written (repeat its column to weigh it), and an
outcome that was not judged is neither passed nor failed, so it sets a program apart from those that have either.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcomes = Sequence[bool | None]
"""One program's outcome on each test: passed, failed, or not judged."""
Form = Literal["sqrt", "product"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DualAgreement:
    """What the consensus sets say of the candidates."""

    scores: tuple[float | None, ...]
    """In [0, 1] for each candidate: 1 when all candidates pass all tests; None where no test was judged."""
    order: tuple[int, ...]
    """The candidates best first; those with equal scores as they came, those without a score last."""
    best: tuple[int, ...]
    """All candidates that share the best score, of one consensus set or of several; () when none has a score."""


def dual_agreement(outcomes: Sequence[Outcomes], *, form: Form = "sqrt") -> DualAgreement:
    """Return the candidates' scores, from one row of outcomes for each.

    Only candidates with a judged outcome count towards the largest score that there can be.
    """
    rows = [tuple(row) for row in outcomes]
    sizes = Counter(row for row in rows if _judged(row))
    merits = [_merit(row, sizes[row], form) if _judged(row) else None for row in rows]
    everyone = sizes.total()
    scores = tuple(
        None if merit is None else _share(merit, everyone, len(row), form)
        for merit, row in zip(merits, rows, strict=True)
    )
    order = sorted(range(len(rows)), key=lambda i: _worst_last(merits[i]))
    top = max((merit for merit in merits if merit is not None), default=None)
    best = tuple(i for i, merit in enumerate(merits) if merit is not None and merit == top)
    return DualAgreement(scores=scores, order=tuple(order), best=best)


def _judged(row: tuple[bool | None, ...]) -> bool:
    return any(outcome is not None for outcome in row)


def _merit(row: tuple[bool | None, ...], size: int, form: Form) -> int:
    """Return a whole number that orders as the score does: ties are then exact, 4 programs × 2² = 1 program × 4²."""
    passed = sum(outcome is True for outcome in row)
    return size * passed**2 if form == "sqrt" else size * passed


def _share(merit: int, candidates: int, tests: int, form: Form) -> float:
    if form == "sqrt":
        return math.sqrt(merit / (candidates * tests**2))
    return merit / (candidates * tests)


def _worst_last(merit: int | None) -> int:
    return 1 if merit is None else -merit
