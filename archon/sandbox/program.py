"""A test program in the candidate's own process (trust level C): for problem sets whose tests are code.

The program (candidate, tests, and the statement that runs them) passes only if its last statement was reached: the
runner then sends a random word, over a descriptor of its own, and exits with 0. So these do not pass: leaving early
with `os._exit(0)` or `sys.exit`, an `atexit` hook, a printed summary, a test that raises or is skipped by an
exception, exit code 0 alone.

Not covered, because candidate and tests share one process: an object that equals everything, a patched builtin or
assertion helper, reading the expected values from the tests' source or frames, and finding the word in memory. Where
tests are calls with values, `run_calls` covers these; use it there.
"""

from __future__ import annotations

import errno
import json
import secrets
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from archon.sandbox.protocol import Job, Limits, Met, Outcome, Sandbox

ProgramOutcome = Literal[
    "passed", "failed", "error", "timeout", "oom", "pids_limit", "output_limit", "disk_limit", "tampered", "infra_error"
]
"""`failed`: an assertion failed, or the program left before its tests ended; `error`: another exception or a crash;
`pids_limit`, `disk_limit`: an exception at that limit; `tampered`: a result that the runner did not write;
`infra_error`: the engine failed, and nothing is known of the program."""

_DETAIL = 300
_LEAVING = frozenset({"AssertionError", "SystemExit", "KeyboardInterrupt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """What became of a test program."""

    outcome: ProgramOutcome
    detail: str = ""
    """The exception or the reason; printable, at most 300 characters, not to be trusted."""
    wall_s: float = 0.0
    met: tuple[Met, ...] = ()
    """Limits that something of the program met, also when it passed."""


async def run_program(sandbox: Sandbox, source: str, limits: Limits | None = None) -> ProgramResult:
    """Run one program that holds a candidate and its tests; it passes when it reaches its end.

    The program runs as a module named `solution`, so code under `if __name__ == "__main__"` does not run. What it
    prints counts towards the output limit and is dropped.

    Raises:
        SandboxFailed: the engine failed; nothing is known of the program.
    """
    nonce = secrets.token_hex(16)
    runner = (resources.files("archon.sandbox") / "program_worker.py.txt").read_bytes()
    job = Job(
        argv=("python3", "-s", "-B", "runner.py"),  # not -I, which would ignore the fixed hash seed
        files=(("runner.py", runner), ("solution.py", source.encode("utf-8", "surrogatepass"))),
        stdin=json.dumps({"nonce": nonce, "source": source}).encode(),
        limits=limits or Limits(),
    )
    outcome = await sandbox.run(job)
    word, detail = _judge(outcome, nonce)
    return ProgramResult(outcome=word, detail=_printable(detail), wall_s=outcome.wall_s, met=outcome.met)


def _judge(outcome: Outcome, nonce: str) -> tuple[ProgramOutcome, str]:
    match outcome.end:
        case "timeout" | "oom" | "output_limit":
            return outcome.end, "the program met its limit"
        case "infra_error":
            return "infra_error", outcome.detail
        case "exited":
            pass
    frames = _frames(outcome.stdout)
    if len(frames) > 1 or any(frame.get("finished", nonce) != nonce for frame in frames):
        return "tampered", "a result that the runner did not write"
    if outcome.exit_code == 0:
        if {"finished": nonce} in frames:
            return "passed", ""
        return "failed", "the program ended with exit code 0 before its tests ended"
    raised = next((frame for frame in frames if "raised" in frame), None)
    if raised is None:
        return "error", f"the program ended with exit code {outcome.exit_code} before its tests ended"
    name, message, line = str(raised["raised"]), str(raised.get("message", "")), raised.get("line")
    place = f" (line {line})" if isinstance(line, int) else ""
    return _word(name, message, raised.get("errno")), (f"{name}: {message}" if message else name) + place


def _word(name: str, message: str, number: object) -> ProgramOutcome:
    """Return the outcome of a program that raised."""
    if name in _LEAVING:
        return "failed"
    if name == "MemoryError":
        return "oom"
    if number in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        return "disk_limit"
    return "pids_limit" if number == errno.EAGAIN or message == "can't start new thread" else "error"


def _frames(stdout: bytes) -> list[dict[str, Any]]:
    found = []
    for line in stdout.split(b"\n"):
        try:
            frame = json.loads(line)
        except (ValueError, RecursionError):
            continue  # not the runner's: the program found the descriptor and wrote to it
        if isinstance(frame, dict):
            found.append(frame)
    return found


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[:_DETAIL])
