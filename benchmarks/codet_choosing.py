"""Ways of choosing one sample by what all samples did on tests: each returns the samples that it leaves equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from archon.layers.agreement import Observation, agreement
from archon.layers.discrimination import discriminate
from archon.layers.dual_agreement import Form, dual_agreement
from archon.types import UnitTest


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem with what its samples did."""

    tests: tuple[UnitTest, ...]
    written: tuple[int, ...]
    """How often each test was written."""
    observed: tuple[tuple[Observation, ...], ...]
    """For each sample, one observation for each test."""
    trivial: tuple[tuple[Observation, ...], ...]
    """The same for the trivial programs."""
    right: tuple[bool, ...]
    """For each sample, whether it passes the problem's own hidden tests."""


Choice = Callable[[Case], Sequence[int]]
"""The samples that a way of choosing leaves equal at the top."""


def drawn(case: Case, samples: int, tests: int, rng: np.random.Generator) -> Case:
    """Return the case of a smaller solve: so many of its samples and at most so many of its tests, without repeats."""
    rows = rng.choice(len(case.right), size=samples, replace=False)
    columns = np.sort(rng.permutation(len(case.tests))[:tests])
    return Case(
        tests=tuple(case.tests[t] for t in columns),
        written=tuple(case.written[t] for t in columns),
        observed=tuple(tuple(case.observed[i][t] for t in columns) for i in rows),
        trivial=tuple(tuple(each[t] for t in columns) if each else () for each in case.trivial),
        right=tuple(case.right[i] for i in rows),
    )


def top(scores: Sequence[float | None]) -> list[int]:
    """Return the places of the highest score; all of them when there is none."""
    best = max((score for score in scores if score is not None), default=None)
    return [i for i, score in enumerate(scores) if score == best]


def by_passes(case: Case, kept: Sequence[bool]) -> list[int]:
    """Choose those that pass the most tests."""
    return top([sum(o.passed is True for o, k in zip(each, kept, strict=True) if k) for each in case.observed])


def by_dual(case: Case, kept: Sequence[bool], form: Form = "sqrt", *, weighed: bool = False) -> Sequence[int]:
    """Choose by dual execution agreement; weighed: a test counts as often as it was written."""
    columns = [t for t, k in enumerate(kept) if k for _ in range(case.written[t] if weighed else 1)]
    rows = [[each[t].passed for t in columns] for each in case.observed]
    return dual_agreement(rows, form=form).best or range(len(rows))


def by_values(case: Case, kept: tuple[bool, ...] | None) -> list[int]:
    """Choose as the layers do by default: by the values that programs agree on, and weighed tests."""
    return top(agreement(case.tests, case.observed, kept).scores)


def everything(case: Case) -> tuple[bool, ...]:
    """Keep every test."""
    return (True,) * len(case.tests)


def discriminating(case: Case) -> tuple[bool, ...]:
    """Keep the tests that tell programs apart."""
    return discriminate(case.tests, case.observed, case.trivial).kept


WAYS: dict[str, Choice] = {
    "any one": lambda case: range(len(case.right)),
    "first sample": lambda _: (0,),
    "passes": lambda case: by_passes(case, everything(case)),
    "passes, undiscriminating tests dropped": lambda case: by_passes(case, discriminating(case)),
    "dual agreement": lambda case: by_dual(case, everything(case)),
    "dual agreement, undiscriminating tests dropped": lambda case: by_dual(case, discriminating(case)),
    "dual agreement, tests weighed": lambda case: by_dual(case, everything(case), weighed=True),
    "dual agreement, product form": lambda case: by_dual(case, everything(case), "product"),
    "agreement on values": lambda case: by_values(case, None),
    "agreement on values, undiscriminating tests dropped": lambda case: by_values(case, discriminating(case)),
}
