"""Read one hunk of a unified diff.

Its counts are believed only where they agree with the lines that follow. Elsewhere it has two readings, all the lines
that look like its own and as many as its counts say, and the file that it is for decides which of them is meant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")

Row = tuple[bytes, bytes]
"""What stands in front of a line (space, plus or minus), and the line with its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One place that a section changes."""

    header: str
    line: int | None
    """Where its old lines begin, counted from 1, as its header says."""
    readings: tuple[tuple[Row, ...], ...]
    """The likelier first; more than one only where the counts are wrong."""
    miscounted: bool = False
    """The first reading is not as long as the header says."""


def read_hunk(lines: Sequence[bytes], at: int) -> tuple[Hunk, int]:
    """Return the hunk whose header is line `at`, and the line after it."""
    header, first = lines[at], at + 1
    match = HUNK.match(header)
    counted = None
    if match is not None:
        old, new = (1 if match.group(group) is None else int(match.group(group)) for group in (2, 4))
        counted = _end_by_counts(lines, first, old, new)
    ends = [counted] if counted is not None and not _goes_on(lines, counted) else _ends_by_looks(lines, first, counted)
    hunk = Hunk(
        header=shown(header),
        line=int(match.group(1)) if match is not None else None,
        readings=tuple(_rows(lines[first:end]) for end in ends),
        miscounted=ends[0] != counted,
    )
    return hunk, max(ends)


def shown(line: bytes) -> str:
    """Return the beginning of a line for a message."""
    return repr(line[:100].decode("utf-8", "replace").rstrip("\r"))


def _end_by_counts(lines: Sequence[bytes], at: int, old: int, new: int) -> int | None:
    while old > 0 or new > 0:
        kind = _kind(lines, at)
        if kind is None:
            return None
        old -= kind in (b" ", b"-")
        new -= kind in (b" ", b"+")
        if old < 0 or new < 0:
            return None
        at += 1
    return at + 1 if _kind(lines, at) == b"\\" else at


def _ends_by_looks(lines: Sequence[bytes], first: int, counted: int | None) -> list[int]:
    end = first
    while _is_body(lines, end):
        end += 1
    while end > first and _is_blank(lines[end - 1]):  # rather what parts two sections than context
        end -= 1
    return [end] if counted in (None, end) else [end, counted or end]


def _goes_on(lines: Sequence[bytes], at: int) -> bool:
    return _is_body(lines, at) and not _is_blank(lines[at])


def _is_body(lines: Sequence[bytes], at: int) -> bool:
    if _kind(lines, at) is None or lines[at].rstrip(b"\r") == b"-- ":  # the latter: the signature of a mailed patch
        return False
    following = (*lines[at : at + 3], b"", b"")
    return not all(following[ahead].startswith(mark) for ahead, mark in enumerate((b"--- ", b"+++ ", b"@@")))


def _kind(lines: Sequence[bytes], at: int) -> bytes | None:
    """Return what a line of a hunk begins with, or None for a line that no hunk has."""
    if at >= len(lines):
        return None
    line = lines[at]
    if _is_blank(line):
        return b" "
    return line[:1] if line[:1] in (b" ", b"+", b"-") or line.startswith(b"\\ ") else None


def _is_blank(line: bytes) -> bool:
    return line in (b"", b"\r")


def _rows(lines: Sequence[bytes]) -> tuple[Row, ...]:
    rows = list[Row]()
    for line in lines:
        if line.startswith(b"\\ "):
            if rows:
                rows[-1] = (rows[-1][0], rows[-1][1].removesuffix(b"\n"))
        elif _is_blank(line):
            rows.append((b" ", line + b"\n"))
        else:
            rows.append((line[:1], line[1:] + b"\n"))
    return tuple(rows)
