"""The sandbox image: Python 3, numpy, pytest and little else; built once, found again by a tag made from its recipe.

On a Debian-like machine it is built from the machine's own package sources with `mmdebstrap` and imported, so no
image registry is needed. Elsewhere it is built from a pinned base image of a registry. Nothing of Archon is in the
image: what a job needs travels with the job.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import docker
import docker.errors
from docker import DockerClient

from archon.errors import SandboxError

REPOSITORY = "archon-sandbox"
_PACKAGES = ("python3", "python3-numpy", "python3-pytest")
_EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*", "/var/cache/*")
_DOCKERFILE = """\
FROM python:3.11.9-slim-bookworm
RUN pip install --no-cache-dir numpy==1.26.4 pytest==8.4.2 && ln -sf /usr/local/bin/python3 /usr/bin/python3
"""
_BUILD_S = 900.0
"""A build takes 15 to 60 s with a near mirror; a far one may need minutes."""


def ensure_image(client: DockerClient | None = None) -> str:
    """Return the tag of the sandbox image, building it first when this daemon has none of this recipe.

    Blocks for the time of a build (under a minute where the package mirror is near), once per daemon.

    Args:
        client: the daemon to build for; None: the one that `docker_client` finds.

    Raises:
        SandboxError: the image cannot be built here; the message names both ways and what each said.
    """
    if client is None:
        with closing(docker_client()) as own:
            return ensure_image(own)
    sources = _debian_sources() if shutil.which("mmdebstrap") else None
    recipe = _DOCKERFILE if sources is None else "\n".join((sources, *_PACKAGES, *_EXCLUDED))
    tag = f"{REPOSITORY}:{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    if not _exists(client, tag):
        if sources is None:
            _from_registry(client, tag)
        else:
            _from_packages(client, tag, sources)
    return tag


def docker_client(base_url: str | None = None, *, connections: int = 64) -> DockerClient:
    """Return a client of the daemon at `base_url`, `DOCKER_HOST`, or the usual socket, in this order.

    The address is explicit because the SDK's own default follows whichever context a command-line client last chose.

    Raises:
        OSError: nothing listens at the address.
        DockerException: what listens does not answer as a Docker daemon.
    """
    url = base_url or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if url.startswith("unix://"):
        # Tried first because the SDK leaves its socket open, and its message long, when nobody listens.
        with socket.socket(socket.AF_UNIX) as attempt:
            attempt.settimeout(10)
            try:
                attempt.connect(url.removeprefix("unix://"))
            except OSError as error:
                raise OSError(f"no Docker daemon at {url}: {error.strerror or error}") from None
    return DockerClient(base_url=url, version="auto", timeout=60, max_pool_size=connections)


def _exists(client: DockerClient, tag: str) -> bool:
    try:
        client.images.get(tag)
    except docker.errors.ImageNotFound:
        return False
    return True


def _debian_sources() -> str | None:
    """Return this machine's package sources of its own release, or None where it is not a Debian relative."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    suite = release.get("VERSION_CODENAME")
    if not suite or not {"debian", "ubuntu"} & {release.get("ID", ""), *release.get("ID_LIKE", "").split()}:
        return None
    folder = Path("/etc/apt/sources.list.d")
    files = [Path("/etc/apt/sources.list"), *sorted(folder.glob("*.list")), *sorted(folder.glob("*.sources"))]
    texts = [path.read_text() for path in files if path.is_file()]
    return sources_of_suite(texts, suite) or None


def sources_of_suite(texts: Iterable[str], suite: str) -> str:
    """Return the package sources among some files' texts that belong to one release, in the one-line format.

    Sources of other vendors (whose suites have other names) are left out: their keys and packages are not needed.
    """
    lines: list[str] = []
    for text in texts:
        for stanza in re.split(r"\n\s*\n", text):
            fields = {
                key.strip().lower(): value.split()
                for key, _, value in (line.partition(":") for line in stanza.splitlines() if not line.startswith("#"))
            }
            if "uris" in fields and "deb" in fields.get("types", []):
                option = f"[signed-by={fields['signed-by'][0]}] " if fields.get("signed-by") else ""
                lines += [
                    f"deb {option}{uri} {name} {' '.join(fields.get('components', []))}"
                    for uri in fields["uris"]
                    for name in fields.get("suites", [])
                    if _is_of(name, suite)
                ]
            else:
                lines += [line.strip() for line in stanza.splitlines() if _is_source_line(line, suite)]
    return "\n".join(lines)


def _is_of(name: str, suite: str) -> bool:
    return name.partition("/")[0].partition("-")[0] == suite


def _is_source_line(line: str, suite: str) -> bool:
    words = re.sub(r"\[[^]]*\]", "", line).split()
    return len(words) >= 4 and words[0] == "deb" and _is_of(words[2], suite)


def _from_packages(client: DockerClient, tag: str, sources: str) -> None:
    with tempfile.TemporaryDirectory(prefix="archon-image-") as folder:
        listed, tarball = Path(folder, "sources.list"), Path(folder, "root.tar")
        listed.write_text(sources + "\n")
        command = ["mmdebstrap", "--quiet", "--variant=essential", f"--include={','.join(_PACKAGES)}"]
        command += [f"--dpkgopt=path-exclude={pattern}" for pattern in _EXCLUDED]
        command += ['--aptopt=Acquire::Check-Valid-Until "false"', "", str(tarball), str(listed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
        except subprocess.TimeoutExpired:
            raise SandboxError(f"the sandbox image was not built within {_BUILD_S:.0f} s by mmdebstrap") from None
        if done.returncode != 0:
            raise SandboxError(
                f"mmdebstrap could not build the sandbox image (exit code {done.returncode}): {done.stderr[-800:]!r}"
            )
        answer = client.api.import_image_from_file(str(tarball), repository=REPOSITORY, tag=tag.partition(":")[2])
    for line in str(answer).splitlines():
        if "error" in json.loads(line):
            raise SandboxError(f"the daemon refused the sandbox image: {line!r}")


def _from_registry(client: DockerClient, tag: str) -> None:
    try:
        client.images.build(fileobj=io.BytesIO(_DOCKERFILE.encode()), tag=tag, rm=True)
    except (docker.errors.BuildError, docker.errors.APIError) as error:
        raise SandboxError(
            f"the sandbox image could not be built: mmdebstrap is not usable here, and building from a registry said "
            f"{str(error)!r}; on Debian: apt-get install mmdebstrap"
        ) from error
