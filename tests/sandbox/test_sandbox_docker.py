"""What only the Docker engine has: its pool, and the layers that see to it that no container stays."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import closing

import pytest

from archon.sandbox import _container, _owner
from archon.sandbox import docker as docker_engine
from archon.sandbox._container import Shape
from archon.sandbox.docker import DockerSandbox
from archon.sandbox.image import docker_client, ensure_image
from archon.sandbox.protocol import Job, Limits

pytestmark = pytest.mark.docker


@pytest.fixture
def api(request):
    absent = request.getfixturevalue("why_no_docker")
    if absent:
        pytest.skip(absent)
    with closing(docker_client()) as client:
        yield client.api


def containers_of(api, **labels: str) -> list[str]:
    filters = {"label": [f"{key}={value}" for key, value in labels.items()]}
    return [found["Id"] for found in api.containers(all=True, filters=filters)]


async def none_left(api, within_s: float = 60.0, **labels: str) -> bool:
    until = time.monotonic() + within_s
    while await asyncio.to_thread(containers_of, api, **labels):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.1)
    return True


OWNER = """
import asyncio, sys
from archon.sandbox import Job, Limits
from archon.sandbox.docker import DockerSandbox
async def main():
    sandbox = await DockerSandbox.start(workers=2, warm=1)
    if sys.argv[1] == "leave":
        await sandbox.run(Job(argv=("true",)))
        print("up", flush=True)
        return  # without closing
    running = asyncio.ensure_future(sandbox.run(Job(argv=("sleep", "300"), limits=Limits(wall_s=300))))
    await asyncio.sleep(1)
    print("up", flush=True)
    await running
asyncio.run(main())
"""


@pytest.mark.parametrize(("how", "code"), [("leave", 0), ("term", 128 + signal.SIGTERM)])
async def test_a_program_that_ends_without_closing_takes_its_containers_along(api, how, code):
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, how, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert await asyncio.wait_for(owner.stdout.readline(), 120) == b"up\n"
        mine = {_owner.PID: str(owner.pid)}
        if how == "term":
            assert await asyncio.to_thread(containers_of, api, **mine)
            owner.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(owner.wait(), 120) == code
        assert await none_left(api, **mine)
    finally:
        if owner.returncode is None:
            owner.kill()
            await owner.wait()


async def test_what_dead_processes_left_is_found_while_a_sandbox_runs(api, monkeypatch):
    dead = _owner.labels(600) | {_owner.START: "1"}
    live = _owner.labels(600)
    monkeypatch.setattr(docker_engine, "_REAP_S", 0.3)
    sandbox = await DockerSandbox.start(workers=1, warm=0)
    made = []
    try:
        image = await asyncio.to_thread(ensure_image)
        for labels in (dead, live):
            one = await asyncio.to_thread(api.create_container, image, ["sleep", "600"], labels=labels)
            made.append(one["Id"])
        assert await none_left(api, **{_owner.PID: dead[_owner.PID], _owner.START: "1"})
        assert made[1] in await asyncio.to_thread(containers_of, api, **{_owner.START: live[_owner.START]})
    finally:
        await sandbox.close()
        for one in made[1:]:
            await asyncio.to_thread(api.remove_container, one, force=True)


async def test_a_container_is_used_once_and_warm_ones_are_ready(api, monkeypatch):
    used = []
    execute = _container.execute

    def noting(api, container, *rest):
        used.append(container.id)
        return execute(api, container, *rest)

    monkeypatch.setattr(docker_engine._container, "execute", noting)
    sandbox = await DockerSandbox.start(workers=2, warm=1)
    try:
        shape = Shape.of(sandbox._image, Limits(), 1.0)
        for _ in range(4):
            assert (await sandbox.run(Job(argv=("true",)))).exit_code == 0
            while sandbox._pending:
                await asyncio.sleep(0.05)
            assert len(sandbox._pool[shape]) == 1
            warm = sandbox._pool[shape][0]
            assert warm.id not in used
        await sandbox.run(Job(argv=("true",)))
        assert used[-1] == warm.id
        assert len(used) == len(set(used)) == 5
    finally:
        await sandbox.close()


async def test_a_warm_container_that_died_is_not_the_jobs_failure(api):
    sandbox = await DockerSandbox.start(workers=1, warm=1)
    try:
        await sandbox.run(Job(argv=("true",)))
        while sandbox._pending:
            await asyncio.sleep(0.05)
        (pool,) = sandbox._pool.values()
        await asyncio.to_thread(_container.end, api, pool[0].id)
        assert (await sandbox.run(Job(argv=("echo", "fine")))).stdout == b"fine\n"
    finally:
        await sandbox.close()


async def test_what_a_job_leaves_flooding_its_output_does_not_hold_up_its_end(api):
    code = "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: os.write(1, b'a' * 65536)\nos._exit(0)"
    sandbox = await DockerSandbox.start(workers=1, warm=0)
    try:
        began = time.monotonic()
        outcome = await sandbox.run(Job(argv=("python3", "-c", code), limits=Limits(wall_s=60.0)))
        assert outcome.end in ("exited", "output_limit")
        while sandbox._pending:
            await asyncio.sleep(0.05)
        assert time.monotonic() - began < 50
    finally:
        await sandbox.close()
