"""Finds the model's tests that cannot tell a right program from a wrong one, by running wrong ones on purpose.

A test is dropped when one of four trivial programs passes it, or when each of several candidates fails it. Such a test
rewards programs that do nothing, or says nothing about any of them. What stays:

- Examples stated in the problem, always: they are part of the statement.
- A test that every candidate passes. It orders nobody, so it costs nothing here, and a verdict needs it: it is the
  evidence that a program works at all.
- When no test of the model's would be left, those that only a trivial program took out: a weak test still rejects a
  program that fails even it. Those that each candidate fails do not come back: as a verdict they would reject everyone
  alike, so nothing is judged by them.

The constant is the empty value of the type that the test expects: 0, "", [] and so on. A truth value has no such
constant: of two values each is somebody's constant, and dropping one of them leaves tests that the other passes alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from archon.layers.agreement import Observation
from archon.layers.execution import Ran, run_program
from archon.sandbox.protocol import Sandbox
from archon.sandbox.values import parse_literal
from archon.types import UnitTest

TRIVIAL = ("returns_none", "returns_first_argument", "raises", "returns_constant")
"""The trivial programs, in the order in which a test that several pass is counted."""
_CONSTANTS = {int: "0", float: "0.0", str: "''", list: "[]", tuple: "()", dict: "{}", set: "set()", bytes: "b''"}
_PROGRAM = """\
def returns_none(*args, **kwargs):
    return None


def returns_first_argument(*args, **kwargs):
    return [*args, *kwargs.values()][0]


def raises(*args, **kwargs):
    raise ValueError("always")
""" + "".join(
    f"\n\ndef constant_{kind.__name__}(*args, **kwargs):\n    return {it}\n" for kind, it in _CONSTANTS.items()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrimination:
    """Which tests tell programs apart."""

    kept: tuple[bool, ...]
    """For each test; examples always."""
    notes: tuple[str, ...]
    """Counts of dropped tests by reason, and of those put back because nothing else was left."""


async def run_trivial(sandbox: Sandbox, tests: Sequence[UnitTest], *, per_call_s: float) -> tuple[Ran, ...]:
    """Return what each trivial program did on each test, in the order of `TRIVIAL`; one job, judged as candidates are.

    `raises` is the control: it passes no test unless the judging itself is broken.
    """
    calls = [replace(test, function=_function(name, test)) for name in TRIVIAL for test in tests]
    ran = await run_program(sandbox, _PROGRAM, calls, per_call_s)
    return tuple(
        replace(ran, observations=ran.observations[at * len(tests) : (at + 1) * len(tests)], failures=())
        for at in range(len(TRIVIAL))
    )


def discriminate(
    tests: Sequence[UnitTest],
    observed: Sequence[Sequence[Observation]],
    trivial: Sequence[Sequence[Observation]],
) -> Discrimination:
    """Return which tests are kept.

    Args:
        tests: the tests, examples among them.
        observed: for each candidate, one observation for each test.
        trivial: for each program of `TRIVIAL`, one observation for each test; one that was not run drops nothing.
    """
    reasons = [_reason(test, t, observed, trivial) for t, test in enumerate(tests)]
    written = [t for t, test in enumerate(tests) if test.source == "model"]
    back = set[int]()
    if all(reasons[t] is not None for t in written):
        back = {t for t in written if reasons[t] != "failed_by_all"}
    kept = tuple(reason is None or t in back for t, reason in enumerate(reasons))
    counts = Counter(reason for t, reason in enumerate(reasons) if reason is not None and not kept[t])
    notes = [f"dropped {reason}: {count}" for reason, count in sorted(counts.items())]
    if back:
        notes.append(f"kept though trivial programs pass them, since no others are left: {len(back)}")
    return Discrimination(kept=kept, notes=tuple(notes))


def _reason(
    test: UnitTest, t: int, observed: Sequence[Sequence[Observation]], trivial: Sequence[Sequence[Observation]]
) -> str | None:
    if test.source == "example":
        return None
    outcomes = [row[t].passed for row in observed if row[t].passed is not None]
    if len(outcomes) > 1 and not any(outcomes):
        return "failed_by_all"
    return next((f"passed_by_{name}" for name, row in zip(TRIVIAL, trivial, strict=True) if row[t].passed), None)


def _function(name: str, test: UnitTest) -> str:
    """Return the trivial program's function for a test; where its type has no constant, the one that never passes."""
    if name != "returns_constant":
        return name
    try:
        kind = type(parse_literal(test.expected))
    except ValueError:
        return "raises"
    return f"constant_{kind.__name__}" if kind in _CONSTANTS else "raises"
