"""Fix a list of instances with one pipeline: baselines, the fix loop, grading, and the files that users' tools read.

Everything that took time is kept in one folder and found again by the same command: each instance's baseline, the
journal of solves with its completion cache, each final grade. A file is written whole or not at all, so `kill -9` at
any moment loses only what was in flight, and the reports are derived from the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from archon import __version__
from archon.budget import Budget
from archon.codefix._write import write_atomically
from archon.codefix.baseline import Baseline, baseline
from archon.codefix.grade import Grade
from archon.codefix.patch_tests import Case, PatchTests
from archon.codefix.policy import DEFAULT_POLICY, PatchPolicy
from archon.codefix.predictions import (
    Graded,
    Prediction,
    run_report,
    write_instance_report,
    write_predictions,
    write_run_report,
)
from archon.codefix.repository_tests import SUITE_LIMITS
from archon.codefix.task_set import PatchGrader, task_set
from archon.codefix.types import Instance, Refused
from archon.config import LoadedPipeline, dump_pipeline, pipeline_hash
from archon.errors import SandboxFailed, TaskError
from archon.pipeline.pipeline import Pipeline
from archon.report.records import Record, Run, RunInfo
from archon.run.codec import dumps, loads
from archon.run.evaluate import EvalOptions, Progress, evaluate
from archon.run.journal import Journal, read_trace
from archon.run.machine import describe_machine
from archon.run.remembering import RememberingGrader
from archon.run.runtime import Runtime
from archon.sandbox.protocol import Limits, Sandbox

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FixOptions:
    """How a batch is fixed."""

    rounds: int = 3
    """Passes of the fix loop at most, the first one included; 1 samples and never revises."""
    concurrency: int = 4
    """Instances at the same time."""
    budget: Budget = Budget()
    """For each instance."""
    total: Budget = Budget()
    """For the whole batch, over what this process pays."""
    seed: int = 0
    repeats: int = 3
    """Runs of the suite on the pristine tree and on each winner, to find flaky tests."""
    policy: PatchPolicy = DEFAULT_POLICY
    limits: Limits = SUITE_LIMITS
    """For each run of a suite."""
    grade_samples: bool = True
    """Grade every first-round sample, for pass@k; False grades winners alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Final:
    """The end of one instance, as it is stored."""

    instance_id: str
    patch: str | None
    """The winner's patch; None: there is none that can be applied."""
    reason: str = ""
    """Why there is none, or why nothing is known of it."""
    grade: Grade | None = None
    """None: nothing was graded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A finished batch."""

    run: Run
    finals: tuple[Final, ...]
    """By instance, in the order of their ids; those whose tests cannot be used are left out."""
    unusable: tuple[tuple[str, str], ...] = ()
    """Instances whose own tests do not behave as they must, with the reason."""

    @property
    def resolved(self) -> tuple[str, ...]:
        """Return the ids of the instances that are fixed."""
        return tuple(final.instance_id for final in self.finals if final.grade is not None and final.grade.resolved)


def fix_loop(body: Pipeline, cases: Iterable[Case], options: FixOptions) -> Pipeline:
    """Return a pipeline with the repository's tests behind it, repeated until they pass."""
    tests = PatchTests(cases={case.instance.id: case for case in cases}, policy=options.policy, limits=options.limits)
    return (body >> tests).refine(max_rounds=options.rounds).compiled(body.title)


async def fix_batch(
    loaded: LoadedPipeline,
    instances: Sequence[Instance],
    *,
    name: str,
    folder: Path,
    runtime: Runtime,
    options: FixOptions = FixOptions(),
    progress: Progress | None = None,
) -> Batch:
    """Fix instances, or go on with a batch that was stopped, and write predictions and reports into the folder.

    Raises:
        TaskError: no instance can be used.
        JournalError: the folder holds another batch, is in use, or cannot be written.
        NoSandbox: no engine here can contain the candidates.
        BudgetExceeded: the total budget is used up; what is done is kept.
    """
    with Journal(folder) as journal:
        sandbox = await runtime.sandbox()
        cases, unusable = await _cases(instances, folder, sandbox, options)
        if not cases:
            raise TaskError(f"{name}: no instance can be used; {unusable[0][1]}")
        tasks = task_set(name, cases, policy=options.policy, limits=options.limits)
        grader = tasks.grader
        assert isinstance(grader, PatchGrader)
        body = loaded.pipeline.compiled(loaded.name)
        pipeline = fix_loop(body, cases, options)
        run = await evaluate(
            pipeline,
            replace(tasks, grader=RememberingGrader(grader)),
            journal=journal,
            info=await _info(loaded, body, pipeline, name, options, runtime, sandbox),
            runtime=runtime,
            options=EvalOptions(
                concurrency=options.concurrency,
                budget=options.budget,
                total=options.total,
                seed=options.seed,
                grade_samples=options.grade_samples,
            ),
            progress=progress,
        )
        finals = await _finals(run, folder, grader, sandbox, options)
    batch = Batch(run=run, finals=finals, unusable=unusable)
    write_batch(batch, cases, folder)
    return batch


