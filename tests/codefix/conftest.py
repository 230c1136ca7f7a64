"""The engines that this machine has; a test that takes `sandbox` runs once for each, and is skipped with the reason."""

from __future__ import annotations

import os
import shutil

import pytest

from archon.errors import NoSandbox
from archon.sandbox import auto

ENGINES = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]


def absent(engine):
    if engine == "docker":
        return None if os.environ.get("DOCKER_HOST") or os.path.exists("/var/run/docker.sock") else "no Docker daemon"
    return None if shutil.which("bwrap") else "bwrap is not installed"


@pytest.fixture(params=ENGINES)
async def sandbox(request):
    if reason := absent(request.param):
        pytest.skip(reason)
    try:
        opened = await auto.open_sandbox(request.param)
    except NoSandbox as error:
        pytest.fail(str(error))
    try:
        yield opened
    finally:
        await opened.close()
