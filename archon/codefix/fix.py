"""Fix one repository: run its job, and write the patch, the prediction line, the reports and the trace."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from archon.budget import Budget
from archon.codefix._write import write_atomically
from archon.codefix.batch import Batch, FixOptions, fix_batch
from archon.codefix.jobs import Jobs, Request, Result
from archon.codefix.policy import DEFAULT_POLICY
from archon.codefix.repository_tests import SUITE_LIMITS
from archon.config.document import parse_document
from archon.config.pipeline_file import LoadedPipeline, read_pipeline
from archon.errors import BudgetExceeded
from archon.report.write import write_report
from archon.run.codec import dumps
from archon.run.evaluate import Progress
from archon.run.journal import read_trace
from archon.run.runtime import Runtime

_POLL_S = 0.5


class Cancelled(Exception):
    """Somebody cancelled the job while it ran; what is done is kept."""


async def run_job(jobs: Jobs, identity: str, runtime: Runtime, *, progress: Progress | None = None) -> Result:
    """Run a job, or go on with it, and store its result; a solve that ended in an error is tried again the next time.

    Raises:
        Cancelled: it was cancelled while it ran.
        TaskError: nothing fails, or the repository's tests cannot be run.
        JournalError: another process runs it.
        NoSandbox: no engine here can contain the candidates.
    """
    asked, home = jobs.request(identity), jobs.home(identity)
    work = asyncio.ensure_future(
        fix_batch(
            loaded_from(asked),
            [jobs.instance(identity)],
            name=identity,
            folder=home,
            runtime=runtime,
            options=options_of(asked),
            progress=progress,
        )
    )
    try:
        while not work.done():
            await asyncio.wait([work], timeout=_POLL_S)
            if jobs.is_cancelled(identity) and not work.done():
                raise Cancelled(identity)
        batch = work.result()
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    result = result_of(batch)
    write_outputs(batch, home)
    if result.status != "error":
        jobs.finish(identity, result)
    return result


def loaded_from(asked: Request) -> LoadedPipeline:
    """Return the pipeline of a request."""
    return read_pipeline(parse_document(asked.pipeline_yaml))


def options_of(asked: Request) -> FixOptions:
    """Return the options of a request."""
    return FixOptions(
        rounds=asked.rounds,
        repeats=asked.repeats,
        seed=asked.seed,
        policy=replace(DEFAULT_POLICY, links=asked.links),
        limits=replace(SUITE_LIMITS, wall_s=asked.test_seconds),
        budget=Budget(
            tokens=asked.budget_tokens,
            usd=asked.budget_usd,
            seconds=asked.budget_seconds,
            calls=asked.budget_calls,
        ),
        grade_samples=False,
    )


def result_of(batch: Batch) -> Result:
    """Return how the one instance of a batch ended.

    Raises:
        BudgetExceeded: the budget ended it before there was any candidate.
    """
    (record,) = batch.run.records
    usage = record.usage
    final = batch.finals[0] if batch.finals else None
    if record.status == "error" or final is None:
        return Result(status="error", fixed=False, detail=record.error or "the solve ended in an error")
    if record.status == "budget" and final.patch is None and not usage.calls:
        raise BudgetExceeded("the budget has no room for a single call")
    grade = final.grade
    return Result(
        status="no_patch" if grade is None else grade.status,
        fixed=grade is not None and grade.resolved,
        detail=final.reason if grade is None else grade.detail,
        calls=usage.calls,
        tokens=usage.tokens,
        cost_usd=usage.cost_usd,
    )


def write_outputs(batch: Batch, home: Path) -> None:
    """Write `fix.patch`, `trace.json` and the report of a job that has ended."""
    for final in batch.finals:
        if final.patch:
            write_atomically(home / "fix.patch", final.patch)
    for record in batch.run.records:
        if record.status != "error":
            write_atomically(home / "trace.json", dumps(read_trace(home, record.problem_id)).decode())
    write_report([batch.run], home)
