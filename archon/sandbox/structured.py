"""Tests judged outside the sandbox (trust level A): a candidate returns values, and only this side knows what is right.

One job carries all the calls of one candidate. The worker inside gets the program and the calls, never an expected
value, and sends back what each call returned as typed data; the comparison happens here, on plain values. So a
candidate cannot pass by exiting early, printing a summary, patching a test runner, reading the expected value or
returning an object that equals everything. What remains possible is to compute the right answer from the arguments,
which is the task. Nor can it have failing tests counted as not judged: whatever it does to the worker, the tests
without a reply are errors.

Not covered: calls whose results have no Python literal (class instances, generators, functions), arguments that a
call changes, exceptions as the expected result, and state from one call to the next (each starts afresh).
"""

from __future__ import annotations

import errno
import json
import marshal
import math
import secrets
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, Literal

from archon.sandbox.protocol import End, Job, Limits, Met, Outcome, Sandbox
from archon.sandbox.values import decode, equal, parse_literal
from archon.types import UnitTest

CallOutcome = Literal["passed", "failed", "error", "timeout", "not_run", "invalid"]
"""How one test ended. `failed`: another value; `error`: an exception, a crash or a limit other than time; `not_run`:
the engine failed; `invalid`: the test itself is malformed, which says nothing about the candidate."""

Cause = Literal["left", "oom", "pids_limit", "disk_limit"]
"""What lay behind an error, as far as the worker could see: the program left of itself, or met a limit."""

_DETAIL = 200
_FRAME_BYTES = 1500
"""Room for the line around one reply: its nonce, keys, and an error's type and message."""
_MARSHAL = 2
"""The data format that every Python 3 reads alike: only this side's own request is written in it."""
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_CLOCKS = (128 + signal.SIGPROF, 128 + signal.SIGALRM)
"""Exit codes of a worker whose own clock ended it while it loaded the program."""
_LOAD_S = 5.0
"""The least time for loading a program: imports of numerical libraries take a second on a busy machine."""


Call = tuple[str, tuple[object, ...], dict[str, object]]
"""A function's name, its arguments by position and by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What became of one test."""

    outcome: CallOutcome
    detail: str = ""
    """Why it did not pass; printable, at most 200 characters, and the candidate's own words are not to be trusted."""
    returned: str | None = None
    """The returned value's repr, cut likewise; None when nothing was returned that has one."""
    cause: Cause | None = None
    """Behind an `error`; the candidate can feign one, and gains nothing by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    """What became of a candidate's tests."""

    results: tuple[CallResult, ...]
    """One per test, in order."""
    wall_s: float
    """How long the job ran, 0.0 when every test was invalid and none was started."""
    end: End = "exited"
    """How the job as a whole ended."""
    met: tuple[Met, ...] = ()
    """Limits that something of the job met, also when every test passed."""


async def run_calls(
    sandbox: Sandbox,
    program: str,
    tests: Sequence[UnitTest],
    limits: Limits | None = None,
    *,
    per_call_s: float = 2.0,
    lenient_sequences: bool = False,
) -> CallReport:
    """Run a candidate's tests in one job and judge what its calls return.

    Args:
        sandbox: where the candidate runs.
        program: the candidate's source; it is loaded once, under the module name `solution`.
        tests: calls with expected values, all as Python literals; a dotted function name reaches into classes.
        limits: for the whole job; `wall_s` bounds loading and all calls together.
        per_call_s: for each call alone; a call that waits for a busy machine's processor gets up to five times as
            long, within `limits.wall_s`. After three calls that took too long the others are timeouts too.
        lenient_sequences: let a list equal a tuple, and a set a frozenset.

    Raises:
        SandboxFailed: the engine failed; nothing is known of the candidate.
    """
    if not (math.isfinite(per_call_s) and per_call_s > 0):
        raise ValueError(f"per_call_s must be a positive number of seconds, not {per_call_s!r}")
    checked = [_check(test) for test in tests]
    live = [index for index, (problem, _, _) in enumerate(checked) if problem is None]
    results = [CallResult(outcome="invalid", detail=problem or "") for problem, _, _ in checked]
    if not live:
        return CallReport(results=tuple(results), wall_s=0.0)
    nonce = secrets.token_hex(16)
    outcome = await sandbox.run(_job(program, [checked[i][1] for i in live], nonce, limits or Limits(), per_call_s))
    frames = _frames(outcome.stdout, nonce)
    for place, index in enumerate(live):
        frame = frames.get(place)
        if frame is None:
            results[index] = _without_reply(outcome, frames.get("load", {}))
        else:
            results[index] = _judge(frame, checked[index][2], lenient_sequences)
    full: tuple[Met, ...] = ("disk_limit",) if frames.get("full", {}).get("full") else ()
    return CallReport(results=tuple(results), wall_s=outcome.wall_s, end=outcome.end, met=(*outcome.met, *full))


def _check(test: UnitTest) -> tuple[str | None, Call, object]:
    """Return what is wrong with a test (None: nothing), its call, and its expected value."""
    name = test.function
    nothing: Call = ("", (), {})
    if name is None or not all(part.isidentifier() for part in name.split(".")):
        return _printable(f"not a function's name: {name!r}"), nothing, None
    try:
        args, kwargs, expected = (parse_literal(source) for source in (test.args, test.kwargs, test.expected))
    except ValueError as error:
        return _printable(str(error)), nothing, None
    if not isinstance(args, tuple | list):
        return _printable(f"args must be a tuple, not {test.args!r}"), nothing, None
    if not isinstance(kwargs, dict) or not all(isinstance(key, str) for key in kwargs):
        return _printable(f"kwargs must be a dict of names, not {test.kwargs!r}"), nothing, None
    return None, (name, tuple(args), kwargs), expected


