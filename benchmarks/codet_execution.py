"""Runs thousands of small programs on the same tests: several in one sandbox job, each call in a process of its own.

`run_calls` starts a container for each program, which is what a solve needs and what ten thousand programs cannot wait
for. Here a job's program holds many candidates as text, and a call loads its own and calls it; the calls are judged
outside as always. A candidate that took too long, or ended its job, shares its fate with its neighbours, so whatever a
shared job leaves in doubt runs again alone.
"""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Sequence
from dataclasses import replace

from archon.layers.agreement import Observation
from archon.layers.execution import observation
from archon.sandbox import Limits, Sandbox, run_calls
from archon.sandbox.structured import CallResult
from archon.types import UnitTest

SIDE_BY_SIDE = 12
"""Programs in one job: the container's start is then a small part of it."""
PER_CALL_S = 0.3
"""The authors wait 0.1 s; a call that waits for a busy processor gets longer."""
_LIMITS = Limits(wall_s=120.0, output_bytes=8_000_000)


async def outcomes_of(
    sandbox: Sandbox, programs: Sequence[str], entry_point: str, tests: Sequence[UnitTest]
) -> list[tuple[Observation, ...]]:
    """Return what each program did on each test. One that is not Python fails every test and is not run.

    Raises:
        SandboxFailed: the engine failed.
    """
    if not tests:
        return [() for _ in programs]
    forms = [_form(program) for program in programs]
    distinct = {form: program for form, program in zip(forms, programs, strict=True) if form is not None}
    batches = [list(distinct)[at : at + SIDE_BY_SIDE] for at in range(0, len(distinct), SIDE_BY_SIDE)]
    ran = await asyncio.gather(*(_batch(sandbox, [distinct[f] for f in b], entry_point, tests) for b in batches))
    by_form = dict(zip(distinct, (each for batch in ran for each in batch), strict=True))
    failed = (Observation(passed=False),) * len(tests)
    return [failed if form is None else by_form[form] for form in forms]


def _form(program: str) -> str | None:
    """Return what two programs share that differ in comments and blanks alone; None for what is not Python."""
    try:
        return ast.dump(ast.parse(program))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


async def _batch(
    sandbox: Sandbox, programs: Sequence[str], entry_point: str, tests: Sequence[UnitTest]
) -> list[tuple[Observation, ...]]:
    calls = [replace(test, function=f"candidate_{i}") for i in range(len(programs)) for test in tests]
    report = await run_calls(sandbox, together(programs, entry_point), calls, _LIMITS, per_call_s=PER_CALL_S)
    size = len(tests)
    each = [report.results[at : at + size] for at in range(0, len(calls), size)]
    if len(programs) > 1:
        doubtful = [i for i, results in enumerate(each) if any(map(_shared_fate, results))]
        again = await asyncio.gather(*(_batch(sandbox, [programs[i]], entry_point, tests) for i in doubtful))
        alone = {i: one for i, (one,) in zip(doubtful, again, strict=True)}
    else:
        alone = {}
    return [
        alone.get(i) or tuple(observation(test, result) for test, result in zip(tests, results, strict=True))
        for i, results in enumerate(each)
    ]


def _shared_fate(result: CallResult) -> bool:
    """Return whether a result may be a neighbour's doing: a limit of the whole job, or one call too slow."""
    return result.outcome == "timeout" or result.detail.startswith(("the job met its limit", "the program ended"))


def together(programs: Sequence[str], entry_point: str) -> str:
    """Return one program whose functions `candidate_0`, `candidate_1`, ... load a candidate and call it."""
    return f"""\
def _loading(source):
    def call(*args, **kwargs):
        space = {{"__name__": "solution"}}
        exec(compile(source, "solution.py", "exec"), space)
        return space[{entry_point!r}](*args, **kwargs)
    return call


for _index, _source in enumerate({list(programs)!r}):
    globals()[f"candidate_{{_index}}"] = _loading(_source)
"""
