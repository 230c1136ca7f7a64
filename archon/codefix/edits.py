"""Read search/replace edits as models write them, and whole files: changes that need no line numbers.

    path/to/file.py
    <<<<<<< SEARCH
    lines of the file, copied exactly
    =======
    the lines that take their place
    >>>>>>> REPLACE

The lines searched for must stand in the file exactly once; an empty search makes a new file. Mended, and recorded: code
fences around the edits, spaces at line ends, the file's own line ends, a path left out where one file alone is meant.
A refusal is written for the model that made the edit: which block, what is nearest, how often it was found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from archon.codefix._finish import finished
from archon.codefix._lines import line_ends, line_number, nearest_lines, places, with_crlf
from archon.codefix._paths import collision, written_path_fault
from archon.codefix._refuse import Refuse, conflict, rejected
from archon.codefix.patch import check_size, near_paths
from archon.codefix.policy import DEFAULT_POLICY, PatchPolicy
from archon.codefix.types import File, Form, Patch, Refused, Tree

_SEARCH = re.compile(r"<{5,9} ?SEARCH[ \t]*$")
_DIVIDER = re.compile(r"={5,9}[ \t]*$")
_REPLACE = re.compile(r">{5,9} ?REPLACE[ \t]*$")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LONGEST_PATH_LINE = 500
_MOST_DIVIDERS = 20
_DRESSING = re.compile(r"^[\s#*>`'\"]*(?:(?:file|path|filename)\s*:\s*)?[\s*`'\"]*|[\s*`'\":]*$", re.IGNORECASE)
"""What stands around a path in Markdown: `### path`, `**path**`, `` `path`: ``."""


def read_edits(text: str, tree: Tree, policy: PatchPolicy = DEFAULT_POLICY) -> Patch | Refused:
    """Return search/replace edits as a patch of `tree`, or why they cannot be: all of them or none.

    Raises:
        ConfigError: there is no git on this machine.
    """
    try:
        check_size(text, policy)
        return _read(text, tree, policy)
    except Refuse as refuse:
        return refuse.refused


def has_edits(text: str) -> bool:
    """Return whether a text is meant to hold search/replace edits."""
    return any(_SEARCH.match(line) or _REPLACE.match(line) for line in text.splitlines())


def patch_to(
    tree: Tree,
    files: dict[str, File],
    policy: PatchPolicy,
    form: Form,
    repairs: Sequence[str] = (),
) -> Patch:
    """Return the patch that makes `files` out of a tree, with changes of protected files dropped.

    Raises:
        Refuse: policy forbids it, or it is empty.
    """
    before = {file.path: file for file in tree}
    changed = [path for path in files.keys() | before.keys() if files.get(path) != before.get(path)]
    for path in sorted(changed):
        fault = written_path_fault(path)
        if fault is not None:
            raise rejected(f"the path {path[:200]!r} {fault}")
        link = policy.link_above(path)
        if link is not None:
            raise rejected(f"the path {path!r} goes through {link!r}, which is a symlink or another repository")
    dropped = [path for path in changed if policy.drops(path, exists=path in before)]
    after = {path: file for path, file in files.items() if path not in dropped}
    after |= {path: before[path] for path in dropped if path in before}
    for path in after.keys() - before.keys():
        other = collision(path, after)
        if other is not None:
            raise conflict(f"{path!r} cannot be beside {other!r}: one is a file where the other needs a folder")
    ordered = tuple(after[path] for path in sorted(after))
    return finished(tree, ordered, policy=policy, form=form, repairs=repairs, dropped=dropped)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    number: int
    path: str
    body: tuple[str, ...]
    """Everything between the SEARCH and the REPLACE line."""


def _read(text: str, tree: Tree, policy: PatchPolicy) -> Patch:
    files, repairs = {file.path: file for file in tree}, set[str]()
    edits = _edits(text.replace("\r\n", "\n").split("\n"), files, policy, repairs)
    if not edits:
        raise Refuse("empty_patch", "there is no search/replace edit in it")
    for edit in edits:
        _check_path(edit, files)
        old = files.get(edit.path)
        content = _replaced(edit, b"" if old is None else old.content, repairs)
        files[edit.path] = File(path=edit.path, content=content, executable=old is not None and old.executable)
    return patch_to(tree, files, policy, "search_replace", sorted(repairs))


def _edits(lines: list[str], files: dict[str, File], policy: PatchPolicy, repairs: set[str]) -> list[_Edit]:
    edits, at, path = list[_Edit](), 0, None
    while at < len(lines):
        if _REPLACE.match(lines[at]):
            raise rejected(f"line {at + 1}: '>>>>>>> REPLACE' without '<<<<<<< SEARCH' before it")
        if not _SEARCH.match(lines[at]):
            at += 1
            continue
        number = len(edits) + 1
        given = _path_above(lines, at, files, repairs)
        path = given or path or _only_source(files, policy, repairs)
        if path is None:
            raise rejected(f"edit {number}: the line before '<<<<<<< SEARCH' must be the path of a file")
        end = next((to for to in range(at + 1, len(lines)) if _REPLACE.match(lines[to])), None)
        inner = [to for to in range(at + 1, end or len(lines)) if _SEARCH.match(lines[to])]
        if end is None or inner:
            raise rejected(f"edit {number} ({path}): it has no '>>>>>>> REPLACE' line; write every edit to its end")
        edits.append(_Edit(number=number, path=path, body=tuple(lines[at + 1 : end])))
        if len(edits) > policy.most_hunks:
            raise rejected(f"more than {policy.most_hunks} edits")
        at = end + 1
    return edits


def _path_above(lines: list[str], at: int, files: dict[str, File], repairs: set[str]) -> str | None:
    """Return the path in the line before an edit, or in the one before the fence that opens there."""
    for above in range(at - 1, max(-1, at - 4), -1):
        line = lines[above]
        if _FENCE.match(line):
            repairs.add("fence")
            inside = line.strip().strip("`~").split(":")[-1].split(" ")[-1]
            if inside in files:
                return inside
            continue
        if not line.strip():
            continue
        if _REPLACE.match(line):
            return None
        path = _DRESSING.sub("", line[:_LONGEST_PATH_LINE])
        looks_like_one = path in files or re.fullmatch(r"\S*(?:\.\w{1,10}|/\S*)", path) is not None
        return path if looks_like_one else None
    return None


def _only_source(files: dict[str, File], policy: PatchPolicy, repairs: set[str]) -> str | None:
    path = one_source(files, policy)
    if path is not None:
        repairs.add("path")
    return path


def one_source(files: dict[str, File], policy: PatchPolicy) -> str | None:
    """Return the one Python file that a fix can change, if there is exactly one."""
    sources = [path for path in files if path.endswith(".py") and not policy.drops(path, exists=True)]
    return sources[0] if len(sources) == 1 else None


def _check_path(edit: _Edit, files: dict[str, File]) -> None:
    fault = written_path_fault(edit.path)
    if fault is not None:
        raise rejected(f"edit {edit.number}: the path {edit.path[:200]!r} {fault}")
    if edit.path not in files and any(line.strip() for line in _halves(edit)[0][0]):
        raise conflict(f"edit {edit.number}: there is no file {edit.path!r}; {near_paths(edit.path, files)}")


def _halves(edit: _Edit) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Return the ways to read an edit: text that itself holds a line of `=======` has more than one."""
    dividers = [at for at, line in enumerate(edit.body) if _DIVIDER.match(line)]
    if not dividers:
        raise rejected(f"edit {edit.number} ({edit.path}): it has no '=======' line between the old and the new lines")
    if len(dividers) > _MOST_DIVIDERS:
        raise rejected(f"edit {edit.number} ({edit.path}): it has {len(dividers)} '=======' lines")
    return [(edit.body[:at], edit.body[at + 1 :]) for at in dividers]