def _job(program: str, calls: Sequence[Call], nonce: str, limits: Limits, per_call_s: float) -> Job:
    request = {
        "nonce": nonce,
        "program": program,
        "calls": list(calls),
        "load_s": max(_LOAD_S, per_call_s),
        "per_call_s": per_call_s,
        "value_bytes": limits.output_bytes,
    }
    worker = (resources.files("archon.sandbox") / "call_worker.py.txt").read_text("utf-8")
    return Job(
        # On the command line, because unpacking files costs as much as the worker's own start. Not -I, which would
        # ignore the fixed hash seed; -S, because the worker finds the installed packages faster itself.
        argv=("python3", "-s", "-S", "-B", "-c", worker),
        stdin=marshal.dumps(request, _MARSHAL),
        limits=replace(limits, output_bytes=limits.output_bytes + _FRAME_BYTES * (len(calls) + 1)),
    )


def _frames(stdout: bytes, nonce: str) -> dict[int | str, dict[str, Any]]:
    """Return the worker's replies by call index, and what it said of loading (`load`) and of the folders (`full`)."""
    found: dict[int | str, dict[str, Any]] = {}
    mark = f"{nonce} ".encode()
    for line in stdout.split(b"\n"):
        if not line.startswith(mark):
            continue
        try:
            frame = json.loads(line[len(mark) :])
        except (ValueError, RecursionError):
            continue  # cut off by a limit, or forged; the call then counts as one without a reply
        if not isinstance(frame, dict):
            continue
        call = frame.get("call")
        if type(call) is int and isinstance(frame.get("reply"), dict):
            found.setdefault(call, frame["reply"])
        elif "load" in frame or "load_error" in frame:
            found.setdefault("load", frame)
        elif "full" in frame:
            found.setdefault("full", frame)
    return found


def _judge(frame: dict[str, Any], expected: object, lenient_sequences: bool) -> CallResult:
    if "value" in frame:
        try:
            got = decode(frame["value"])
            passed = equal(expected, got, lenient_sequences=lenient_sequences)
        except (ValueError, RecursionError) as error:
            return CallResult(outcome="failed", detail=_printable(f"returned a value that cannot be read: {error}"))
        shown = _shown(got)
        if passed:
            return CallResult(outcome="passed", returned=shown)
        return CallResult(outcome="failed", detail=_printable(f"returned {shown}"), returned=shown)
    if "unrepresentable" in frame:
        return CallResult(outcome="failed", detail=_printable(f"returned {frame['unrepresentable']}"))
    if "timeout" in frame:
        why = frame["timeout"] if isinstance(frame["timeout"], str) else "the call's own time was up"
        return CallResult(outcome="timeout", detail=_printable(why))
    if "error" in frame:
        return CallResult(outcome="error", detail=_printable(_exception(frame["error"])), cause=_cause(frame["error"]))
    detail = _printable(str(frame.get("died", "its reply could not be read")))
    return CallResult(outcome="error", detail=detail, cause="left" if frame.get("code") == 0 else None)


def _without_reply(outcome: Outcome, load: dict[str, Any]) -> CallResult:
    """Return the result of a call that the worker said nothing about."""
    if outcome.end == "infra_error":
        return CallResult(outcome="not_run", detail=_printable(f"the engine failed: {outcome.detail}"))
    if "load_error" in load:
        said = load["load_error"]
        detail = _printable(f"while loading: {_exception(said)}")
        return CallResult(outcome="error", detail=detail, cause=_cause(said))
    if not load and outcome.exit_code in _CLOCKS:
        return CallResult(outcome="timeout", detail="the program took too long to load")
    if outcome.end == "timeout":
        return CallResult(outcome="timeout", detail="the time of the whole job was up")
    if outcome.end == "exited":
        when = "before this call" if load else "while the program was loaded"
        detail = f"the program ended with exit code {outcome.exit_code} {when}"
        return CallResult(outcome="error", detail=detail, cause="left" if outcome.exit_code == 0 else None)
    return CallResult(outcome="error", detail=f"the job met its limit: {outcome.end}")


def _exception(said: object) -> str:
    if isinstance(said, list) and len(said) == 3:
        return f"{said[0]}: {said[1]}" if said[1] else str(said[0])
    return "an exception that cannot be read"


def _cause(said: object) -> Cause | None:
    """Return what lay behind an exception: its type, message and error number tell."""
    if not isinstance(said, list) or len(said) != 3:
        return None
    name, message, number = said
    if name == "SystemExit":
        return "left"
    if name == "MemoryError":
        return "oom"
    if number in _FULL:
        return "disk_limit"
    return "pids_limit" if number == errno.EAGAIN or message == "can't start new thread" else None


def _shown(value: object) -> str:
    try:
        return _printable(repr(value))
    except ValueError:  # Python refuses to write ints of more than some thousand digits
        return f"a {type(value).__name__} too long to write"


def _printable(text: str) -> str:
    cut = text if len(text) <= _DETAIL else text[: _DETAIL - 1] + "…"
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut)
