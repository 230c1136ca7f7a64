"""Run a pipeline over a problem set, grade everything, and journal each problem as it finishes.

`evaluate` is the whole of `archon eval` without its arguments: units that the journal already has are skipped, the rest
are solved side by side, each finished one is stored at once, and the run as a whole is read back from the journal, so
that a resumed run and an uninterrupted one cannot differ in how their results are put together.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from typing import Protocol

from archon.budget import Budget, Ledger
from archon.errors import (
    AuthError,
    BudgetError,
    BudgetExceeded,
    ModelError,
    QuotaExhausted,
    SandboxFailed,
    ScriptExhausted,
)
from archon.pipeline.pipeline import Pipeline
from archon.report.records import LayerUse, Record, Run, RunInfo, Sample, Status
from archon.run.codec import dumps
from archon.run.journal import Journal, read_run
from archon.run.runtime import Runtime
from archon.sandbox.protocol import Sandbox
from archon.tasks.protocol import TaskSet
from archon.types import Candidate, Problem, Trace, Usage, Verdict

_TERMINAL = (AuthError, QuotaExhausted, ScriptExhausted, BudgetError)
"""Errors that every other problem would meet as well: they end the evaluation, and what is done is kept."""


class Progress(Protocol):
    """Shown how an evaluation goes on."""

    def start(self, total: int, done: int) -> None:
        """Say how many problems there are, and how many an earlier run has finished."""
        ...

    def advance(self, record: Record) -> None:
        """Say that a problem is finished."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions:
    """How an evaluation runs; none of these changes what a problem's answer is, except the budget and the seed."""

    concurrency: int = 8
    """Problems solved at the same time."""
    budget: Budget = Budget()
    """For each problem."""
    total: Budget = Budget()
    """For the whole evaluation, over what this process pays."""
    seed: int = 0
    grade_samples: bool = True
    """Grade every generated sample, for pass@k and selectors; False grades final answers alone."""


async def evaluate(
    pipeline: Pipeline,
    tasks: TaskSet,
    *,
    journal: Journal,
    info: RunInfo,
    runtime: Runtime,
    options: EvalOptions = EvalOptions(),
    progress: Progress | None = None,
) -> Run:
    """Solve and grade what the journal does not have yet, and return the whole run.

    Raises:
        JournalError: the journal holds another run, or cannot be written.
        AuthError, QuotaExhausted: the endpoint's answer is terminal.
        BudgetExceeded: the total budget is used up; finished problems are kept.
        NoSandbox: there is code to run and no engine to contain it.
    """
    journal.begin(info)
    done = journal.done()
    keys = {problem.id: unit_key(info, problem, options) for problem in tasks.problems}
    todo = [problem for problem in tasks.problems if keys[problem.id] not in done]
    if progress is not None:
        progress.start(total=len(tasks.problems), done=len(tasks.problems) - len(todo))
    if todo:
        sandbox = await runtime.sandbox() if any(problem.kind == "code" for problem in todo) else None
        total = Ledger(options.total)
        ready = pipeline.resolved(await runtime.models(pipeline), sandbox, ledger=total)
        solver = _Solver(ready, tasks, sandbox, info, options)

        async def one(problem: Problem) -> None:
            trace, record = await solver.solve(problem)
            if record.status == "budget" and total.refusals:
                limits = ", ".join(f"{limit} {name}" for name, limit in _limits(options.total))
                raise BudgetExceeded(f"the evaluation's own budget ({limits}) is used up: what is done is kept")
            journal.put(keys[problem.id], record, trace)
            if progress is not None:
                progress.advance(record)

        await _each(one, todo, options.concurrency)
    return read_run(journal.folder)


def unit_key(info: RunInfo, problem: Problem, options: EvalOptions) -> str:
    """Return the key of one problem's solve: equal exactly when the result would be the same unit of work.

    The pipeline's hash covers its models' names and every sampling parameter; single completions are keyed by the
    completion cache, with endpoint and sample index.
    """
    parts = (info.pipeline_hash, info.task, info.seed, options.budget, options.grade_samples, problem)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(dumps(part))
        digest.update(b"\0")
    return digest.hexdigest()


def _limits(budget: Budget) -> list[tuple[str, float]]:
    named = [(each.name, getattr(budget, each.name)) for each in fields(budget)]
    return [(name, limit) for name, limit in named if limit is not None]


