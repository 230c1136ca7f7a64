"""Runs one case on one engine: its verdict, and what it did to the machine around the sandbox."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from archon.sandbox import CallReport, ProgramResult, Sandbox, run_calls, run_program
from archon.sandbox.protocol import Met
from archon.sandbox.verdict import CandidateVerdict, of_calls, of_program
from benchmarks.adversary.case import ANSWER, Case, Level
from benchmarks.adversary.surroundings import MOST_GROWN_MB, Surroundings

NEXT = "def f(x): return 21 * x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one case came to on one engine."""

    number: str
    title: str
    engine: str
    verdicts: tuple[tuple[Level, str], ...]
    problems: tuple[str, ...]
    """What was not as it must be, in words; empty: nothing."""
    false_passes: tuple[Level, ...]
    """Levels at which a wrong program passed, against the corpus."""
    grown_mb: float
    wall_s: float
    """Of the whole case, with the waits for containers."""


def uncontained(sandbox: Sandbox, case: Case) -> str | None:
    """Return why an engine cannot contain a case, None when it must."""
    if any("NOT enforced" in line for line in sandbox.enforces):
        reason = case.uncontained.get(f"{sandbox.engine} without a control group")
        if reason:
            return reason
    return case.uncontained.get(sandbox.engine)


async def attack(sandbox: Sandbox, case: Case, *, slack_s: float = 5.0) -> Finding:
    """Run a case at each of its levels, then a job that must be right, then look around."""
    around = Surroundings()
    problems: list[str] = []
    verdicts: list[tuple[Level, str]] = []
    began = time.monotonic()
    with around.watched():
        for level in case.verdicts:
            level_began = time.monotonic()
            verdict, said = await _judged(sandbox, case, level, around)
            took_s = time.monotonic() - level_began
            verdicts.append((level, verdict.word))
            problems += [f"{level}: {problem}" for problem in _wrong(sandbox, case, level, verdict)]
            problems += [f"{level}: {problem}" for problem in said]
            jobs = case.runs + (case.first is not None)
            most_s = min(case.within_s or case.limits.wall_s, case.limits.wall_s) * jobs + slack_s
            if took_s > most_s:
                problems.append(f"{level}: took {took_s:.1f} s, at most {most_s:.1f} s is right")
        after = of_calls(await run_calls(sandbox, NEXT, ANSWER, per_call_s=10.0))
        if after.word != "pass":
            problems.append(f"the next job came to {after.word!r}")
    problems += [f"left behind: {left}" for left in await around.left(sandbox)]
    if around.grown_mb > MOST_GROWN_MB:
        problems.append(f"this process grew by {around.grown_mb:.0f} MB")
    passed = [level for level, word in verdicts if word == "pass" and case.verdicts[level] != "pass"]
    return Finding(
        number=case.number,
        title=case.title,
        engine=sandbox.engine,
        verdicts=tuple(verdicts),
        problems=tuple(problems),
        false_passes=tuple(passed),
        grown_mb=round(around.grown_mb, 1),
        wall_s=round(time.monotonic() - began, 2),
    )


async def _judged(
    sandbox: Sandbox, case: Case, level: Level, around: Surroundings
) -> tuple[CandidateVerdict, list[str]]:
    """Return the verdict, and what is wrong beside it."""
    problems: list[str] = []
    sources = [case.first] if case.first is not None else []
    for source in sources:
        program = case.named(source, around.mark, around.canary)
        before = await run_calls(sandbox, program, ANSWER, case.limits, per_call_s=case.per_call_s)
        if of_calls(before).word != "pass":
            problems.append(f"the job before came to {before.results[0]!r}")
    program = case.named(case.program, around.mark, around.canary)
    if level == "A":
        reports = [
            await run_calls(sandbox, program, case.tests, case.limits, per_call_s=case.per_call_s)
            for _ in range(case.runs)
        ]
        outcomes = tuple(result.outcome for result in reports[0].results)
        if case.outcomes is not None and outcomes != case.outcomes:
            problems.append(f"its tests came to {outcomes!r}, {case.outcomes!r} is right")
        return of_calls(*reports), [*problems, *_unclean(reports)]
    results = [await run_program(sandbox, f"{program}\n{case.asserts}\n", case.limits) for _ in range(case.runs)]
    return of_program(*results), [*problems, *_unclean(results)]


def _wrong(sandbox: Sandbox, case: Case, level: Level, verdict: CandidateVerdict) -> list[str]:
    said = []
    if verdict.word != case.verdicts[level]:
        said.append(f"the verdict is {verdict.word!r}, {case.verdicts[level]!r} is right")
    counted = _counted(sandbox, level)
    missing = [one for one in case.met if one in counted and one not in verdict.met]
    if missing:
        said.append(f"{', '.join(missing)} was not noted")
    return said


def _counted(sandbox: Sandbox, level: Level) -> set[Met]:
    """Return the limits that an engine counts by itself, or the worker sees."""
    if any("NOT enforced" in line for line in sandbox.enforces):
        return set()
    return {"oom", "pids_limit", "disk_limit"} if level == "A" else {"oom", "pids_limit"}


def _unclean(reports: Sequence[CallReport | ProgramResult]) -> list[str]:
    """Return what of a report could not be written as JSON or shown in a terminal."""
    said = []
    for report in reports:
        try:
            json.dumps(asdict(report)).encode("utf-8")
        except (ValueError, TypeError) as error:
            said.append(f"the report is not JSON: {error}")
        details = [report.detail] if isinstance(report, ProgramResult) else [one.detail for one in report.results]
        said += [f"a detail cannot be shown: {detail!r}" for detail in details if not detail.isprintable()]
    return said
