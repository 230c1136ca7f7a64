"""Read a unified diff, with or without git's headers, into sections and hunks. Pure text: no tree, no file, no git.

What is around the diff is passed over, as git does. Symlinks, submodules and combined diffs are refused here, for no
tree holds them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from archon.codefix._hunks import HUNK, Hunk, read_hunk, shown
from archon.codefix._names import Pair, is_without_prefix, name, pair_of_git_line, without_prefix
from archon.codefix._refuse import rejected

_INDEX = re.compile(rb"index ([0-9a-f]{4,64})\.\.([0-9a-f]{4,64})(?: (\d+))?$")
_BINARY = re.compile(rb"(literal|delta) (\d{1,12})$")
_MODE_KEYS = (b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode ")
_NAME_KEYS = (b"rename from ", b"rename to ", b"copy from ", b"copy to ")
_OTHER_KEYS = (b"similarity index ", b"dissimilarity index ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """A binary change, still encoded."""

    kind: str
    """`literal` or `delta`."""
    size: int
    """Of what the lines hold once decoded, as they say."""
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What a diff does to one file."""

    old: str | None
    """None: the file is new."""
    new: str | None
    """None: the file goes."""
    copies: bool = False
    executable: bool | None = None
    """None: as it was."""
    blob: str | None = None
    """The beginning of the name of the content that it was made for; all zeros for a new file."""
    hunks: tuple[Hunk, ...] = ()
    binary: Binary | None = None
    crlf: bool = False
    """Its header lines end with CR LF, so whatever carried the diff changed its line ends."""


def parse(lines: list[bytes], known: Collection[str]) -> tuple[Section, ...]:
    """Return the sections of a diff.

    Args:
        lines: the text, split at line feeds.
        known: paths of the tree, to tell names with `a/` in front from folders that are called so.

    Raises:
        Refuse: it is malformed or holds what no patch may.
    """
    reader = _Reader(lines=lines, known=known)
    sections = list[Section]()
    while reader.at < len(lines):
        if reader.starts(b"diff --git ") or reader.at_names():
            sections.append(reader.section())
        else:
            reader.pass_over()
    return tuple(sections)


@dataclass(slots=True, kw_only=True)
class _Head:
    """The headers of one section as they are read."""

    modes: dict[bytes, bytes] = field(default_factory=dict)
    names: dict[bytes, str | None] = field(default_factory=dict)
    blob: str | None = None
    crlf: bool = False


