"""What a case of the corpus is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from archon.sandbox.protocol import Limits, Met
from archon.sandbox.verdict import Word
from archon.types import UnitTest

Level = Literal["A", "C"]
"""`A`: judged outside, by `run_calls`; `C`: tests in the candidate's process, by `run_program`."""

MARK = "@MARK@"
"""Stands in a program for a word that no other run has, by which the machine around the sandbox is searched."""
CANARY = "@CANARY@"
"""Stands in a program for the path of a file of the machine around the sandbox."""


def call(args: str, expected: str, function: str = "f") -> UnitTest:
    """Return a test."""
    text = f"assert {function}{args} == {expected}"
    return UnitTest(text=text, source="model", function=function, args=args, expected=expected)


ANSWER = (call("(2,)", "42"),)
"""The usual test: `f(2)` must give 42."""
FEW = Limits(wall_s=60.0, memory_mb=128, processes=16, disk_mb=16, output_bytes=200_000)
"""Limits small enough to be met fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One program, its tests, and what must come of it."""

    number: str
    """In the corpus; a letter marks a variant."""
    title: str
    program: str
    verdicts: Mapping[Level, Word]
    """The verdict that it must get, by level; a level that is missing is not tried."""
    tests: tuple[UnitTest, ...] = ANSWER
    outcomes: tuple[str, ...] | None = None
    """At level A: what each test must come to, where the verdict says too little."""
    met: tuple[Met, ...] = ()
    """Limits that must be noted, where the engine counts them."""
    first: str | None = None
    """A program whose job comes before, and must pass."""
    limits: Limits = FEW
    per_call_s: float = 15.0
    """Long, because only cases that never end should meet it; these have shorter ones."""
    runs: int = 1
    within_s: float | None = None
    """How soon after its start the job must have ended, where that is the point."""
    notes: Mapping[Level, str] = field(default_factory=dict)
    """Why a level's verdict is what it is, where it is a known limit or differs from the other level's."""
    known_limits: frozenset[Level] = frozenset()
    """Levels at which this wrong program passes, as the level's documentation says."""
    uncontained: Mapping[str, str] = field(default_factory=dict)
    """Engines that cannot contain it, and why; it is not run there, and reported so."""

    def named(self, source: str, mark: str, canary: str) -> str:
        """Return a program of this case with its mark, and the path of a file that it must not read."""
        return source.replace(MARK, mark).replace(CANARY, canary)

    @property
    def asserts(self) -> str:
        """Return the tests as level C runs them: in the candidate's own process."""
        return "\n".join(f"assert {test.function}(*{test.args}) == {test.expected}" for test in self.tests)