async def _each(work: Callable[[Problem], Awaitable[None]], problems: list[Problem], limit: int) -> None:
    """Run `work` on each problem, at most `limit` at once; the first error cancels the rest and is raised."""
    queue = iter(problems)

    async def worker() -> None:
        for problem in queue:
            await work(problem)

    tasks = [asyncio.ensure_future(worker()) for _ in range(min(limit, len(problems)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Solver:
    pipeline: Pipeline
    tasks: TaskSet
    sandbox: Sandbox | None
    info: RunInfo
    options: EvalOptions

    async def solve(self, problem: Problem) -> tuple[Trace | None, Record]:
        """Solve and grade one problem; an endpoint or sandbox that fails on it is a record, not an exception."""
        start_s = time.monotonic()
        blank = Record(
            system=self.info.system,
            task=self.info.task,
            problem_id=problem.id,
            difficulty=problem.difficulty,
            status="error",
            correct=False,
        )
        try:
            trace = await self.pipeline.run(
                problem, budget=self.options.budget, sandbox=self.sandbox, seed=self.options.seed
            )
        except _TERMINAL:
            raise
        except (ModelError, SandboxFailed) as error:
            return None, replace(blank, error=f"{type(error).__name__}: {error}", wall_s=time.monotonic() - start_s)
        record = replace(
            blank,
            status=_status(trace),
            usage=trace.usage,
            layers=layer_uses(trace),
            notes=tuple(dict.fromkeys(note for span in trace.spans for note in span.notes)),
            wall_s=time.monotonic() - start_s,
        )
        return trace, await self._graded(trace, record)

    async def _graded(self, trace: Trace, record: Record) -> Record:
        """Return the record with the answer, and each generated sample, judged against the key."""
        verdicts: dict[str, asyncio.Task[Verdict]] = {}

        def judged(text: str) -> asyncio.Task[Verdict]:
            if text not in verdicts:
                work = self.tasks.grader.grade(trace.problem, text, self.sandbox)
                verdicts[text] = asyncio.ensure_future(work)
            return verdicts[text]

        samples = generated(trace, self.pipeline) if self.options.grade_samples else ()
        answer = trace.answer
        try:
            correct = False if answer is None else (await judged(answer.text)).passed
            graded = await asyncio.gather(*(self._sample(trace.problem, sample, judged) for sample in samples))
        finally:
            for task in verdicts.values():
                task.cancel()
        return replace(record, correct=correct, samples=tuple(graded))

    async def _sample(
        self, problem: Problem, candidate: Candidate, judged: Callable[[str], Awaitable[Verdict]]
    ) -> Sample:
        if candidate.error is not None:
            return Sample(correct=None)
        verdict = await judged(candidate.text)
        return Sample(
            correct=verdict.passed,
            answer=self.tasks.grader.normalise(problem, candidate.text),
            score=candidate.score,
            completion_tokens=candidate.completion_tokens,
        )


def generated(trace: Trace, pipeline: Pipeline) -> tuple[Candidate, ...]:
    """Return the first round's generated candidates, in the order in which they were asked for."""
    labels = [leaf.name for leaf in pipeline.leaves if leaf.kind == "generator"]
    found = {candidate.id: candidate for candidate in trace.everyone}
    mine = [identifier for identifier in found if identifier.rpartition("#")[0] in labels]
    order = sorted(mine, key=lambda each: (labels.index(each.rpartition("#")[0]), int(each.rpartition("#")[2])))
    return tuple(found[identifier] for identifier in order)


def layer_uses(trace: Trace) -> tuple[LayerUse, ...]:
    """Return each layer's work over all rounds, in the order in which they first ran."""
    uses: dict[str, LayerUse] = {}
    for span in trace.spans:
        use = uses.get(span.layer, LayerUse(layer=span.layer, kind=span.kind, usage=Usage()))
        parses = dict(use.parses)
        for status, count in span.parses:
            parses[status] = parses.get(status, 0) + count
        uses[span.layer] = replace(use, usage=use.usage + span.usage, parses=tuple(parses.items()))
    missing = [verdict.by for each in trace.everyone for verdict in each.verdicts if verdict.passed is None]
    return tuple(replace(use, not_judged=missing.count(label)) for label, use in uses.items())


def _status(trace: Trace) -> Status:
    if trace.stop == "budget":
        return "budget"
    return "abstained" if trace.answer is None else "answered"
