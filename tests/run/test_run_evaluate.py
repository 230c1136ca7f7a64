import asyncio
import dataclasses
from pathlib import Path

import pytest

from archon.budget import Budget
from archon.errors import AuthError, BudgetExceeded, JournalError, ModelUnavailable
from archon.layers.generator import Generator
from archon.layers.ranker import Ranker
from archon.pipeline.layer import Layer
from archon.report.records import Record, Run, RunInfo
from archon.run.evaluate import EvalOptions, evaluate
from archon.run.journal import Journal, read_trace
from archon.run.runtime import Runtime
from archon.tasks.protocol import TaskSet
from archon.testing import Reply, ScriptedModel
from archon.types import Problem, Verdict

INFO = RunInfo(
    system="s",
    task="t",
    pipeline_yaml="",
    pipeline_hash="h",
    seed=0,
    started_utc="2026-01-01T00:00:00+00:00",
    archon_version="0",
    machine="m",
)


class KeyGrader:
    """Right when the text is the problem's id; not judged when the text is `?`."""

    def __init__(self) -> None:
        self.graded: list[str] = []

    async def grade(self, problem: Problem, text: str, sandbox: object) -> Verdict:
        self.graded.append(text)
        return Verdict(passed=None if text == "?" else text == problem.id, by="key")

    def normalise(self, problem: Problem, text: str) -> str | None:
        return text


def task_set(count: int = 3) -> TaskSet:
    problems = tuple(Problem(id=f"p{i}", prompt=f"say p{i}", difficulty=1 + i % 3) for i in range(count))
    return TaskSet(name="t", problems=problems, grader=KeyGrader())


def obedient(request: object, index: int) -> Reply:
    """Give the right answer on the first sample, a wrong one on the second, an unreadable one on the third."""
    return [str(request.messages[-1].content).split()[-1], "wrong", "?"][index % 3]  # type: ignore[attr-defined]


async def run(layer: Layer, folder: Path, tasks: TaskSet, **options: object) -> Run:
    with Journal(folder) as journal:
        async with Runtime() as runtime:
            return await evaluate(
                layer.compiled(),
                tasks,
                journal=journal,
                info=INFO,
                runtime=runtime,
                options=EvalOptions(**options),  # type: ignore[arg-type]
            )


async def test_every_sample_is_graded_and_every_measure_recorded(tmp_path: Path) -> None:
    tasks = task_set()
    done = await run(Generator(model=ScriptedModel(obedient, latency_s=0.01), n=3), tmp_path, tasks)
    assert [record.problem_id for record in done.records] == ["p0", "p1", "p2"]
    first = done.records[0]
    assert (first.status, first.correct, first.difficulty) == ("answered", True, 1)
    assert [sample.correct for sample in first.samples] == [True, False, None]
    assert [sample.answer for sample in first.samples] == ["p0", "wrong", "?"]
    assert first.usage.calls == 3
    assert first.layers[0].layer == "generator"
    assert first.layers[0].usage.calls == 3
    assert first.usage.critical_s == pytest.approx(0.01)
    assert read_trace(tmp_path, "p0").candidates[0].text == "p0"
    assert isinstance(tasks.grader, KeyGrader)
    assert sorted(tasks.grader.graded) == sorted(["p0", "p1", "p2"] + ["wrong", "?"] * 3), "equal texts: judged once"


async def test_a_second_run_asks_for_nothing_whatever_the_order(tmp_path: Path) -> None:
    tasks = task_set()
    model = ScriptedModel(obedient)
    first = await run(Generator(model=model, n=2), tmp_path, tasks)
    asked = model.calls
    shuffled = dataclasses.replace(tasks, problems=tasks.problems[::-1])
    assert await run(Generator(model=model, n=2), tmp_path, shuffled) == first
    assert model.calls == asked


async def test_an_endpoint_that_fails_on_one_problem_is_a_record_and_is_tried_again(tmp_path: Path) -> None:
    down = True

    def script(request: object, index: int) -> Reply:
        reply = obedient(request, index)
        return ModelUnavailable("HTTP 503") if down and reply == "p1" else reply

    model = ScriptedModel(script)
    done = await run(Generator(model=model), tmp_path, task_set())
    assert [(record.status, record.correct) for record in done.records] == [
        ("answered", True),
        ("error", False),
        ("answered", True),
    ]
    assert done.records[1].error is not None
    assert "HTTP 503" in done.records[1].error
    down = False
    done = await run(Generator(model=model), tmp_path, task_set())
    assert [record.correct for record in done.records] == [True, True, True]
    assert model.calls == 4


async def test_a_terminal_answer_ends_the_evaluation_and_keeps_what_is_done(tmp_path: Path) -> None:
    model = ScriptedModel(["p0", AuthError("HTTP 401: the key in $KEY is not accepted")])
    with pytest.raises(AuthError, match="401"):
        await run(Generator(model=model), tmp_path, task_set(), concurrency=1)
    with Journal(tmp_path) as journal:
        assert len(journal.done()) == 1


async def test_the_total_budget_is_never_passed(tmp_path: Path) -> None:
    model = ScriptedModel(obedient)
    tasks = task_set(20)
    with pytest.raises(BudgetExceeded):
        await run(Generator(model=model, n=2), tmp_path, tasks, total=Budget(calls=9), concurrency=8)
    assert model.calls <= 9


async def test_a_problem_stopped_by_its_budget_says_so(tmp_path: Path) -> None:
    layer = Generator(model=ScriptedModel(obedient), n=3) >> Ranker(top_k=1)
    done = await run(layer, tmp_path, task_set(1), budget=Budget(calls=3))
    assert done.records[0].status == "budget"
    assert done.records[0].correct is True


async def test_the_limit_of_problems_at_once_is_kept(tmp_path: Path) -> None:
    model = ScriptedModel(obedient, latency_s=0.01)
    await run(Generator(model=model), tmp_path, task_set(9), concurrency=3)
    assert model.most_in_flight == 3


async def test_another_run_in_the_folder_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    model = ScriptedModel(obedient)
    await run(Generator(model=model), tmp_path, task_set(1))
    with Journal(tmp_path) as journal:
        async with Runtime() as runtime:
            with pytest.raises(JournalError, match="holds another run"):
                await evaluate(
                    Generator(model=model).compiled(),
                    task_set(1),
                    journal=journal,
                    info=dataclasses.replace(INFO, seed=1),
                    runtime=runtime,
                )
    assert model.calls == 1


async def test_cancelling_keeps_what_is_done(tmp_path: Path) -> None:
    seen: list[Record] = []

    class Watch:
        def start(self, total: int, done: int) -> None:
            assert (total, done) == (9, 0)

        def advance(self, record: Record) -> None:
            seen.append(record)

    model = ScriptedModel(obedient, latency_s=0.05)
    with Journal(tmp_path) as journal:
        async with Runtime() as runtime:
            work = asyncio.ensure_future(
                evaluate(
                    Generator(model=model).compiled(),
                    task_set(9),
                    journal=journal,
                    info=INFO,
                    runtime=runtime,
                    options=EvalOptions(concurrency=1),
                    progress=Watch(),
                )
            )
            while len(seen) < 2:
                await asyncio.sleep(0.01)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
        assert len(journal.done()) == len(seen) == 2
    assert model.in_flight == 0
