"""Cases that need more than one job: neighbours, a daemon that goes away, an image that is not there."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from archon.errors import SandboxFailed
from archon.sandbox import Job, Limits, Sandbox, run_calls
from archon.sandbox.bubblewrap import BubblewrapSandbox
from archon.sandbox.docker import DockerSandbox
from archon.sandbox.verdict import of_calls
from benchmarks.adversary.case import ANSWER
from benchmarks.adversary.surroundings import engine_leavings

RIGHT = "def f(x): return 21 * x"
HANGS = "import time\ndef f(x): time.sleep(600)"
SPINS = "import threading\ndef spin():\n    while True: pass\nfor _ in range(12): threading.Thread(target=spin).start()"
MEASURES = """
import time
began, used = time.monotonic(), time.process_time()
while time.monotonic() < began + 3: pass
print(time.process_time() - used)
"""
SLOW = """
import time
def f(x):
    until = time.monotonic() + 0.8 * 5
    while time.monotonic() < until: time.sleep(0.1)
    return 42
"""
_PATIENT = Limits(wall_s=120.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Several jobs, and what must come of them."""

    number: str
    title: str
    play: Callable[[str], Awaitable[str]]
    """Takes the engine's name; returns what went wrong, empty when nothing did."""
    uncontained: Mapping[str, str] = field(default_factory=dict)
    slow: bool = False


@asynccontextmanager
async def opened(engine: str, workers: int) -> AsyncIterator[Sandbox]:
    """Open an engine with a number of workers."""
    sandbox: Sandbox
    if engine == "docker":
        sandbox = await DockerSandbox.start(workers=workers, warm=workers)
    else:
        sandbox = await BubblewrapSandbox.start(workers=workers)
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def neighbour_keeps_its_share(engine: str) -> str:
    """A job beside one with twelve spinning threads has nearly as much of the processor as it has alone."""
    async with opened(engine, 2) as sandbox:
        measure = Job(argv=("python3", "-I", "-c", MEASURES), limits=_PATIENT)
        alone = float((await sandbox.run(measure)).stdout)
        spinning = asyncio.ensure_future(
            sandbox.run(Job(argv=("python3", "-I", "-c", SPINS), limits=Limits(wall_s=8.0)))
        )
        await asyncio.sleep(0.5)
        beside = float((await sandbox.run(measure)).stdout)
        outcome = await spinning
    if outcome.end != "timeout":
        return f"the spinning job ended as {outcome.end!r}"
    share = beside / max(alone, 0.01)
    return "" if share >= 0.4 else f"beside it a job had {share:.2f} of the time that it had alone"


async def daemon_goes_away(_: str) -> str:
    """The engine's connection is cut while a job runs: the engine's failure; then everything works again."""
    with tempfile.TemporaryDirectory(prefix="archon-proxy-") as folder:
        path = str(Path(folder, "docker.sock"))
        proxy = _Proxy(path)
        await proxy.open()
        sandbox = await DockerSandbox.start(base_url=f"unix://{path}", workers=2, warm=1)
        try:
            running = asyncio.ensure_future(run_calls(sandbox, HANGS, ANSWER, Limits(wall_s=60.0), per_call_s=50.0))
            await proxy.busy()
            await proxy.cut()
            try:
                report = await running
                return f"the cut job came to {of_calls(report).word!r}"
            except SandboxFailed:
                pass
            await proxy.open()
            again = of_calls(await run_calls(sandbox, RIGHT, ANSWER, Limits(wall_s=60.0), per_call_s=20.0))
            if again.word != "pass":
                return f"the job after it came to {again.word!r}"
        finally:
            await sandbox.close()
            await proxy.cut()
    async with opened("docker", 1) as look:
        assert isinstance(look, DockerSandbox)
        label = next(f"{key}={value}" for key, value in sandbox._label.items())
        left = await asyncio.to_thread(look._api.containers, all=True, filters={"label": label})
        return f"{len(left)} containers left behind" if left else ""


class _Proxy:
    """Stands between a client and the daemon, and can be cut."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._attached = asyncio.Event()

    async def open(self) -> None:
        self._remove()
        self._server = await asyncio.start_unix_server(self._serve, self._path)

    async def busy(self) -> None:
        """Wait until a program was started, and is surely running."""
        await self._attached.wait()
        await asyncio.sleep(1.0)

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in set(self._writers):
            writer.transport.abort()
        self._remove()
        await asyncio.sleep(0)

    def _remove(self) -> None:
        Path(self._path).unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        daemon_reader, daemon_writer = await asyncio.open_unix_connection("/var/run/docker.sock")
        self._writers |= {writer, daemon_writer}
        try:
            await asyncio.gather(self._pump(reader, daemon_writer), self._pump(daemon_reader, writer))
        finally:
            self._writers -= {writer, daemon_writer}
            for one in (writer, daemon_writer):
                one.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if b"/exec/" in data and b"/start" in data:
                    self._attached.set()
                writer.write(data)
                await writer.drain()
            writer.write_eof()


async def image_is_missing(_: str) -> str:
    """An image that is not there is the engine's failure, and its name is said."""
    name = "archon-no-such-image:1"
    sandbox = await DockerSandbox.start(image=name, workers=1, warm=0)
    try:
        await run_calls(sandbox, RIGHT, ANSWER)
    except SandboxFailed as error:
        return "" if name in str(error) else f"the failure does not name the image: {error}"
    finally:
        await sandbox.close()
    return "a job ran without its image"


async def neighbours_do_not_cost_a_candidate_its_verdict(engine: str) -> str:
    """A call that takes 80 % of its time passes while eight other jobs run."""
    busy = "def f(x):\n    total = 0\n    for n in range(10 ** 7): total += n\n    return 42"
    async with opened(engine, 9) as sandbox:
        neighbours = [run_calls(sandbox, busy, ANSWER, _PATIENT, per_call_s=20.0) for _ in range(8)]
        report, *others = await asyncio.gather(run_calls(sandbox, SLOW, ANSWER, _PATIENT, per_call_s=5.0), *neighbours)
        left = await asyncio.to_thread(engine_leavings, sandbox) if engine == "bubblewrap" else []
    words = [of_calls(one).word for one in (report, *others)]
    return "; ".join([f"verdicts {words!r}"] * (set(words) != {"pass"}) + left)


NO_DAEMON = {"bubblewrap": "it has no daemon and no image"}
SCENARIOS = (
    Scenario(
        number="14b",
        title="a neighbour of spinning threads keeps its share of the processor",
        play=neighbour_keeps_its_share,
        uncontained={"bubblewrap": "it sets no share of the processor: jobs compete as the kernel schedules them"},
        slow=True,
    ),
    Scenario(number="100", title="the daemon goes away", play=daemon_goes_away, uncontained=NO_DAEMON),
    Scenario(number="101", title="the image is missing", play=image_is_missing, uncontained=NO_DAEMON),
    Scenario(
        number="112",
        title="80 % of its time while eight neighbours run",
        play=neighbours_do_not_cost_a_candidate_its_verdict,
        slow=True,
    ),
)