def write_batch(batch: Batch, cases: Sequence[Case], folder: Path) -> None:
    """Write what is derived from a batch: predictions, and the reports of each instance and of the run.

    An instance that cannot be used, or whose solve ended in an error, has no prediction and is `incomplete` in the
    report: the same command tries it again.
    """
    model = batch.run.info.system
    expected = {case.instance.id: case.baseline for case in cases}
    graded = [_graded(final, expected[final.instance_id]) for final in batch.finals]
    predictions = [
        Prediction(instance_id=final.instance_id, model_name_or_path=model, model_patch=final.patch or "")
        for final in batch.finals
    ]
    write_predictions(folder / "preds.jsonl", predictions)
    for one in graded:
        write_instance_report(folder / "reports", one)
    everything = [*expected, *(identity for identity, _ in batch.unusable)]
    report = run_report(everything, predictions, graded)
    write_run_report(folder, report, model=model, run_id=batch.run.info.task)


def _graded(final: Final, expected: Baseline) -> Graded:
    grade = final.grade
    failed = "" if grade is None or grade.status != "infra_error" else grade.detail or "the engine failed"
    return Graded(
        instance_id=final.instance_id,
        patch=final.patch,
        applied=grade is not None,
        fail_to_pass=expected.graded.fail_to_pass,
        pass_to_pass=expected.graded.pass_to_pass,
        outcomes=() if grade is None else grade.outcomes,
        infra_failure=failed,
        reason=final.reason,
    )


async def _cases(
    instances: Sequence[Instance], folder: Path, sandbox: Sandbox, options: FixOptions
) -> tuple[tuple[Case, ...], tuple[tuple[str, str], ...]]:
    """Return the instances with their baselines, and those that cannot be used with the reason."""
    unusable: list[tuple[str, str]] = []

    async def one(instance: Instance) -> Case | None:
        path = folder / "baselines" / _file_name(instance, options)

        async def measured() -> Baseline:
            return await baseline(sandbox, instance, repeats=options.repeats, limits=options.limits)

        try:
            return Case(instance=instance, baseline=await _kept(path, Baseline, measured))
        except (TaskError, SandboxFailed) as error:
            unusable.append((instance.id, str(error)))
            return None

    found = await _side_by_side(one, instances, options.concurrency)
    return tuple(case for case in found if case is not None), tuple(sorted(unusable))


def _file_name(instance: Instance, options: FixOptions) -> str:
    """Return a name that is another one when anything about the instance's tests is."""
    return f"{hashlib.sha256(dumps((_plain(instance), options.repeats))).hexdigest()[:40]}.json"


def _plain(instance: Instance) -> tuple[object, ...]:
    files = [(file.path, hashlib.sha256(file.content).hexdigest()) for file in (*instance.tree, *instance.held_out)]
    return instance.id, files, instance.test_command, instance.fail_to_pass, instance.pass_to_pass


async def _finals(
    run: Run, folder: Path, grader: PatchGrader, sandbox: Sandbox, options: FixOptions
) -> tuple[Final, ...]:
    """Grade each winner several times, once and for all."""

    async def one(record: Record) -> Final | None:
        if record.status == "error":
            return None
        answer = read_trace(folder, record.problem_id).answer
        text = "" if answer is None else answer.text
        name = hashlib.sha256(dumps((record.problem_id, text, options.repeats))).hexdigest()[:40]

        async def measured() -> Final:
            if answer is None:
                return Final(instance_id=record.problem_id, patch=None, reason="the pipeline gave no answer")
            return await _final(record.problem_id, text, grader, sandbox, options.repeats)

        return await _kept(folder / "finals" / f"{name}.json", Final, measured)

    found = await _side_by_side(one, run.records, options.concurrency)
    return tuple(final for final in found if final is not None)


async def _final(instance_id: str, text: str, grader: PatchGrader, sandbox: Sandbox, repeats: int) -> Final:
    patch, grade = await grader.graded(instance_id, text, sandbox, repeats=repeats)
    if isinstance(patch, Refused):
        return Final(instance_id=instance_id, patch=None, reason=f"{patch.status}: {patch.reason}")
    if grade is None:
        raise SandboxFailed(
            f"{instance_id}: the engine failed while the final patch was graded; run it again to resume"
        )
    return Final(instance_id=instance_id, patch=patch.text, grade=grade)


async def _kept(path: Path, kind: type[T], make: Callable[[], Awaitable[T]]) -> T:
    """Return what a file holds, or make it and keep it; a file that cannot be read is made again."""
    kept = _read(path, kind)
    if kept is not None:
        return kept
    made = await make()
    write_atomically(path, dumps(made).decode())
    return made


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return loads(kind, path.read_bytes())
    except (OSError, ValueError):
        return None


A = TypeVar("A")


async def _side_by_side(work: Callable[[A], Awaitable[T]], items: Sequence[A], limit: int) -> list[T]:
    """Return the work's results in the order of the items, at most `limit` at a time; the first error ends all."""
    gate = asyncio.Semaphore(limit)

    async def one(item: A) -> T:
        async with gate:
            return await work(item)

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _info(
    loaded: LoadedPipeline,
    body: Pipeline,
    pipeline: Pipeline,
    name: str,
    options: FixOptions,
    runtime: Runtime,
    sandbox: Sandbox,
) -> RunInfo:
    return RunInfo(
        system=loaded.name,
        task=name,
        pipeline_yaml=dump_pipeline(loaded.pipeline, name=loaded.name),
        pipeline_hash=f"{pipeline_hash(body, models=loaded.models)}/rounds={options.rounds}",
        seed=options.seed,
        started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        archon_version=__version__,
        machine=describe_machine(),
        sandbox=f"{sandbox.engine}: {', '.join(sandbox.enforces)}",
        parameters=await runtime.parameters(pipeline),
    )
