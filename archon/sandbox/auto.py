"""Chooses an engine: Docker, else bubblewrap, else one error that names each, why it is not usable, and the remedy.

Never a silent step down: what was chosen is `sandbox.engine`, what it enforces is `sandbox.enforces`, and an engine
whose walls do not hold in the probe is refused.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from archon.errors import ConfigError, NoSandbox, SandboxError, nearest
from archon.sandbox._container import ENGINE_ERRORS
from archon.sandbox.bubblewrap import BubblewrapSandbox
from archon.sandbox.docker import DockerSandbox
from archon.sandbox.probe import probe

ENGINES = ("docker", "bubblewrap")
_held: set[str] = set()
"""The engines whose walls this process has already seen hold: a property of the machine, tried once."""


async def open_sandbox(engine: str | None = None) -> DockerSandbox | BubblewrapSandbox:
    """Return a sandbox whose walls were tried; close it when done.

    Args:
        engine: `docker` or `bubblewrap`; None: the first of these that works.

    Raises:
        ConfigError: an engine of another name.
        NoSandbox: none works here; the message names each that was tried, the reason, and the remedy.
    """
    if engine is not None and engine not in ENGINES:
        raise ConfigError(f"unknown sandbox engine {engine!r}: {nearest(engine, ENGINES)}")
    reasons = []
    for name in ENGINES if engine is None else (engine,):
        try:
            return await _open(name)
        except (SandboxError, *ENGINE_ERRORS) as error:
            reasons.append(f"{name}: {_reason(error)}; {_remedy(name, error)}")
    raise NoSandbox(f"no sandbox can run untrusted code here. {' | '.join(reasons)}")


async def _open(name: str) -> DockerSandbox | BubblewrapSandbox:
    sandbox = await (DockerSandbox.start() if name == "docker" else BubblewrapSandbox.start())
    try:
        if name not in _held:
            leaks = await probe(sandbox)
            if leaks:
                raise SandboxError("refused, " + ", ".join(f"{leak.wall}: {leak.seen}" for leak in leaks))
            _held.add(name)
    except BaseException:
        await asyncio.shield(sandbox.close())
        raise
    return sandbox


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())[:600]
    return text if isinstance(error, SandboxError) else f"{type(error).__name__}: {text}"


def _remedy(name: str, error: BaseException) -> str:
    """Return what a user can do about it, from what can be seen on this machine."""
    if isinstance(error, SandboxError) and str(error).startswith("refused"):
        return "its limits are not in force here, so it will not be used"
    if name == "bubblewrap":
        if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
            return "install bubblewrap; if it is installed, allow it user namespaces with an AppArmor profile"
        return "install it (Debian: apt-get install bubblewrap) and allow unprivileged user namespaces"
    if os.environ.get("DOCKER_HOST"):
        return f"check DOCKER_HOST={os.environ['DOCKER_HOST']!r}"
    socket = Path("/var/run/docker.sock")
    if not socket.exists():
        return "start a daemon (scripts/start_docker.sh does it with Debian's docker.io, as root)"
    if not os.access(socket, os.R_OK | os.W_OK):
        return f"this user may not use {socket}: join its group"
    return "see the daemon's log"
