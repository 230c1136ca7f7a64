"""Read a repository that came as a tar or zip file into a tree, without unpacking it anywhere.

Only regular files and folders are taken. A link, a device, a path that leads out of the archive, a name that is there
twice and more content than allowed are errors: an archive is input from outside, and what is unusual in it is more
often an attack or a mistake than a need. Sizes are counted while reading, not believed.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from archon.codefix._paths import parents, path_fault
from archon.codefix.tree import MOST_BYTES, MOST_FILES
from archon.codefix.types import File, Tree
from archon.errors import TaskError

_HEADER_BYTES = 8_192
"""Allowed per file on top of its content, for headers and padding."""
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile, NotImplementedError)


def read_archive(path: Path, *, root: str = "", most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> Tree:
    """Return the files of a `.tar` (plain or gzip, bzip2, xz) or `.zip` file.

    Args:
        path: the archive; its content says what kind it is, not its name.
        root: a folder in it that is the repository, such as the one that GitHub puts everything into.
        most_bytes: of all files together, unpacked.
        most_files: how many there may be.

    Raises:
        TaskError: it cannot be read, or holds something that a tree cannot; it names the archive and the member.
    """
    files: dict[str, File] = {}
    left = most_bytes
    prefix = f"{root.strip('/')}/" if root.strip("/") else ""
    try:
        kind = _zip_files if zipfile.is_zipfile(path) else _tar_files
        for file in kind(path, most_bytes + most_files * _HEADER_BYTES):
            left -= len(file.content)
            if left < 0 or len(files) == most_files:
                raise TaskError(f"{path.name}: more than {most_bytes} bytes or {most_files} files")
            if file.path in files:
                raise TaskError(f"{path.name}: {file.path!r} is in it twice")
            files[file.path] = file
    except _BROKEN as error:
        raise TaskError(f"cannot read the archive {str(path)!r}: {error}") from error
    found = {
        name.removeprefix(prefix): File(
            path=name.removeprefix(prefix), content=file.content, executable=file.executable
        )
        for name, file in files.items()
        if name.startswith(prefix)
    }
    if not found:
        raise TaskError(f"{path.name}: no files below {root!r}" if prefix else f"{path.name}: no files in it")
    return _tree(path, found)


def _tree(archive: Path, files: dict[str, File]) -> Tree:
    for name in files:
        above = next((each for each in parents(name) if each in files), None)
        if above is not None:
            raise TaskError(f"{archive.name}: {above!r} is a file and {name!r} needs it to be a folder")
    return tuple(files[name] for name in sorted(files))


def _plain(archive: Path, name: str) -> str:
    plain = name.removeprefix("./")
    fault = "has a backslash" if "\\" in plain else path_fault(plain)
    if fault is not None:
        raise TaskError(f"{archive.name}: the path {name[:200]!r} {fault}")
    return plain


def _tar_files(path: Path, most: int) -> Iterator[File]:
    with (
        _decompressed(path) as stream,
        tarfile.open(fileobj=cast("IO[bytes]", _Bounded(stream, most)), mode="r|") as tar,
    ):
        for member in tar:
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                raise TaskError(f"{path.name}: {member.name[:200]!r} is a link, a device or sparse, not a plain file")
            content = tar.extractfile(member)
            assert content is not None, "a regular file has content"
            yield File(
                path=_plain(path, member.name),
                content=content.read(),
                executable=bool(member.mode & stat.S_IXUSR),
            )


def _decompressed(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        magic = file.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.open(path))
    if magic.startswith(b"BZh"):
        return cast("IO[bytes]", bz2.open(path))
    if magic.startswith(b"\xfd7zXZ\0"):
        return cast("IO[bytes]", lzma.open(path))
    return path.open("rb")


class _Bounded:
    """A stream that ends in an error when more is read from it than allowed."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream = stream
        self._left = most

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise TaskError("the archive holds more than is allowed when it is unpacked")
        return data


def _zip_files(path: Path, most: int) -> Iterator[File]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            mode = member.external_attr >> 16
            if member.is_dir():
                continue
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise TaskError(f"{path.name}: {member.filename[:200]!r} is a link or a device, not a plain file")
            if member.flag_bits & 1:
                raise TaskError(f"{path.name}: {member.filename[:200]!r} is encrypted")
            with archive.open(member) as stream:
                content = stream.read(most + 1)
            most -= len(content)
            if most < 0:
                raise TaskError("the archive holds more than is allowed when it is unpacked")
            yield File(path=_plain(path, member.filename), content=content, executable=bool(mode & stat.S_IXUSR))
