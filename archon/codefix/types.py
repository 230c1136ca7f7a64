"""The values that code-fix jobs are made of: a tree of files, an instance, a patch, and what a test run said.

A repository is a value here: a sorted tuple of files, without history. Patches turn one tree into another, test runs
read a tree, and nothing ever writes to the user's own folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TestOutcome = Literal["passed", "failed", "error", "skipped", "missing"]
"""How one test of a repository ended; `missing`: it was asked for and no result came, which is never a pass."""

Trust = Literal["A", "C"]
"""`A`: judged outside the candidate's process; `C`: in its process, hardened (see `archon/sandbox/program.py`)."""

Refusal = Literal["patch_rejected", "patch_conflict", "empty_patch"]
"""Why a patch was not applied: policy forbids it, it does not fit the tree, or there is nothing in it."""


Form = Literal["diff", "search_replace", "function", "file"]
"""How a model wrote a change: a unified diff, search/replace edits, whole definitions, or a whole file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One regular file of a tree."""

    path: str
    """Relative, with forward slashes, without `.` or `..`."""
    content: bytes
    executable: bool = False


Tree = tuple[File, ...]
"""Files in the order of their paths, each path once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One thing to fix, as a solver may see it, apart from `held_out`."""

    id: str
    tree: Tree
    statement: str = ""
    """What is wrong, in words: an issue's text, a docstring. May be empty where failing tests say it all."""
    test_command: tuple[str, ...] = ("python3", "-m", "pytest", "-q")
    fail_to_pass: tuple[str, ...] = ()
    """Ids of tests that fail now and must pass; empty: those that fail on the unpatched tree."""
    pass_to_pass: tuple[str, ...] = ()
    """Ids of tests that must go on passing; empty: those that pass on the unpatched tree."""
    held_out: Tree = ()
    """Test files that are put in place only to grade the final patch; a solver never sees them."""
    entry_point: str | None = None
    """The function that is wrong, where the instance is about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A checked unified diff with git headers that applies to a known tree."""

    text: str
    paths: tuple[str, ...]
    """Every file that it touches, old and new names."""
    repairs: tuple[str, ...] = ()
    """What had to be mended to read it: `fence`, `final newline`, `hunk counts`, `line ends`, `line numbers` (its lines
    stand in exactly one other place), `trailing spaces`, `path` (left out where only one file can be meant)."""
    dropped: tuple[str, ...] = ()
    """Files whose changes were left out, because tests and their settings are not a fix's to change.

    A patch that would change nothing else has an empty text, and is not refused: it is a fix that fails."""
    modes: tuple[str, ...] = ()
    """Files that become executable or cease to be."""
    form: Form = "diff"
    """What it was written as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A patch that is not applied, which is data and no exception."""

    status: Refusal
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """What a repository's tests said of one tree."""

    __test__ = False  # not a test class, whatever pytest makes of its name

    outcomes: tuple[tuple[str, TestOutcome], ...]
    """By test id, in the order of the ids asked for, else as they ran."""
    status: Literal["finished", "timeout", "oom", "output_limit", "error", "no_tests", "tampered", "infra_error"]
    """`error`: the suite could not run (a syntax error, a crash); `tampered`: the results were forged or touched."""
    trust: Trust = "C"
    output: str = ""
    """The end of what the run printed, for a model and for the report; not to be trusted."""
    detail: str = ""
    """Why it is not `finished`; printable."""
    wall_s: float = 0.0
    set_aside: tuple[str, ...] = ()
    """Files of the candidate's that took no part, because they belong to the tests and their runner."""

    @property
    def passed(self) -> frozenset[str]:
        """Return the ids of the tests that passed."""
        return frozenset(name for name, outcome in self.outcomes if outcome == "passed")
