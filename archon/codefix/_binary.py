"""Decode git's binary changes: base 85 lines that hold, deflated, a whole file (`literal`) or instructions (`delta`).

Sizes are checked before anything is unpacked, so that neither a deflate bomb nor a delta that copies without end costs
more than the limit. Source: git's `apply.c` and `patch-delta.c` for the format; nothing of them is copied.
"""

from __future__ import annotations

import base64
import zlib

from archon.codefix._refuse import conflict, rejected
from archon.codefix._unified import Binary


def binary_content(change: Binary, old: bytes, *, most_bytes: int, path: str) -> bytes:
    """Return the content that a binary change makes out of the old one.

    Raises:
        Refuse: it is damaged, makes more than `most_bytes`, or was made for other content.
    """
    if change.size > most_bytes:
        raise rejected(f"{path}: a binary change of {change.size} bytes; at most {most_bytes} are allowed")
    try:
        packed = b"".join(_line(line) for line in change.lines)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, change.size + 1)
    except (ValueError, zlib.error):
        raise rejected(f"{path}: the binary change is damaged") from None
    if len(data) != change.size:
        raise rejected(f"{path}: the binary change says {change.size} bytes and holds another number")
    if change.kind == "literal":
        return data
    try:
        return _delta(data, old, most_bytes, path)
    except IndexError:
        raise rejected(f"{path}: the binary change is cut off") from None


def _line(line: bytes) -> bytes:
    first = line[:1]
    size = ord(first) - 64 if b"A" <= first <= b"Z" else ord(first) - 70
    decoded = base64.b85decode(line[1:])
    if not 1 <= size <= 52 or not 0 <= len(decoded) - size < 4:
        raise ValueError(f"a line of {len(decoded)} bytes that says {size}")
    return decoded[:size]


def _delta(data: bytes, old: bytes, most_bytes: int, path: str) -> bytes:
    old_size, at = _number(data, 0)
    new_size, at = _number(data, at)
    if old_size != len(old):
        raise conflict(f"{path}: the binary change was made for a file of {old_size} bytes, not {len(old)}")
    if new_size > most_bytes:
        raise rejected(f"{path}: a binary change of {new_size} bytes; at most {most_bytes} are allowed")
    made = bytearray()
    while at < len(data) and len(made) <= new_size:
        instruction, at = data[at], at + 1
        if instruction & 0x80:
            start, at = _bytes(data, at, instruction & 0x0F, 4)
            size, at = _bytes(data, at, instruction >> 4 & 0x07, 3)
            made += old[start : start + (size or 0x10000)]
        else:
            made += data[at : at + instruction]
            at += instruction
    if len(made) != new_size:
        raise rejected(f"{path}: the binary change is damaged")
    return bytes(made)


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
    raise IndexError(at)


def _bytes(data: bytes, at: int, present: int, count: int) -> tuple[int, int]:
    """Read the bytes of a number that the bits of `present` announce, the least first."""
    value = 0
    for place in range(count):
        if present >> place & 1:
            value |= data[at] << 8 * place
            at += 1
    return value, at
