"""One word for what became of a candidate, from the runs of its tests.

The words are those that judges of programming contests and code-fix reports share. What a limit did to a candidate
that answered rightly all the same is said beside the word: memory that ran out in one of its processes fails it, a
folder that it filled is its `disk_limit`, and a fork that was refused is only noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from archon.sandbox.program import ProgramResult
from archon.sandbox.protocol import Met
from archon.sandbox.structured import CallReport, CallResult

Word = Literal[
    "pass",
    "fail",
    "error",
    "timeout",
    "oom",
    "pids_limit",
    "output_limit",
    "disk_limit",
    "no_tests",
    "tampered",
    "flaky",
    "infra_error",
]
"""`fail`: a wrong value, or the program left before it answered; `error`: an exception or a crash; `no_tests`: nothing
judged it; `tampered`: it forged or touched results; `flaky`: its runs differ; `infra_error`: nothing is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateVerdict:
    """What became of a candidate."""

    word: Word
    met: tuple[Met, ...] = ()
    """Limits that it met, whatever the word."""


def of_calls(*runs: CallReport) -> CandidateVerdict:
    """Return the verdict of one or more runs of the same calls; runs that differ in any test make it `flaky`."""
    met = _met([run.met for run in runs])
    if len({tuple(result.outcome for result in run.results) for run in runs}) > 1:
        return CandidateVerdict(word="flaky", met=met)
    return CandidateVerdict(word=_of_report(runs[0]) if runs else "no_tests", met=met)


def of_program(*runs: ProgramResult) -> CandidateVerdict:
    """Return the verdict of one or more runs of the same test program."""
    met = _met([run.met for run in runs])
    if len({run.outcome for run in runs}) > 1:
        return CandidateVerdict(word="flaky", met=met)
    if not runs:
        return CandidateVerdict(word="no_tests")
    word = runs[0].outcome
    if word == "passed":
        return CandidateVerdict(word=_although_right(met), met=met)
    return CandidateVerdict(word="fail" if word == "failed" else word, met=met)


def _met(each: Sequence[tuple[Met, ...]]) -> tuple[Met, ...]:
    return tuple(sorted({one for met in each for one in met}))


def _of_report(report: CallReport) -> Word:
    judged = [result for result in report.results if result.outcome != "invalid"]
    wrong = [result for result in judged if result.outcome not in ("passed", "not_run")]
    if not judged:
        return "no_tests"
    if not wrong:
        return "infra_error" if len(judged) > _passed(judged) else _although_right(report.met)
    if report.end in ("oom", "output_limit", "timeout"):
        return report.end
    return _of_wrong(wrong, report.met)


def _passed(results: Sequence[CallResult]) -> int:
    return sum(result.outcome == "passed" for result in results)


def _although_right(met: tuple[Met, ...]) -> Word:
    if "oom" in met:
        return "fail"
    return "disk_limit" if "disk_limit" in met else "pass"


def _of_wrong(wrong: Sequence[CallResult], met: tuple[Met, ...]) -> Word:
    """Return the word of the gravest thing that happened: a limit, else a wrong value, else an exception."""
    causes = {result.cause for result in wrong}
    outcomes = {result.outcome for result in wrong}
    if "oom" in met or "oom" in causes:
        return "oom"
    if "disk_limit" in met or "disk_limit" in causes:
        return "disk_limit"
    if "pids_limit" in met or "pids_limit" in causes:
        return "pids_limit"
    if "timeout" in outcomes:
        return "timeout"
    return "fail" if "failed" in outcomes or "left" in causes else "error"