@dataclass(slots=True, kw_only=True)
class _Reader:
    lines: list[bytes]
    known: Collection[str]
    at: int = 0

    def line(self, ahead: int = 0) -> bytes:
        at = self.at + ahead
        return self.lines[at].removesuffix(b"\r") if at < len(self.lines) else b""

    def starts(self, beginning: bytes, ahead: int = 0) -> bool:
        return self.line(ahead).startswith(beginning)

    def at_names(self) -> bool:
        return self.starts(b"--- ") and self.starts(b"+++ ", 1)

    def pass_over(self) -> None:
        if self.starts(b"@@@ ") or self.starts(b"diff --cc ") or self.starts(b"diff --combined "):
            raise rejected("a combined diff of a merge cannot be applied; write a diff against one tree")
        if HUNK.match(self.line()):
            raise rejected(f"the hunk {shown(self.line())} belongs to no file: '---' and '+++' lines must precede it")
        if self.starts(b"Binary files ") and self.line().endswith(b" differ"):
            raise rejected(f"{shown(self.line())} says that a file differs and not how")
        self.at += 1

    def section(self) -> Section:
        head, git_pair = _Head(), None
        is_git = self.starts(b"diff --git ")
        if is_git:
            head.crlf = self.lines[self.at].endswith(b"\r")
            git_pair = pair_of_git_line(self.line()[len(b"diff --git ") :])
            self.at += 1
            while self._header_line(head):
                self.at += 1
        pair: Pair | None = None
        hunks, binary = list[Hunk](), None
        if self.at_names():
            pair = name(self.line()[4:]), name(self.line(1)[4:])
            head.crlf |= self.lines[self.at].endswith(b"\r")
            self.at += 2
            hunks = self._hunks(head)
        elif self.starts(b"GIT binary patch"):
            self.at += 1
            binary = self._binary()
        elif is_git and self.starts(b"Binary files "):
            self.pass_over()
        old, new, copies = _resolve(head, git_pair, pair, self.known)
        return Section(
            old=old,
            new=new,
            copies=copies,
            executable=_executable(head.modes),
            blob=head.blob,
            hunks=tuple(hunks),
            binary=binary,
            crlf=head.crlf,
        )

    def _header_line(self, head: _Head) -> bool:
        line = self.line()
        for key in _MODE_KEYS:
            if line.startswith(key):
                head.modes[key] = line[len(key) :].strip()
                return True
        for key in _NAME_KEYS:
            if line.startswith(key):
                head.names[key] = name(line[len(key) :])
                return True
        index = _INDEX.match(line)
        if index is not None:
            head.blob = index.group(1).decode()
            if index.group(3) is not None:
                head.modes[b"index"] = index.group(3)
            return True
        return line.startswith(_OTHER_KEYS)

    def _hunks(self, head: _Head) -> list[Hunk]:
        hunks = list[Hunk]()
        while True:
            ahead = 0
            while self.at + ahead < len(self.lines) and not self.line(ahead).strip():
                ahead += 1
            if not self.starts(b"@@", ahead) or self.starts(b"@@@", ahead):
                return hunks
            self.at += ahead
            head.crlf |= self.lines[self.at].endswith(b"\r")
            hunks.append(self._hunk())

    def _hunk(self) -> Hunk:
        hunk, self.at = read_hunk(self.lines, self.at)
        return hunk

    def _binary(self) -> Binary:
        forward = self._binary_half()
        if forward is None:
            raise rejected(f"a git binary patch needs a 'literal' or 'delta' line and has {shown(self.line())}")
        self._binary_half()  # how to undo it, which nobody asked for
        return forward

    def _binary_half(self) -> Binary | None:
        match = _BINARY.match(self.line())
        if match is None:
            return None
        self.at += 1
        first = self.at
        while self.at < len(self.lines) and self.line():
            self.at += 1
        lines = tuple(line.removesuffix(b"\r") for line in self.lines[first : self.at])
        self.at += 1
        return Binary(kind=match.group(1).decode(), size=int(match.group(2)), lines=lines)


def _resolve(
    head: _Head, git_pair: Pair | None, pair: Pair | None, known: Collection[str]
) -> tuple[str | None, str | None, bool]:
    """Return the old and new name that all headers agree on, and whether the old file stays."""
    moved = _moved(head)
    given = [each for each in (pair, git_pair) if each is not None]
    bare = b"new file mode " not in head.modes and any(is_without_prefix(each, known) for each in given[:1])
    pairs = given if bare else [each if is_without_prefix(each, ()) else without_prefix(each) for each in given]
    if not pairs and moved is None:
        raise rejected("a 'diff --git' line whose two names cannot be told apart")
    made, gone = b"new file mode " in head.modes, b"deleted file mode " in head.modes
    old, new = moved or pairs[0]
    for other in pairs:
        if any(theirs not in (ours, None) and ours is not None for ours, theirs in zip((old, new), other, strict=True)):
            raise rejected(f"its headers name different files: {_both(old, new)} and {_both(*other)}")
    if old is None and new is None:
        raise rejected("a change of /dev/null is no change of a file")
    if moved is None and None not in (old, new) and old != new:
        raise rejected(
            f"old and new name differ: {_both(old, new)}; a rename needs git's 'rename from' and 'rename to'"
        )
    return (None if made else old), (None if gone else new), b"copy from " in head.names


def _moved(head: _Head) -> Pair | None:
    for verb in (b"rename", b"copy"):
        given = [key for key in (verb + b" from ", verb + b" to ") if key in head.names]
        if len(given) == 2:
            return head.names[given[0]], head.names[given[1]]
        if given:
            raise rejected(f"{given[0].decode()!r} without its other half")
    return None


def _executable(modes: dict[bytes, bytes]) -> bool | None:
    for mode in modes.values():
        if mode == b"120000":
            raise rejected("it adds or changes a symlink (mode 120000); write files only")
        if mode == b"160000":
            raise rejected("it adds or changes a submodule (mode 160000); write files only")
        if mode not in (b"100644", b"100755", b"100664"):
            raise rejected(f"the file mode {shown(mode)} is not one of 100644, 100755")
    after = modes.get(b"new file mode ", modes.get(b"new mode "))
    return None if after is None else after == b"100755"


def _both(old: str | None, new: str | None) -> str:
    return f"{old or '/dev/null'!r} and {new or '/dev/null'!r}"
