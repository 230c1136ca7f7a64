"""How fast each sandbox engine is here: the wait for one job, jobs per second side by side, and what is left behind.

A job is a real one: a candidate with eight tests that are judged outside. Beside it stands a bare `python3` process
that does nothing, the least that any engine can take. Engines that this machine lacks are left out and named.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from archon.errors import NoSandbox
from archon.sandbox import Sandbox, open_sandbox, run_calls
from archon.sandbox.bubblewrap import BubblewrapSandbox
from archon.sandbox.docker import DockerSandbox
from archon.types import UnitTest
from benchmarks.bars import Bar, arguments, publish

PROGRAM = "def add(a, b):\n    return a + b\n"
TESTS = tuple(
    UnitTest(text=f"add({n}, 1)", source="model", function="add", args=f"({n}, 1)", expected=f"{n + 1}")
    for n in range(8)
)
STARTS: dict[str, Callable[[int], Awaitable[Any]]] = {
    "docker": lambda workers: DockerSandbox.start(workers=workers),
    "bubblewrap": lambda workers: BubblewrapSandbox.start(workers=workers),
}


async def one(sandbox: Sandbox) -> float:
    """Return the seconds that one candidate's tests took, all of which must pass."""
    began = time.monotonic()
    report = await run_calls(sandbox, PROGRAM, TESTS)
    wrong = [result for result in report.results if result.outcome != "passed"]
    if wrong:
        raise SystemExit(f"a right candidate did not pass: {wrong[0]!r}")
    return time.monotonic() - began


async def measure(engine: str, workers: int, jobs: int, singles: int) -> dict[str, Any]:
    """Return one row: latency alone, then throughput with every worker busy."""
    sandbox = await STARTS[engine](workers)
    try:
        await one(sandbox)
        alone = []
        for _ in range(singles):
            await asyncio.sleep(1.0)  # as between a model's answers: the pool has time to fill
            alone.append(await one(sandbox))
        began = time.monotonic()
        await asyncio.gather(*(one(sandbox) for _ in range(jobs)))
        per_s = jobs / (time.monotonic() - began)
    finally:
        await sandbox.close()
    return {
        "engine": engine,
        "workers": workers,
        "alone_s": round(statistics.median(alone), 3),
        "jobs_per_s": round(per_s, 2),
        "jobs": jobs,
    }


def bare_process() -> float:
    """Return the median seconds of a `python3` that does nothing."""
    seconds = []
    for _ in range(10):
        began = time.monotonic()
        subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


def left_behind() -> str:
    """Return what this project's containers and processes still are on this machine, in words; empty: nothing."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    return "; ".join(
        line[:80] for line in listed if line.startswith(("python3 -s -B worker.py", "python3 -s -B runner.py"))
    )


async def run(quick: bool) -> tuple[list[Bar], list[dict[str, Any]]]:
    """Measure every engine that is here."""
    rows: list[dict[str, Any]] = [{"engine": "bare python3", "alone_s": round(bare_process(), 3)}]
    bars = []
    for engine in STARTS:
        try:
            sandbox = await open_sandbox(engine)
        except NoSandbox as error:
            print(f"left out: {error}")
            continue
        print(f"{engine} enforces: {'; '.join(sandbox.enforces)}")
        await sandbox.close()
        for workers in (2,) if quick else (1, 2, 3, 4):  # one after the other, each alone on the machine
            row = await measure(engine, workers, jobs=10 if quick else 60, singles=3 if quick else 10)
            rows.append(row)
        left = left_behind()
        bars.append(Bar(name=f"{engine}: left behind", asked="nothing", seen=left or "nothing", ok=not left))
    return bars, rows


def main() -> None:
    """Run from the command line."""
    given = arguments(__doc__).parse_args()
    bars, rows = asyncio.run(run(given.quick))
    print(f"{'engine':<14}{'workers':>8}{'alone s':>9}{'jobs/s':>8}")
    for row in rows:
        print(f"{row['engine']:<14}{row.get('workers', ''):>8}{row['alone_s']:>9.3f}{row.get('jobs_per_s', ''):>8}")
    publish(bars, rows, given.json)


if __name__ == "__main__":
    main()
