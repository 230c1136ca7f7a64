"""Read a GGUF file's header: its metadata and where each tensor lies.

The `gguf` package reads these too, one numpy view per token of the vocabulary: 6 s for 150,000 tokens where this
takes half a second. The numbers of a tensor stay on disk; `convert` dequantises them with that package.

Source: the GGUF version 2 and 3 layout (little-endian; magic, version, counts, key-values, tensor records, padding).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archon.errors import ServingError

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRecord:
    """Where one tensor lies in the file."""

    name: str
    shape: tuple[int, ...]
    """In numpy's order, outermost first: the reverse of the file's."""
    type_id: int
    """The GGML quantisation type."""
    offset: int
    """Bytes from the start of the file."""

    @property
    def elements(self) -> int:
        """Return the number of weights."""
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """A GGUF file's metadata and tensor records."""

    metadata: dict[str, Any]
    tensors: tuple[TensorRecord, ...]


def read_header(path: Path) -> GgufHeader:
    """Return the header of a GGUF file.

    Raises:
        ServingError: the file is not GGUF 2 or 3, or ends within its header.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return _Cursor(view).header()
    except (struct.error, UnicodeDecodeError, KeyError, OverflowError, MemoryError) as error:
        raise ServingError(f"{str(path)!r} is damaged: its header does not read as GGUF ({error})") from error
    except ValueError as error:  # an empty file cannot be mapped; a wrong magic or version says so itself
        raise ServingError(f"{str(path)!r} is not a GGUF file: {error}") from error


class _Cursor:
    """A position that moves through the header."""

    def __init__(self, view: mmap.mmap) -> None:
        self._view = view
        self._at = 0

    def header(self) -> GgufHeader:
        magic, version = self._bytes(4), self._scalar("<I")
        if magic != b"GGUF" or version not in (2, 3):
            raise ValueError(f"it starts with {magic!r}, version {version!r}; expected b'GGUF', version 2 or 3")
        tensor_count, value_count = self._scalar("<Q"), self._scalar("<Q")
        metadata = {self._string(): self._value(self._scalar("<I")) for _ in range(value_count)}
        records = [self._record() for _ in range(tensor_count)]
        alignment = int(str(metadata.get("general.alignment", _DEFAULT_ALIGNMENT)))
        start = -(-self._at // alignment) * alignment
        return GgufHeader(
            metadata=metadata,
            tensors=tuple(
                TensorRecord(name=name, shape=shape, type_id=type_id, offset=start + offset)
                for name, shape, type_id, offset in records
            ),
        )

    def _record(self) -> tuple[str, tuple[int, ...], int, int]:
        name, dimensions = self._string(), self._scalar("<I")
        shape = tuple(self._scalar("<Q") for _ in range(dimensions))[::-1]
        return name, shape, self._scalar("<I"), self._scalar("<Q")

    def _bytes(self, count: int) -> bytes:
        data = self._view[self._at : self._at + count]
        if len(data) != count:
            raise struct.error(f"{count} bytes wanted at {self._at}, {len(data)} there")
        self._at += count
        return data

    def _scalar(self, code: str) -> Any:  # noqa: ANN401 (the code decides)
        (value,) = struct.unpack_from(code, self._view, self._at)
        self._at += struct.calcsize(code)
        return value

    def _string(self) -> str:
        return self._bytes(self._scalar("<Q")).decode("utf-8")

    def _value(self, kind: int) -> object:
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._scalar(_SCALARS[kind])
        item, count = self._scalar("<I"), self._scalar("<Q")
        if item in (_STRING, _ARRAY):
            return [self._value(item) for _ in range(count)]
        code = f"<{count}{_SCALARS[item][1]}"
        return list(struct.unpack(code, self._bytes(struct.calcsize(code))))
