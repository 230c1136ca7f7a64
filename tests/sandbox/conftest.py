"""The engines that this machine has; a test that takes `sandbox` runs once for each, and is skipped with the reason."""

from __future__ import annotations

import os
import shutil

import pytest
import pytest_asyncio

from archon.errors import NoSandbox
from archon.sandbox import auto
from archon.sandbox.docker import DockerSandbox

ENGINES = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]


def absent(engine: str) -> str | None:
    """Return why an engine cannot be here at all; what is here and does not work is a failure, not a skip."""
    if engine == "docker":
        socket = os.environ.get("DOCKER_HOST") or "/var/run/docker.sock"
        return None if "://" in socket or os.path.exists(socket) else f"no daemon at {socket}"
    return None if shutil.which("bwrap") else "bwrap is not installed"


async def _open(engine: str):
    """Open as users do the first time, walls tried; later with few warm containers, which most tests do not need."""
    if engine in auto._held and engine == "docker":
        return await DockerSandbox.start(warm=1)
    return await auto.open_sandbox(engine)


@pytest.fixture(params=ENGINES)
async def sandbox(request):
    reason = absent(request.param)
    if reason:
        pytest.skip(reason)
    try:
        opened = await _open(request.param)
    except NoSandbox as error:
        pytest.fail(str(error))
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def why_no_docker():
    """Why the Docker engine cannot be here; None where it must work."""
    return absent("docker")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=ENGINES)
async def engine(request):
    """One opened engine for all tests of a module, which must run in the module's loop."""
    reason = absent(request.param)
    if reason:
        pytest.skip(reason)
    opened = await auto.open_sandbox(request.param)
    yield opened
    await opened.close()
