"""What a job's output says of a suite: reads the worker's frames, and believes them only while they agree.

Everything must fit: the numbering, each test once and after its start, pytest's exit code with the outcomes, the
canaries with what is known of them, the test files with their checksums. What does not fit is tampering.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archon.codefix.types import TestOutcome, TestRun
from archon.errors import SandboxError
from archon.sandbox.protocol import Outcome

_OUTPUT = 20_000
_DETAIL = 300
_BAD = frozenset({"failed", "error"})


@dataclass(slots=True)
class _Told:
    """What the frames said, and what is wrong with them."""

    canaries: Mapping[str, str]
    outcomes: dict[str, TestOutcome] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    collected: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    rung: set[str] = field(default_factory=set)
    """The canaries that came as they should."""
    liars: dict[str, str] = field(default_factory=dict)
    """By test: the class that equals everything."""
    end: int | None = None
    last: dict[str, Any] | None = None
    """The supervisor's own line."""
    wrong: list[str] = field(default_factory=list)


def read_run(
    outcome: Outcome,
    *,
    word: str,
    nonce: str,
    ids: Sequence[str],
    canaries: Mapping[str, str],
    set_aside: tuple[str, ...] = (),
) -> TestRun:
    """Return what a job said of a suite.

    Args:
        outcome: the job's.
        word: what the worker's lines begin with.
        nonce: what the supervisor's line begins with.
        ids: the tests that were asked for, or whole files; empty: whatever was found.
        canaries: what each must come to, by name.
        set_aside: passed on.

    Raises:
        SandboxError: pytest cannot be used inside the sandbox.
    """
    told = _Told(canaries=canaries)
    if outcome.end != "infra_error":
        _read(told, outcome.stdout, word, nonce)
    status, detail = _status(told, outcome)
    outcomes = tuple((name, _outcome(told, name)) for name in ids) if ids else _found(told)
    if status == "finished" and not outcomes:
        status, detail = "no_tests", "no test was found"
    if status == "finished" and told.liars:
        detail = f"counted as failed, because of a class that equals everything: {', '.join(set(told.liars.values()))}"
    return TestRun(
        outcomes=outcomes,
        status=status,
        output=readable(outcome.stderr),
        detail=_printable(detail),
        wall_s=outcome.wall_s,
        set_aside=set_aside,
    )


def _read(told: _Told, stdout: bytes, word: str, nonce: str) -> None:
    *lines, cut = stdout.split(b"\n")
    count = 0
    for at, line in enumerate(lines):
        mark, _, rest = line.partition(b" ")
        frame = _frame(rest) if mark in (word.encode(), nonce.encode()) else None
        if not line:
            continue
        if frame is None:
            # A process that was killed may leave half a frame, just before the supervisor's line.
            if mark != word.encode() or told.end is not None or told.last is not None or at < len(lines) - 2:
                told.wrong.append("lines that the runner did not write")
        elif mark == nonce.encode():
            told.last = frame
        elif frame.get("n") != count:
            told.wrong.append("results out of order")
        else:
            count += 1
            _take(told, frame)
    if cut and not cut.startswith(word.encode()[: len(cut)]):
        told.wrong.append("lines that the runner did not write")


def _frame(text: bytes) -> dict[str, Any] | None:
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) else None


def _take(told: _Told, frame: dict[str, Any]) -> None:
    match frame:
        case {"n": 0, "unusable": str(why)}:
            raise SandboxError(
                f"pytest cannot be used inside the sandbox: {_printable(why)!r}; install it beside Archon in a folder "
                "that every user may enter, or for the system (Debian: apt-get install python3-pytest), or in the image"
            )
        case {"n": 0, "ready": str()}:
            pass
        case {"collected": list(names), "broken": list(files)} if told.end is None:
            told.collected, told.broken = [str(name) for name in names], [str(file) for file in files]
        case {"start": str(name)} if name in told.collected and name not in told.started:
            told.started.add(name)
        case {"test": str(name), "outcome": "passed" | "failed" | "error" | "skipped" | "missing" as said}:
            _take_test(told, name, said, frame)
        case {"changed": str(path)}:
            told.wrong.append(f"{path} was changed before it was read")
        case {"end": int(code)} if told.end is None:
            told.end = code
        case _:
            told.wrong.append("results that do not fit together")


def _take_test(told: _Told, name: str, said: TestOutcome, frame: dict[str, Any]) -> None:
    if frame.get("forged"):
        told.wrong.append("a test that raised was reported as passed")
    if name in told.canaries:
        if said == told.canaries[name]:
            told.rung.add(name)
        else:
            told.wrong.append(f"a test that must have {told.canaries[name]!r} came out as {said!r}")
    elif name in told.started and name not in told.outcomes:
        told.outcomes[name] = said
        if said == "passed" and isinstance(liar := frame.get("liar"), str):
            told.liars[name] = liar
    else:
        told.wrong.append("results that do not fit together")


def _status(told: _Told, outcome: Outcome) -> tuple[Any, str]:
    if outcome.end == "infra_error":
        return "infra_error", outcome.detail
    if told.last is not None and told.last.get("changed"):
        told.wrong.append(f"changed while the tests ran: {', '.join(map(str, told.last['changed']))}")
    expected = int(bool(told.broken) or any(said in _BAD for said in told.outcomes.values()))
    if told.end in (0, 1) and told.end != expected:
        told.wrong.append(f"pytest's exit code is {told.end} and its results say {expected}")
    if told.end is not None and told.last is not None and told.last.get("exit") != told.end:
        told.wrong.append(f"pytest's exit code is {told.end} and its process's is {told.last.get('exit')}")
    if told.wrong:
        return "tampered", "; ".join(dict.fromkeys(told.wrong))
    if outcome.end != "exited":
        return outcome.end, "the tests met a limit"
    if told.last is None:
        return "error", f"the job ended with exit code {outcome.exit_code} before its tests did"
    if told.end is None:
        return "error", f"the tests' process {_ending(told.last.get('exit'))} before they ended"
    if told.end not in (0, 1):
        return "error", f"pytest could not run the tests (exit code {told.end})"
    if told.rung != set(told.canaries):
        return "error", "the tests were broken off"
    return "finished", ""


def _ending(code: object) -> str:
    if isinstance(code, int) and code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"left with exit code {code}"


def _outcome(told: _Told, name: str) -> TestOutcome:
    """Return how a test ended, or a whole file, which passes when it has tests and all of them do."""
    if any(name == at or name.startswith((f"{at}::", f"{at}/")) for at in told.broken):
        return "error"
    if "::" not in name:
        parts = {_outcome(told, part) for part in told.collected if part.startswith(f"{name}::")}
        for word in ("failed", "error", "missing", "skipped", "passed"):
            if word in parts:
                return word
        return "missing"
    if name in told.liars:
        return "failed"
    return told.outcomes.get(name, "error" if name in told.started else "missing")


def _found(told: _Told) -> tuple[tuple[str, TestOutcome], ...]:
    """Return what was found: every test, and the files that could not be read as tests at all."""
    names = dict.fromkeys([*told.collected, *told.broken])
    return tuple((name, _outcome(told, name)) for name in names)


def readable(data: bytes) -> str:
    """Return the end of what a job printed, fit for a terminal and for JSON."""
    text = data[-_OUTPUT:].decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:_DETAIL])
