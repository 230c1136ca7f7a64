"""What a call costs through the whole model stack, beside plain aiohttp and four peers, on one local server.

`python -m benchmarks.overhead [--quick] [--json PATH] [--peers DIR]`. Measured is
Metered(Splitting(Retrying(Throttled(OpenAIModel)))); the server takes 20 ms a call and 64 calls are in flight, so no
client can pass 3,200 calls/s; a second series at 0 ms shows the client alone. Server and clients are processes of their
own, the clients take turns, and a figure is the median over the turns (a ratio: of the ratios within each turn).
The peers live in a virtual environment that pip makes from `benchmarks/peers.txt`, by default ~/.cache/archon/peers;
`--quick` measures only those that are there already.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar, arguments, publish

HERE = Path(__file__).parent
PEERS = ("openai", "litellm", "dspy", "its_hub")
IN_FLIGHT = 64
Turn = dict[str, dict[str, Any]]
"""One turn's figures by client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is measured."""

    turns: int
    calls: int
    """Of plain aiohttp and Archon, each turn."""
    peer_calls: int
    memory_calls: int


FULL = Size(turns=5, calls=4000, peer_calls=600, memory_calls=10_000)
QUICK = Size(turns=1, calls=1000, peer_calls=100, memory_calls=3000)


def main() -> None:
    """Print the bars, and write them when asked."""
    parser = arguments(__doc__)
    parser.add_argument("--peers", type=Path, metavar="DIR", default=Path.home() / ".cache" / "archon" / "peers")
    asked = parser.parse_args()
    size = QUICK if asked.quick else FULL
    python = peers_python(asked.peers, make=not asked.quick)
    if python is None:
        print(f"     no peers at {asked.peers}: left out of this quick run")
    with serving() as port:
        loaded = [turn(port, 20, size, python) for _ in range(size.turns)]
        bare = [turn(port, 0, size, None) for _ in range(size.turns)]
        warm = size.memory_calls // 4
        memory = client("archon", url(port, 20), warm, size.memory_calls, 256)
    rows = [*table("20 ms", loaded), *table("0 ms", bare), {"series": "memory, 256 in flight", **memory}]
    for row in rows:
        print("     " + "  ".join(f"{name} {value}" for name, value in row.items()))
    publish(bars_of(loaded, bare, memory, size), rows, asked.json)


def bars_of(loaded: Sequence[Turn], bare: Sequence[Turn], memory: dict[str, Any], size: Size) -> list[Bar]:
    """Return what was asked beside what was seen."""
    bars = [
        at_least("calls/s over plain aiohttp's, 20 ms", 0.85, ratio(loaded, "calls_per_s", "archon", "aiohttp")),
    ]
    for peer, least in (("openai", 3.0), ("litellm", 6.0)):
        if peer in loaded[0]:
            seen = ratio(loaded, "calls_per_s", "archon", peer)
            bars.append(at_least(f"calls/s over {peer}'s, 20 ms", least, seen))
    for name, turns in (("20 ms", loaded), ("0 ms", bare)):
        cpu = ratio(turns, "cpu_us", "archon", "aiohttp")
        bars.append(
            Bar(name=f"CPU per call over plain aiohttp's, {name}", asked="<= 1.5", seen=f"{cpu:.2f}", ok=cpu <= 1.5)
        )
    grown = memory["grown_mb"]
    name = f"memory growth over {size.memory_calls:,} calls, 256 in flight"
    return [*bars, Bar(name=name, asked="<= 10 MB", seen=f"{grown:.1f} MB", ok=grown <= 10)]


def at_least(name: str, least: float, seen: float) -> Bar:
    """Return the bar of a ratio."""
    return Bar(name=name, asked=f">= {least:g}", seen=f"{seen:.2f}", ok=seen >= least)


def ratio(turns: Sequence[Turn], figure: str, one: str, other: str) -> float:
    """Return the median of the turns' ratios: within a turn the machine's other load is about the same."""
    return statistics.median(each[one][figure] / each[other][figure] for each in turns)


def table(series: str, turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Return each client's medians; `calls_per_cpu_s` is what one core could make, whatever else runs on it."""
    rows = []
    for name in turns[0]:
        cpu_us = statistics.median(each[name]["cpu_us"] for each in turns)
        calls_per_s = statistics.median(each[name]["calls_per_s"] for each in turns)
        rows.append(
            {
                "series": series,
                "client": name,
                "version": turns[0][name]["version"],
                "calls_per_s": round(calls_per_s),
                "cpu_us": round(cpu_us),
                "calls_per_cpu_s": round(1e6 / cpu_us),
            }
        )
    return rows


def turn(port: int, milliseconds: int, size: Size, python: Path | None) -> Turn:
    """Measure every client once, one after the other."""
    where = url(port, milliseconds)
    figures = {name: client(name, where, 200, size.calls, IN_FLIGHT) for name in ("aiohttp", "archon")}
    if python is not None:
        figures |= {name: client(name, where, 64, size.peer_calls, IN_FLIGHT, python) for name in PEERS}
    return figures


def url(port: int, milliseconds: int) -> str:
    """Return the server's URL for answers that take so long."""
    return f"http://127.0.0.1:{port}/{milliseconds}/v1"


def client(name: str, where: str, warm: int, calls: int, in_flight: int, python: Path | None = None) -> dict[str, Any]:
    """Return the figures of one client in a process of its own."""
    command = [python or sys.executable, HERE / "overhead_clients.py", name, where, warm, calls, in_flight]
    # litellm reads its price table from its own package, so that its start does not wait for the network.
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    if python is None:
        environment["PYTHONPATH"] = str(HERE.parent)
    done = subprocess.run(
        [str(each) for each in command], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise SystemExit(f"the client {name!r} failed:\n{done.stderr[-2000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


@contextmanager
def serving() -> Iterator[int]:
    """Run the server in a process of its own and give its port."""
    server = subprocess.Popen([sys.executable, HERE / "overhead_server.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield int(server.stdout.readline())
    finally:
        server.terminate()
        server.wait(10)
        if server.stdout is not None:
            server.stdout.close()


def peers_python(folder: Path, *, make: bool) -> Path | None:
    """Return the Python of the peers' virtual environment, made when it is missing; None when it may not be made."""
    python = folder / "bin" / "python"
    if not python.exists():
        if not make:
            return None
        print(f"     installing the peers into {folder}")
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "peers.txt"], check=True)
    return python


if __name__ == "__main__":
    main()