def _replaced(edit: _Edit, content: bytes, repairs: set[str]) -> bytes:
    if not content.strip():  # a new file, or one with nothing in it yet
        halves = [half for half in _halves(edit) if not any(line.strip() for line in half[0])]
        if halves:
            return _bytes(halves[0][1])
    refusals = list[Refuse]()
    for search, replace in reversed(_halves(edit)):  # lines of `=======` that are the file's own belong to the search
        mended = set[str]()
        try:
            result = _one_way(edit, content, search, replace, mended)
        except Refuse as refuse:
            refusals.append(refuse)
            continue
        repairs |= mended
        return result
    raise refusals[-1]


def _one_way(edit: _Edit, content: bytes, search: Sequence[str], replace: Sequence[str], repairs: set[str]) -> bytes:
    name = f"edit {edit.number} ({edit.path})"
    old, new = _bytes(search), _bytes(replace)
    if not old.strip():
        raise conflict(f"{name}: nothing to search for, and the file exists; copy the lines that are to be replaced")
    if line_ends(content) == "crlf":
        repairs.add("line ends")
        old, new = with_crlf(old), with_crlf(new)
    ended = content if content.endswith(b"\n") else content + b"\n"
    found = places(ended, old, most=100)
    span = (found[0], found[0] + len(old)) if found else None
    if not found:
        loose = _without_trailing_spaces(ended, old)
        if len(loose) == 1:
            repairs.add("trailing spaces")
            span = loose[0]
        found = [start for start, _ in loose]
    if span is None and not found:
        raise conflict(f"{name}: the lines to search for are not in the file; {nearest_lines(content, old)}")
    if len(found) > 1 or span is None:
        lines = ", ".join(str(line_number(content, at)) for at in found[:5])
        times = f"{len(found)} times" if len(found) < 100 else "100 times or more"
        raise conflict(f"{name}: the lines to search for are there {times} (line {lines}); copy more lines around them")
    result = ended[: span[0]] + new + ended[span[1] :]
    return result if ended is content else result.removesuffix(b"\n")


def _without_trailing_spaces(content: bytes, old: bytes) -> list[tuple[int, int]]:
    """Return the spans of lines that are those searched for but for white space at their ends."""
    lines = content.split(b"\n")[:-1]
    stripped = b"".join(line.rstrip() + b"\n" for line in lines)
    wanted = b"".join(line.rstrip() + b"\n" for line in old.split(b"\n")[:-1])
    count, spans = wanted.count(b"\n"), list[tuple[int, int]]()
    for at in places(stripped, wanted, most=100):
        first = stripped.count(b"\n", 0, at)
        start = sum(len(line) + 1 for line in lines[:first])
        spans.append((start, start + sum(len(line) + 1 for line in lines[first : first + count])))
    return spans


def _bytes(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
