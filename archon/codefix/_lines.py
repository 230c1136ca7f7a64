"""Find lines in a file, exactly: where they stand, whether they stand only once, and what is nearest when nowhere.

Nothing here guesses: context is never shortened and white space never overlooked. Lines are bytes that end at a line
feed, so a carriage return is part of its line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import accumulate
from typing import Literal

LineEnds = Literal["lf", "crlf", "mixed"]

_SHOWN_LINES = 12
_MOST_COMPARED_LINES = 5_000
_LONGEST_LINE = 300


def places(content: bytes, lines: bytes, most: int = 2) -> list[int]:
    """Return the offsets, at most so many, at which whole lines stand in a file. Takes time in proportion to both."""
    inside, wanted, found = b"\n" + content, b"\n" + lines, list[int]()
    if not lines.endswith(b"\n"):  # only the end of a file can lack its line feed
        return [len(content) - len(lines)] if inside.endswith(wanted) else []
    at = inside.find(wanted)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = inside.find(wanted, at + 1)
    return found


def line_starts(content: bytes) -> list[int]:
    """Return the offset of every line of a file."""
    return list(accumulate((len(line) + 1 for line in content.split(b"\n")[:-1]), initial=0))


def stands_at(content: bytes, starts: list[int], lines: bytes, number: int) -> int | None:
    """Return the offset of line `number` (from 1) when exactly these lines stand there."""
    if not 1 <= number <= len(starts):
        return None
    at = starts[number - 1]
    if not content.startswith(lines, at):
        return None
    return at if lines.endswith(b"\n") or at + len(lines) == len(content) else None


def line_number(content: bytes, at: int) -> int:
    """Return the number, from 1, of the line that holds an offset."""
    return content.count(b"\n", 0, at) + 1


def line_ends(content: bytes) -> LineEnds:
    """Return how the lines of a file end; `lf` for one without line ends."""
    both = content.count(b"\r\n")
    if both == 0:
        return "lf"
    return "crlf" if both == content.count(b"\n") else "mixed"


def with_crlf(content: bytes) -> bytes:
    """Return lines that end with CR LF."""
    return content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def nearest_lines(content: bytes, wanted: bytes) -> str:
    """Describe the part of a file that has most in common with some lines, or say that nothing in it has."""
    lines = [line[:_LONGEST_LINE].decode("utf-8", "replace") for line in content.split(b"\n")[:_MOST_COMPARED_LINES]]
    sought = [line[:_LONGEST_LINE].decode("utf-8", "replace").strip() for line in wanted.split(b"\n") if line.strip()]
    if not sought:
        return "it has no line with text to find"
    size = max(1, wanted.rstrip(b"\n").count(b"\n") + 1)
    start = _most_in_common(lines, frozenset(sought), size)
    if start is None:
        close = difflib.get_close_matches(sought[0], [line.strip() for line in lines if line.strip()], n=1, cutoff=0.5)
        if not close:
            return "no line of it is in the file"
        start = next(at for at, line in enumerate(lines) if line.strip() == close[0])
    shown = lines[start : start + min(size, _SHOWN_LINES)]
    text = "\n".join(line.rstrip("\r") for line in shown)
    return f"nearest, from line {start + 1}:\n{text}"


def _most_in_common(lines: list[str], sought: frozenset[str], size: int) -> int | None:
    """Return the first line of the window of `size` lines that holds most of the lines sought."""
    hits = [line.strip() in sought for line in lines]
    if not any(hits):
        return None
    sums = list(_window_sums(hits, size))
    return sums.index(max(sums))


def _window_sums(hits: list[bool], size: int) -> Iterator[int]:
    total = sum(hits[:size])
    yield total
    for at in range(1, max(1, len(hits) - size + 1)):
        total += hits[at + size - 1] - hits[at - 1]
        yield total
