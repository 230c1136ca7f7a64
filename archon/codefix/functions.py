"""Put whole new definitions in the place of old ones, by their positions in the source, and leave the rest as it is."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Sequence

from archon.codefix._refuse import Refuse, conflict, rejected
from archon.codefix.types import Refused
from archon.tasks.source import parse_source

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_Import = ast.Import | ast.ImportFrom
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""As Python counts them: `str.splitlines` also parts lines at form feeds and other characters."""


def replace_function(source: str, name: str, new_source: str) -> str | Refused:
    """Return source with one definition replaced by the one that `new_source` has of it.

    What else `new_source` has at its top level comes along where it is needed: definitions that the source has too are
    replaced, new ones stand before the first that is replaced, new imports at the top. Other statements are left out.

    Args:
        source: a module.
        name: what is replaced: `function`, `Class`, or `Class.method` (then `new_source` has the method alone, or
            inside its class).
        new_source: Python that defines it.
    """
    try:
        return _replaced(source, name, new_source)
    except Refuse as refuse:
        return refuse.refused


def definitions(source: str) -> tuple[str, ...] | None:
    """Return the names of the functions and classes at a module's top level; None when it is not Python."""
    tree = parse_source(source)
    return None if tree is None else tuple(node.name for node in tree.body if isinstance(node, _Definition))


def _replaced(source: str, name: str, new_source: str) -> str:
    new_source = textwrap.dedent(new_source.replace("\r\n", "\n"))
    old_tree, new_tree = parse_source(source), parse_source(new_source)
    if old_tree is None:
        raise rejected("the file to change is not Python that parses")
    if new_tree is None:
        raise rejected("the new code is not Python that parses")
    *outer, last = name.split(".")
    target = _one(_body(old_tree.body, outer, name), name)
    try:
        given = _one(_body(new_tree.body, outer, name), name)
    except Refuse:
        given = _one(new_tree.body, last)
    lines, news = _LINE.findall(source), _LINE.findall(new_source)
    pieces = [(_start(target), target.end_lineno or target.lineno, _indented(given, news, target.col_offset))]
    also = [node for node in new_tree.body if isinstance(node, _Definition) and given not in ast.walk(node)]
    pieces[0:0] = _others(also, old_tree, news, _start(_one(old_tree.body, name.split(".")[0])))
    imports = _missing_imports(old_tree, new_tree)
    if imports:
        at = _first_import(old_tree) or _after_preamble(old_tree, lines) + 1
        pieces.insert(0, (at, at - 1, "".join(f"{each}\n" for each in imports)))
    return _joined(lines, pieces)


def _body(body: Sequence[ast.stmt], outer: Sequence[str], name: str) -> Sequence[ast.stmt]:
    for each in outer:
        body = _one(body, each, name).body
    return body


def _one(body: Sequence[ast.stmt], name: str, shown: str = "") -> _Definition:
    last = name.split(".")[-1]
    found = [node for node in body if isinstance(node, _Definition) and node.name == last]
    if not found:
        raise conflict(f"there is no definition of {shown or name!r}; there is: {', '.join(_names(body)) or 'none'}")
    if len(found) > 1:
        raise conflict(f"{shown or name!r} is defined {len(found)} times, so it is not clear which one is meant")
    return found[0]


def _names(body: Iterable[ast.stmt]) -> list[str]:
    return [node.name for node in body if isinstance(node, _Definition)][:20]


def _others(
    also: Sequence[_Definition], old_tree: ast.Module, news: Sequence[str], before: int
) -> list[tuple[int, int, str]]:
    """Return the pieces of the other definitions: in the place of those of the same name, else before line `before`."""
    pieces = list[tuple[int, int, str]]()
    for node in also:
        text = _indented(node, news, 0)
        same = [old for old in old_tree.body if isinstance(old, _Definition) and old.name == node.name]
        if len(same) == 1:
            pieces.append((_start(same[0]), same[0].end_lineno or same[0].lineno, text))
        elif not same:
            pieces.append((before, before - 1, f"{text}\n\n"))
    return pieces


def _start(node: _Definition) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _indented(node: _Definition, lines: Sequence[str], columns: int) -> str:
    """Return a definition's text moved to a column; lines inside a string stay as they are."""
    inside = {
        number
        for each in ast.walk(node)
        if isinstance(each, ast.Constant | ast.JoinedStr) and each.end_lineno is not None
        for number in range(each.lineno + 1, each.end_lineno + 1)
    }
    start, shift = _start(node), columns - node.col_offset
    moved = list[str]()
    for number in range(start, (node.end_lineno or start) + 1):
        line = lines[number - 1]
        if number not in inside and line.strip():
            line = " " * shift + line if shift >= 0 else line[min(-shift, len(line) - len(line.lstrip(" \t"))) :]
        moved.append(line)
    return "".join(moved).rstrip("\n") + "\n"


def _missing_imports(old_tree: ast.Module, new_tree: ast.Module) -> list[str]:
    have = {ast.dump(node) for node in ast.walk(old_tree) if isinstance(node, _Import)}
    nodes = [node for node in new_tree.body if isinstance(node, _Import) and ast.dump(node) not in have]
    return [
        ast.unparse(node) for node in nodes if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    ]


def _first_import(tree: ast.Module) -> int | None:
    nodes = (node for node in tree.body if isinstance(node, _Import))
    return next((n.lineno for n in nodes if not (isinstance(n, ast.ImportFrom) and n.module == "__future__")), None)


def _after_preamble(tree: ast.Module, lines: Sequence[str]) -> int:
    """Return the last line of what must stay first: comments, the docstring, `from __future__` imports."""
    last = next((at for at, line in enumerate(lines) if not line.startswith("#")), len(lines))
    for at, node in enumerate(tree.body):
        is_docstring = at == 0 and ast.get_docstring(tree, clean=False) is not None
        if not is_docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        last = node.end_lineno or node.lineno
    return last


def _joined(lines: Sequence[str], pieces: Sequence[tuple[int, int, str]]) -> str:
    """Return lines with pieces put in: each replaces a range of lines, or stands before an empty one."""
    text, end = "".join(lines), "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    parts, at = list[str](), 1
    for start, last, piece in sorted(pieces, key=lambda each: (each[0], each[1])):
        parts += [*lines[at - 1 : start - 1], piece.replace("\n", end)]
        at = max(at, last + 1)
    result = "".join([*parts, *lines[at - 1 :]])
    return result if text.endswith(("\n", "\r")) else result.removesuffix(end)
