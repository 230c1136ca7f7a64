"""Read a unified diff as a model wrote it: check it, mend what is unambiguous, and return a diff that fits the tree.

The order is: size, form, policy, then the tree. Mended, and recorded: a Markdown fence around it, a last line without
its line feed, wrong counts or line numbers in hunk headers, the other kind of line ends. Never: lines that differ,
context left out, a place chosen among several, a patch taken backwards. What comes out was written anew by git from the
tree before and after, so nothing of the original text but its meaning reaches whatever applies it.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from archon.codefix._binary import binary_content
from archon.codefix._finish import finished
from archon.codefix._git import blob_name
from archon.codefix._paths import collision, written_path_fault
from archon.codefix._refuse import Refuse, conflict, rejected
from archon.codefix._splice import spliced, written
from archon.codefix._unified import Section, parse
from archon.codefix.policy import DEFAULT_POLICY, PatchPolicy
from archon.codefix.types import File, Patch, Refused, Tree

_FENCE = re.compile(rb"(`{3,}|~{3,})")


def read_patch(text: str, tree: Tree, policy: PatchPolicy = DEFAULT_POLICY) -> Patch | Refused:
    """Return a checked patch of `tree`, or why there is none.

    A change of a protected file (see `policy.py`) is left out and listed in `Patch.dropped`; a patch of nothing else
    comes back with an empty text. One bad section refuses the whole patch.

    Raises:
        ConfigError: there is no git on this machine.
    """
    try:
        return _read(text, tree, policy)
    except Refuse as refuse:
        return refuse.refused


def check_size(text: str, policy: PatchPolicy) -> bytes:
    """Return a text as bytes, if it is not too large to be read at all.

    Raises:
        Refuse: it is.
    """
    if len(text) > policy.most_bytes:
        raise rejected(f"{len(text)} characters; at most {policy.most_bytes} bytes are allowed")
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise rejected("it is not Unicode text") from None
    if len(data) > policy.most_bytes:
        raise rejected(f"{len(data)} bytes; at most {policy.most_bytes} are allowed")
    return data


def _read(text: str, tree: Tree, policy: PatchPolicy) -> Patch:
    data = check_size(text, policy)
    files = max(f"\n{text}".count("\ndiff --git "), f"\n{text}".count("\n+++ "))
    if files > policy.most_files:
        raise rejected(f"it changes {files} files; at most {policy.most_files} are allowed")
    hunks = f"\n{text}".count("\n@@")
    if hunks > policy.most_hunks:
        raise rejected(f"it has {hunks} hunks; at most {policy.most_hunks} are allowed")
    repairs = set[str]()
    lines = _unfenced(_split(data, repairs), repairs)
    if all(not line.strip() or line.startswith(b"#") for line in lines):
        raise Refuse("empty_patch", "it is empty")
    known = {file.path: file for file in tree}
    sections = parse(lines, known)
    if not sections:
        raise Refuse("empty_patch", "there is no diff in it: no 'diff --git' line and no '---' and '+++' lines")
    for section in sections:
        _check_paths(section, policy)
    work = _Work(known=known, files=dict(known), policy=policy, repairs=repairs)
    for section in sections:
        work.put(section)
    _check_room(known, work.files)
    after = tuple(sorted(work.files.values(), key=lambda file: file.path))
    return finished(tree, after, policy=policy, form="diff", repairs=work.repairs, dropped=work.dropped)


def _split(data: bytes, repairs: set[str]) -> list[bytes]:
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    elif lines[-1].strip() and not _FENCE.match(lines[-1]):
        repairs.add("final newline")
    return lines


def _unfenced(lines: list[bytes], repairs: set[str]) -> list[bytes]:
    """Return the insides of the fenced blocks that hold a diff, unless the diff is not in them."""
    blocks, outside, mark = list[list[bytes]](), list[bytes](), b""
    for line in lines:
        fence = _FENCE.match(line)
        if mark and line.strip() == mark:
            mark = b""
        elif not mark and fence is not None:
            mark = fence.group(1)
            blocks.append([])
        else:
            (blocks[-1] if mark else outside).append(line)
    with_diff = [block for block in blocks if _has_diff(block)]
    if not with_diff or _has_diff(outside):
        return lines
    repairs.add("fence")
    if not mark:  # the text's last line is a closing fence or prose, so no line of the diff was cut
        repairs.discard("final newline")
    return [line for block in with_diff for line in block]


def _has_diff(lines: list[bytes]) -> bool:
    return any(
        line.startswith(b"diff --git ") or (line.startswith(b"--- ") and following.startswith(b"+++ "))
        for line, following in zip(lines, [*lines[1:], b""], strict=False)
    )


def _check_paths(section: Section, policy: PatchPolicy) -> None:
    for path in {section.old, section.new} - {None}:
        assert path is not None
        fault = written_path_fault(path)
        if fault is not None:
            raise rejected(f"the path {path[:200]!r} {fault}")
        link = policy.link_above(path)
        if link is not None:
            raise rejected(f"the path {path!r} goes through {link!r}, which is a symlink or another repository")


def _check_room(known: dict[str, File], files: dict[str, File]) -> None:
    for new in files.keys() - known.keys():
        other = collision(new, files)
        if other is not None:
            raise conflict(f"{new!r} cannot be beside {other!r}: one is a file where the other needs a folder")


@dataclass(slots=True, kw_only=True)
class _Work:
    """The files as the sections read so far leave them."""

    known: dict[str, File]
    """The tree as it is."""
    files: dict[str, File]
    policy: PatchPolicy
    repairs: set[str]
    dropped: list[str] = field(default_factory=list)

    def put(self, section: Section) -> None:
        changes = [path for path in (None if section.copies else section.old, section.new) if path is not None]
        if any(self.policy.drops(path, exists=path in self.known) for path in changes):
            self.dropped += changes
            return
        before = self._before(section)
        if section.new is not None and section.new != section.old and section.new in self.files:
            raise conflict(f"{section.new}: a new file that exists already; write a diff of what is in it")
        content = self._content(section, before)
        if section.new is None and content:
            raise conflict(f"{section.old}: it is to be deleted, and the diff does not show all of its lines")
        if section.old is not None and not section.copies:
            del self.files[section.old]
        if section.new is not None:
            executable = before is not None and before.executable
            if section.executable is not None:
                executable = section.executable
            self.files[section.new] = File(path=section.new, content=content, executable=executable)

    def _before(self, section: Section) -> File | None:
        if section.old is None:
            return None
        if section.old not in self.files:
            raise conflict(f"there is no file {section.old!r}; {near_paths(section.old, self.files)}")
        return self.files[section.old]

    def _content(self, section: Section, before: File | None) -> bytes:
        path = section.new or section.old or ""
        old = b"" if before is None else before.content
        if section.binary is None:
            if before is None:
                return written(section, path, self.repairs)
            return spliced(section, old, path, self.repairs)
        if before is not None and section.blob is None:
            raise rejected(f"{path}: a binary change needs git's 'index' line, which says what it is made for")
        if before is not None and not blob_name(old).startswith(section.blob or ""):
            raise conflict(f"{path}: the binary change was made for other content")
        return binary_content(section.binary, old, most_bytes=self.policy.most_binary_bytes, path=path)


def near_paths(path: str, files: dict[str, File]) -> str:
    """Say which paths of a tree come nearest to one that it does not have."""
    same_name = [other for other in files if other.split("/")[-1] == path.split("/")[-1]]
    few = same_name[:3] or difflib.get_close_matches(path[:200], files, n=3, cutoff=0.5)
    return f"nearest: {', '.join(map(repr, few))}" if few else "no path of the tree is like it"
