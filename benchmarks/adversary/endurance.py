"""Many jobs, every fifth of them hostile, and what is left on the machine when they are over; and floods of output."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass

from archon.sandbox import Job, Limits, Sandbox, run_calls
from archon.sandbox.docker import DockerSandbox
from archon.sandbox.image import docker_client
from archon.sandbox.verdict import of_calls
from benchmarks.adversary.case import ANSWER, Case
from benchmarks.adversary.cases import CASES
from benchmarks.adversary.surroundings import Surroundings, dangling_mounts, engine_leavings, processes

RIGHT = "def f(x): return 21 * x"
HOSTILE = tuple(case for case in CASES if case.number in ("1", "4", "7", "11b", "19", "19b", "35", "38"))
FLOOD = "import os\nblock = b'a' * 65536\nwhile True: os.write({fd}, block)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endured:
    """What many jobs came to."""

    jobs: int
    wrong: int
    """Verdicts that were not the stated ones."""
    false_passes: int
    left: tuple[str, ...]
    """Containers, processes, control groups and mounts that were still there after the sandbox was closed."""
    wall_s: float


async def endure(sandbox: Sandbox, jobs: int) -> Endured:
    """Run many jobs, close the sandbox, and look for what is left of them."""
    around, counts, began = Surroundings(), Counter[str](), time.monotonic()
    queue = iter(range(jobs))

    async def work() -> None:
        for number in queue:
            case = HOSTILE[number // 5 % len(HOSTILE)] if number % 5 == 0 else None
            counts[await _one(sandbox, case, around)] += 1

    await asyncio.gather(*(work() for _ in range(8)))
    wall_s = time.monotonic() - began
    left = list(await around.left(sandbox))
    await sandbox.close()
    left += await asyncio.to_thread(_after_closing, sandbox, around)
    return Endured(
        jobs=jobs,
        wrong=counts["wrong"] + counts["false pass"],
        false_passes=counts["false pass"],
        left=tuple(left),
        wall_s=round(wall_s, 1),
    )


async def _one(sandbox: Sandbox, case: Case | None, around: Surroundings) -> str:
    program = RIGHT if case is None else case.named(case.program, around.mark, around.canary)
    limits = Limits(wall_s=60.0) if case is None else case.limits
    per_call_s = 20.0 if case is None else case.per_call_s
    word = of_calls(await run_calls(sandbox, program, ANSWER, limits, per_call_s=per_call_s)).word
    stated = "pass" if case is None else case.verdicts["A"]
    if word == stated:
        return "as stated"
    return "false pass" if word == "pass" else "wrong"


def _after_closing(sandbox: Sandbox, around: Surroundings) -> list[str]:
    left = [f"process {line!r}" for _, line in processes() if around.mark in line]
    if not isinstance(sandbox, DockerSandbox):
        return left + engine_leavings(sandbox)
    client = docker_client()
    try:
        label = next(f"{key}={value}" for key, value in sandbox._label.items())
        found = client.api.containers(all=True, filters={"label": label})
        left += [f"container {one['Id'][:12]}" for one in found]
        return left + [f"mount {root}" for root in dangling_mounts(lambda: len(client.api.containers(all=True)))]
    finally:
        client.close()


async def flood(sandbox: Sandbox, jobs: int) -> float:
    """Return by how many MB this process grew while jobs flooded their outputs, several at a time."""
    around = Surroundings()
    limits = Limits(wall_s=30.0, output_bytes=1_000_000)
    with around.watched():
        await asyncio.gather(
            *(
                sandbox.run(Job(argv=("python3", "-I", "-c", FLOOD.format(fd=1 + number % 2)), limits=limits))
                for number in range(jobs)
            )
        )
    return around.grown_mb
