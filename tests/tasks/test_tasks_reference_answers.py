"""Reference answers through the real sandbox: the right ones pass, empty bodies fail."""

import asyncio
import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from archon.errors import NoSandbox
from archon.sandbox.auto import open_sandbox
from archon.tasks.data_folder import data_folder, find
from archon.tasks.humaneval import HUMANEVAL, HUMANEVAL_PLUS
from archon.tasks.load import load_tasks
from archon.tasks.mbpp import MBPP, MBPP_PLUS

pytestmark = pytest.mark.skipif(data_folder() is None, reason="needs the folder of public data sets")
SOURCES = {"humaneval": HUMANEVAL, "humanevalplus": HUMANEVAL_PLUS, "mbpp": MBPP, "mbppplus": MBPP_PLUS}


def references(name):
    path = find(SOURCES[name], data_folder())
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = [json.loads(line) for line in content.splitlines()]
    if name.startswith("mbpp"):
        return {f"Mbpp/{row['task_id']}": row["code"] for row in rows}
    return {row["task_id"]: row["prompt"] + row["canonical_solution"] for row in rows}


async def fastest_sandbox():
    try:
        return await open_sandbox("bubblewrap")  # starts in a tenth of a container's time; graders do not see which
    except NoSandbox:
        return await open_sandbox()


async def graded(tasks, answers, *, at_once=2):
    try:
        sandbox = await fastest_sandbox()
    except NoSandbox as error:
        pytest.skip(str(error))
    gate = asyncio.Semaphore(at_once)

    async def one(problem):
        async with gate:
            verdict = await tasks.grader.grade(problem, answers(problem), sandbox)
            return verdict.passed, (problem.id, verdict.reason)

    try:
        return await asyncio.gather(*(one(problem) for problem in tasks.problems))
    finally:
        await sandbox.close()


def empty(problem):
    return f"```python\ndef {problem.entry_point}(*args, **kwargs):\n    pass\n```"


async def check(name, **part):
    tasks, given = load_tasks(name, **part), references(name)
    right = await graded(tasks, lambda problem: f"Here it is.\n```python\n{given[problem.id]}\n```\nDone.")
    assert [why for passed, why in right if passed is not True] == []
    wrong = await graded(tasks, empty)
    assert Counter(passed for passed, _ in wrong) == {False: len(tasks.problems)}


@pytest.mark.parametrize("name", ["humaneval", "mbpp"])
async def test_some_references_pass_and_empty_bodies_fail(name):
    await check(name, limit=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SOURCES))
async def test_all_references_pass_and_empty_bodies_fail(name):
    await check(name)


async def test_some_original_references_pass_and_empty_bodies_fail():
    path = Path(__file__).parent / "original_solutions" / "code_reference.py"
    tasks = load_tasks("original-code", every=6)
    assert Counter(p for p, _ in await graded(tasks, lambda _: path.read_text())) == {True: len(tasks.problems)}
    assert Counter(p for p, _ in await graded(tasks, empty)) == {False: len(tasks.problems)}
