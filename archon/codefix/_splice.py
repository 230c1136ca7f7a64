"""Put a section's hunks into a file: every old line must be there exactly, at the line named or in one other place.

That is stricter than `git apply`, which takes the nearest of several places, and than GNU patch, which drops context.
It is more lenient in one thing only: lines need not be surrounded by context when they stand in the file just once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from archon.codefix._hunks import Hunk, Row
from archon.codefix._lines import (
    LineEnds,
    line_ends,
    line_number,
    line_starts,
    nearest_lines,
    places,
    stands_at,
    with_crlf,
)
from archon.codefix._refuse import Refuse, conflict, rejected
from archon.codefix._unified import Section


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    path: str
    content: bytes
    starts: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    start: int
    end: int
    content: bytes


def spliced(section: Section, content: bytes, path: str, repairs: set[str]) -> bytes:
    """Return a file's content with the hunks of a section put in; adds to `repairs` what had to be mended.

    Raises:
        Refuse: a hunk does not fit.
    """
    ends = line_ends(content)
    hunks = tuple(_with_line_ends(hunk, section, ends, repairs) for hunk in section.hunks)
    try:
        return _placed(hunks, content, path, repairs)
    except Refuse:
        if not content or content.endswith(b"\n"):
            raise
    # The diff leaves out that the file's last line has no line feed.
    result = _placed(hunks, content + b"\n", path, repairs)
    repairs.add("final newline")
    return result


def written(section: Section, path: str, repairs: set[str]) -> bytes:
    """Return the content of a new file.

    Raises:
        Refuse: its lines are not all added ones.
    """
    content = b""
    for hunk in section.hunks:
        mended = _with_line_ends(hunk, section, "lf", repairs)
        for reading in mended.readings:
            if all(kind == b"+" for kind, _ in reading):
                _note_count(mended, reading, repairs)
                content += _lines(reading, b"+")
                break
        else:
            raise rejected(f"{path}: a new file can only have added lines, each with '+' in front")
    return content


def _with_line_ends(hunk: Hunk, section: Section, ends: LineEnds, repairs: set[str]) -> Hunk:
    """Return a hunk with the line ends of the file that it is for, where it plainly came with the other ones."""
    rows = [row for reading in hunk.readings for row in reading]
    stale = any(line.endswith(b"\r\n") for kind, line in rows if kind != b"+")
    if ends == "lf" and (stale or section.crlf):
        repairs.add("line ends")
        return _mapped(hunk, _without_cr)
    if ends == "crlf" and not any(line.endswith(b"\r\n") for _, line in rows):
        repairs.add("line ends")
        return _mapped(hunk, with_crlf)
    return hunk


def _mapped(hunk: Hunk, change: Callable[[bytes], bytes]) -> Hunk:
    readings = tuple(tuple((kind, change(line)) for kind, line in reading) for reading in hunk.readings)
    return Hunk(header=hunk.header, line=hunk.line, readings=readings, miscounted=hunk.miscounted)


def _without_cr(line: bytes) -> bytes:
    return line[:-2] + b"\n" if line.endswith(b"\r\n") else line.removesuffix(b"\r")


def _placed(hunks: Iterable[Hunk], content: bytes, path: str, repairs: set[str]) -> bytes:
    noted = set[str]()
    file = _File(path=path, content=content, starts=line_starts(content))
    spans = sorted((_span(hunk, file, noted) for hunk in hunks), key=lambda span: (span.start, span.end))
    parts, at = list[bytes](), 0
    for span in spans:
        if span.start < at:
            raise conflict(f"{path}: two hunks change line {line_number(content, span.start)}")
        parts += [content[at : span.start], span.content]
        at = span.end
    repairs |= noted
    return b"".join([*parts, content[at:]])


def _span(hunk: Hunk, file: _File, repairs: set[str]) -> _Span:
    refusal: Refuse | None = None
    for reading in hunk.readings:
        try:
            at, exact = _position(reading, hunk, file)
        except Refuse as refuse:
            refusal = refusal or refuse
            continue
        _note_count(hunk, reading, repairs)
        if not exact:
            repairs.add("line numbers")
        return _changed_part(reading, at)
    assert refusal is not None
    raise refusal


def _position(reading: tuple[Row, ...], hunk: Hunk, file: _File) -> tuple[int, bool]:
    """Return where the old lines of a hunk are, and whether that is where its header says."""
    old, content, path = _lines(reading, b"-"), file.content, file.path
    if not old:
        if content and any(kind == b"+" for kind, _ in reading):
            raise conflict(f"{path}: the hunk {hunk.header} has no line of the file in it to say where it belongs")
        return 0, True
    if hunk.line is not None:
        at = stands_at(content, file.starts, old, hunk.line)
        if at is not None:
            return at, True
    found = places(content, old)
    if not found:
        raise conflict(f"{path}: the old lines of {hunk.header} are not in the file; {nearest_lines(content, old)}")
    if len(found) > 1:
        lines = " and ".join(str(line_number(content, at)) for at in found)
        raise conflict(f"{path}: the old lines of {hunk.header} are at line {lines}; add lines around them")
    return found[0], hunk.line is None


def _changed_part(reading: tuple[Row, ...], at: int) -> _Span:
    """Return what a hunk replaces without the context around it, which another hunk may share."""
    changes = [number for number, (kind, _) in enumerate(reading) if kind != b" "]
    if not changes:
        return _Span(start=at, end=at, content=b"")
    before, inner = reading[: changes[0]], reading[changes[0] : changes[-1] + 1]
    start = at + sum(len(line) for _, line in before)
    return _Span(start=start, end=start + len(_lines(inner, b"-")), content=_lines(inner, b"+"))


def _lines(reading: Iterable[Row], kind: bytes) -> bytes:
    return b"".join(line for each, line in reading if each in (b" ", kind))


def _note_count(hunk: Hunk, reading: tuple[Row, ...], repairs: set[str]) -> None:
    if hunk.miscounted and reading is hunk.readings[0]:
        repairs.add("hunk counts")
