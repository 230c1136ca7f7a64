"""Choosing an engine, and refusing one whose walls do not hold."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

from archon.errors import ConfigError, NoSandbox
from archon.sandbox import auto
from archon.sandbox.bubblewrap import BubblewrapSandbox
from archon.sandbox.docker import DockerSandbox
from archon.sandbox.probe import Leak, probe
from archon.sandbox.protocol import Job, Outcome


class NoWalls:
    """An engine that contains nothing: runs the job as a plain process of this machine, with a deadline only."""

    engine = "no walls"

    def __init__(self, folder) -> None:
        self.folder = folder

    async def run(self, job: Job) -> Outcome:
        began = time.monotonic()
        command = [sys.executable, *job.argv[1:]]
        try:
            done = await asyncio.to_thread(
                subprocess.run,
                command,
                input=job.stdin,
                capture_output=True,
                timeout=job.limits.wall_s,
                cwd=self.folder,
            )
        except subprocess.TimeoutExpired as error:
            wall_s = time.monotonic() - began
            return Outcome(end="timeout", exit_code=None, stdout=error.stdout or b"", stderr=b"", wall_s=wall_s)
        wall_s = time.monotonic() - began
        return Outcome(end="exited", exit_code=done.returncode, stdout=done.stdout, stderr=done.stderr, wall_s=wall_s)

    async def close(self) -> None:
        pass


async def test_the_probe_sees_every_missing_wall(tmp_path, monkeypatch):
    monkeypatch.setattr("archon.sandbox.probe._WALLS", _tame("archon.sandbox.probe"))
    leaks = {leak.wall for leak in await probe(NoWalls(tmp_path))}
    assert {"disk", "processes", "memory"} <= leaks
    assert "time" not in leaks


def _tame(module: str) -> str:
    """The probe's children outside a sandbox would live for thirty seconds; here they need not."""
    walls: str = sys.modules[module]._WALLS
    assert "time.sleep(30)" in walls
    return walls.replace("time.sleep(30)", "time.sleep(1)")


async def test_every_wall_of_a_real_engine_holds(sandbox):
    assert await probe(sandbox) == ()


async def test_an_engine_that_leaks_is_refused(monkeypatch):
    class Leaky(NoWalls):
        closed = False

        async def close(self):
            Leaky.closed = True

    async def start():
        return Leaky(".")

    async def leaks(_):
        return (Leak(wall="network", seen="a job has a route to other machines"),)

    monkeypatch.setattr(BubblewrapSandbox, "start", start)
    monkeypatch.setattr(auto, "probe", leaks)
    monkeypatch.setattr(auto, "_held", set())
    with pytest.raises(NoSandbox, match="bubblewrap: refused, network: a job has a route"):
        await auto.open_sandbox("bubblewrap")
    assert Leaky.closed


async def test_none_available_names_each_with_reason_and_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSandbox) as caught:
        await auto.open_sandbox()
    message = str(caught.value)
    assert "docker: OSError: no Docker daemon at unix://" in message
    assert "check DOCKER_HOST" in message
    assert "bubblewrap: OSError: not on PATH: bwrap" in message
    assert "apt-get install bubblewrap" in message
    assert "\n" not in message


async def test_an_unknown_engine_is_named_with_the_nearest():
    with pytest.raises(ConfigError, match="'dokcer': did you mean 'docker'"):
        await auto.open_sandbox("dokcer")


async def test_bubblewrap_is_taken_where_docker_is_not(monkeypatch):
    async def no_docker(**_):
        raise ConnectionRefusedError("nobody listens")

    async def bubblewrap(**_):
        return NoWalls(".")

    async def holds(_):
        return ()

    monkeypatch.setattr(DockerSandbox, "start", no_docker)
    monkeypatch.setattr(BubblewrapSandbox, "start", bubblewrap)
    monkeypatch.setattr(auto, "probe", holds)
    monkeypatch.setattr(auto, "_held", set())
    assert isinstance(await auto.open_sandbox(), NoWalls)
