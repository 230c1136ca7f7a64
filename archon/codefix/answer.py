"""Find the change in what a model wrote, in whichever form it came, and read it."""

from __future__ import annotations

import re

from archon.codefix._refuse import Refuse, conflict, rejected
from archon.codefix.blocks import has_blocks, read_blocks
from archon.codefix.edits import has_edits, one_source, patch_to, read_edits
from archon.codefix.functions import definitions, replace_function
from archon.codefix.patch import check_size, read_patch
from archon.codefix.policy import DEFAULT_POLICY, PatchPolicy
from archon.codefix.types import File, Form, Patch, Refused, Tree
from archon.tasks.extract import extract_code
from archon.tasks.source import parse_source

_DIFF = re.compile(r"^(?:diff --git |--- .*\r?\n\+\+\+ |@@ -\d)", re.MULTILINE)
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*(\w*)")
_PYTHON = ("", "python", "py", "python3")


def read_answer(
    text: str, tree: Tree, policy: PatchPolicy = DEFAULT_POLICY, *, entry_point: str | None = None
) -> Patch | Refused:
    """Return the change that a completion holds as a patch of `tree`, or why there is none; `Patch.form` says its form.

    Search/replace edits and diffs are known by their markers, and code blocks by the path on their first line. Without
    any of these a code block counts where it is clear what it replaces: the definition of `entry_point`, or the one
    source file of the tree or definitions in it.

    Args:
        text: the completion, with any thinking removed.
        tree: what it is to change.
        policy: what it may change.
        entry_point: the function that is wrong, where the instance is about one.

    Raises:
        ConfigError: there is no git on this machine.
    """
    try:
        check_size(text, policy)
        edits, diff = has_edits(text), _DIFF.search(text) is not None
        if edits and diff:
            return _one_of_both(read_edits(text, tree, policy), read_patch(text, tree, policy))
        if edits:
            return read_edits(text, tree, policy)
        if diff:
            return read_patch(text, tree, policy)
        if has_blocks(text):
            return read_blocks(text, tree, policy)
        return _code(text, tree, policy, entry_point)
    except Refuse as refuse:
        return refuse.refused


def _one_of_both(edits: Patch | Refused, diff: Patch | Refused) -> Patch | Refused:
    if isinstance(edits, Patch) and isinstance(diff, Patch) and edits.text != diff.text:
        raise rejected("it holds search/replace edits and a diff, and they differ; write one of them")
    return diff if isinstance(edits, Refused) and isinstance(diff, Patch) else edits


def _code(text: str, tree: Tree, policy: PatchPolicy, entry_point: str | None) -> Patch:
    files = {file.path: file for file in tree}
    if entry_point is not None:
        path = _defined_in(entry_point, tree, policy)
        outer, last = entry_point.split(".")[0], entry_point.split(".")[-1]
        code = extract_code(text, outer, "") or extract_code(text, last, "")
        if code is None:
            raise Refuse(
                "empty_patch", f"there is no diff, no edit, and no code block that defines {entry_point!r} in it"
            )
        return _patch(files, path, replace_function(_source(files[path]), entry_point, code), tree, policy, "function")
    only = one_source(files, policy)
    blocks = [code for language, code in _blocks(text) if language in _PYTHON]
    if only is None or not blocks:
        wanted = "no diff and no search/replace edit" if only is None else "no diff, no search/replace edit and no code"
        raise Refuse("empty_patch", f"there is {wanted} in it")
    if len(set(blocks)) > 1:
        raise rejected("it holds several code blocks, and none of them says what it replaces")
    return _whole(blocks[0], files, only, tree, policy)


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return the language and the inside of each fenced block that is closed."""
    blocks, mark, language, inside = list[tuple[str, str]](), "", "", list[str]()
    for line in text.replace("\r\n", "\n").split("\n"):
        fence = _FENCE.match(line)
        if mark and line.rstrip() == mark:
            blocks.append((language, "".join(f"{each}\n" for each in inside)))
            mark = ""
        elif mark:
            inside.append(line)
        elif fence is not None:
            mark, language, inside = fence.group(1), fence.group(2).lower(), []
    return blocks


def _whole(code: str, files: dict[str, File], path: str, tree: Tree, policy: PatchPolicy) -> Patch:
    """Take a code block for the whole file when it has all that the file defines, else for some of its definitions."""
    if parse_source(code) is None:
        raise rejected("the code block is not Python that parses")
    source = _source(files[path])
    old, new = definitions(source), definitions(code) or ()
    shared = [name for name in old or () if name in new]
    if old is None or set(old) <= set(new):
        return _patch(files, path, code, tree, policy, "file")
    if not shared:
        raise conflict(f"the code block defines nothing that {path!r} has: {', '.join(old[:20])}")
    return _patch(files, path, replace_function(source, shared[0], code), tree, policy, "function")


def _patch(
    files: dict[str, File], path: str, source: str | Refused, tree: Tree, policy: PatchPolicy, form: Form
) -> Patch:
    if isinstance(source, Refused):
        raise Refuse(source.status, source.reason)
    old = files[path]
    crlf = form == "file" and b"\r\n" in old.content and "\r\n" not in source
    content = (source.replace("\n", "\r\n") if crlf else source).encode()
    changed = File(path=path, content=content, executable=old.executable)
    return patch_to(tree, {**files, path: changed}, policy, form, ["line ends"] if crlf else [])


def _defined_in(entry_point: str, tree: Tree, policy: PatchPolicy) -> str:
    """Return the one file that defines a function."""
    top = entry_point.split(".")[0]
    found = [
        file.path
        for file in tree
        if file.path.endswith(".py") and not policy.drops(file.path, exists=True) and top.encode() in file.content
        if top in (definitions(file.content.decode("utf-8", "replace")) or ())
    ]
    if len(found) != 1:
        where = ", ".join(map(repr, found[:5])) or "no file"
        raise conflict(f"{entry_point!r} is defined in {where}; write search/replace edits that name the file")
    return found[0]


def _source(file: File) -> str:
    try:
        return file.content.decode()
    except UnicodeDecodeError:
        raise conflict(f"{file.path}: it is not UTF-8, so write search/replace edits of it") from None
