"""Tries an engine's walls before anything untrusted runs in it: network, host files, processes, memory, disk, time.

An engine that silently drops a limit it may not set is worse than none, so the probe looks at what happens and not
at what was configured. It needs one to two seconds.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from archon.sandbox.protocol import Job, Limits, Outcome, Sandbox

_LIMITS = Limits(wall_s=20.0, memory_mb=128, processes=24, disk_mb=8)
_WALLS = """
import errno, json, os, socket, time
found = {}
found["root"] = os.getuid() == 0 or os.geteuid() == 0

def reaches(family, address):
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as s:
            s.connect(address)  # needs a route, sends nothing
        return True
    except OSError:
        return False

found["network"] = reaches(socket.AF_INET, ("192.0.2.1", 9)) or reaches(socket.AF_INET6, ("2001:db8::1", 9))

def writable(folder):
    path = folder.rstrip("/") + "/archon-probe"
    try:
        open(path, "w").close()
        os.unlink(path)
        return True
    except OSError:
        return False

found["writable"] = [folder for folder in ("/", "/usr", "/etc", "/dev", "/root", "/home", "/var") if writable(folder)]
found["disk_mb"] = 0
try:
    for part in range(64):
        with open(f"fill{part}", "wb") as file:
            file.write(bytes(1 << 20))
        found["disk_mb"] += 1
except OSError as error:
    found["disk_error"] = error.errno
for part in range(64):
    if os.path.exists(f"fill{part}"):
        os.unlink(f"fill{part}")
children = []
try:
    for _ in range(200):
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        children.append(child)
except OSError:
    pass
found["processes"] = len(children)
print(json.dumps(found))
"""
_MEMORY = "held = []\nfor _ in range(64):\n    held.append(bytearray(b'x') * (8 << 20))\nprint('held')"
_TIME = "print('alive', flush=True)\nwhile True:\n    pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One wall that does not hold."""

    wall: str
    seen: str


async def probe(sandbox: Sandbox) -> tuple[Leak, ...]:
    """Run the probes; an empty answer means that every wall held.

    Raises:
        SandboxFailed: the engine cannot run a job at all.
    """
    walls, memory, clock = await asyncio.gather(
        sandbox.run(_job(_WALLS, _LIMITS)),
        sandbox.run(_job(_MEMORY, _LIMITS)),
        sandbox.run(_job(_TIME, Limits(wall_s=1.0, memory_mb=128, processes=24, disk_mb=8))),
    )
    return (*_of_walls(walls), *_of_memory(memory), *_of_time(clock))


def _job(code: str, limits: Limits) -> Job:
    return Job(argv=("python3", "-I", "-B", "-c", code), limits=limits)


def _of_walls(outcome: Outcome) -> tuple[Leak, ...]:
    try:
        seen = json.loads(outcome.stdout)
    except ValueError:
        return (Leak(wall="probe", seen=f"did not report: {outcome.end}, {outcome.stderr[-300:]!r}"),)
    leaks = []
    if seen["root"]:
        leaks.append(Leak(wall="user", seen="jobs run as root"))
    if seen["network"]:
        leaks.append(Leak(wall="network", seen="a job has a route to other machines"))
    if seen["writable"]:
        leaks.append(Leak(wall="files", seen=f"a job can write to {', '.join(seen['writable'])}"))
    if seen["disk_mb"] > _LIMITS.disk_mb:
        leaks.append(Leak(wall="disk", seen=f"{seen['disk_mb']} MB written with disk_mb={_LIMITS.disk_mb}"))
    if seen["processes"] > _LIMITS.processes:
        leaks.append(Leak(wall="processes", seen=f"{seen['processes']} started with processes={_LIMITS.processes}"))
    return tuple(leaks)


def _of_memory(outcome: Outcome) -> tuple[Leak, ...]:
    if b"held" in outcome.stdout:
        return (Leak(wall="memory", seen=f"512 MB held with memory_mb={_LIMITS.memory_mb}"),)
    return ()


def _of_time(outcome: Outcome) -> tuple[Leak, ...]:
    if outcome.end != "timeout" or outcome.wall_s > 5.0:
        return (
            Leak(wall="time", seen=f"a loop with wall_s=1.0 ended as {outcome.end!r} after {outcome.wall_s:.1f} s"),
        )
    return ()
