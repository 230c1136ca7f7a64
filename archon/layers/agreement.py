"""Chooses among programs by what they return on tests that may themselves be wrong.

The problem's own examples are trusted and come first. A weak model's tests are often wrong in the value that they
expect and still useful for their inputs, so programs are compared on two things: with how many others each one agrees
about the returned values, and which of the tests it passes, a test being worth more the more programs pass it.

Source: dual execution agreement, Chen et al. 2022 (arXiv 2207.10397): programs that pass the same tests form a group,
whose worth is its size times its tests. Differs: agreement is on returned values, as in minimum Bayes risk decoding
by execution (Shi et al. 2022, arXiv 2204.11454), and is counted test by test, so one odd input does not split a group;
and tests are weighted. On the 164 HumanEval problems with 8 of CodeGen-16B's programs and 8 of its tests (no examples),
that chooses a right program in 32.4 % of draws; group size times tests does in 30.5 %, the most tests passed in 28.2 %,
any one in 22.4 %. The weights were chosen on the same data, so a point of that may be luck.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from archon.types import UnitTest

_FLOOR = 0.2
"""The part of a program's worth that passing tests cannot take away: its agreement counts even if it passes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one program did on one test."""

    passed: bool | None
    """None: not run."""
    value: str | None = None
    """The returned value's repr; None when nothing was returned. Only returned values can agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The scores of a set of programs, and which tests they rest on."""

    scores: tuple[float | None, ...]
    """In [0, 1] for each program, ordered by examples passed, then by agreement; None where nothing was run."""
    counted: tuple[bool, ...]
    """For each test: whether its expected value is believed. Examples always are."""


def agreement(
    tests: Sequence[UnitTest],
    observed: Sequence[Sequence[Observation]],
    counted: tuple[bool, ...] | None = None,
) -> Agreement:
    """Return the scores of programs.

    Args:
        tests: the tests, examples among them.
        observed: for each program, one observation for each test.
        counted: for each test, whether its expected value is believed; None: as `believed` says.
    """
    counted = believed(tests, observed) if counted is None else counted
    examples = [t for t, test in enumerate(tests) if test.source == "example"]
    written = [t for t, test in enumerate(tests) if test.source == "model"]
    weights = [_belief(observed, t) if counted[t] else 0.0 for t in written]
    scores: list[float | None] = []
    for mine in observed:
        if all(one.passed is None for one in mine):
            scores.append(None)
            continue
        worth = (_FLOOR + _weighted(mine, written, weights)) / (_FLOOR + 1.0)
        within = _agreed(mine, observed, written) * worth
        scores.append(examples_first(mine, examples, within))
    return Agreement(scores=tuple(scores), counted=counted)


def examples_first(mine: Sequence[Observation], examples: Sequence[int], within: float) -> float:
    """Return a score in [0, 1] ordered by the share of examples that a program passes, then by `within`."""
    weight = len(examples) + 1  # so one example more weighs weight/len(examples) > 1, which no `within` outweighs
    return (weight * _passed(mine, examples) + within) / (weight + 1)


def believed(tests: Sequence[UnitTest], observed: Sequence[Sequence[Observation]]) -> tuple[bool, ...]:
    """Return for each test whether its expected value counts.

    A model's test does not when each of several programs fails it, or when a program that returns None or its first
    argument would pass it: such a test tells wrong programs from right ones the wrong way round too often.
    """
    return tuple(
        test.source == "example" or not (trivial(test) or _failed_by_all(observed, t)) for t, test in enumerate(tests)
    )


def trivial(test: UnitTest) -> bool:
    """Return whether a program that returns None, or its first argument, passes a code test."""
    if test.expected == "None":
        return True
    args = ast.literal_eval(test.args)
    return bool(args) and repr(args[0]) == test.expected


def _failed_by_all(observed: Sequence[Sequence[Observation]], t: int) -> bool:
    """Return whether several programs ran a test and none passed it; one program's failure says nothing of the test."""
    outcomes = [row[t].passed for row in observed if row[t].passed is not None]
    return len(outcomes) > 1 and not any(outcomes)


def _passed(mine: Sequence[Observation], chosen: Sequence[int]) -> float:
    """Return the share of the chosen tests that a program passes; 0 when there are none."""
    return sum(mine[t].passed is True for t in chosen) / len(chosen) if chosen else 0.0


def _belief(observed: Sequence[Sequence[Observation]], t: int) -> float:
    """Return how far a test is believed: the chance that two programs drawn with repetition both pass it."""
    return (sum(row[t].passed is True for row in observed) / len(observed)) ** 2


def _weighted(mine: Sequence[Observation], chosen: Sequence[int], weights: Sequence[float]) -> float:
    """Return the share of the chosen tests' weight that a program passes; 0 when nothing has weight."""
    total = sum(weights)
    if total == 0.0:
        return 0.0
    return sum(weight for t, weight in zip(chosen, weights, strict=True) if mine[t].passed is True) / total


def _agreed(mine: Sequence[Observation], everyone: Sequence[Sequence[Observation]], chosen: Sequence[int]) -> float:
    """Return the mean share, over the chosen tests' inputs, of programs that return the same value as this one."""
    if not chosen:
        return 0.0
    total = 0.0
    for t in chosen:
        if mine[t].value is not None:
            total += Counter(row[t].value for row in everyone)[mine[t].value] / len(everyone)
    return total / len(chosen)
