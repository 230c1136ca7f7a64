"""Python source as text and as a tree: what extraction and grading both need to know about it.

Nothing here runs code. Every function takes hostile text: what cannot be parsed gives None, never an exception.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings

MAX_SOURCE_CHARS = 200_000
"""Longer texts are not parsed: no answer to a programming problem needs it, and parsing them takes seconds."""

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_SELF_TESTS = re.compile(r"^(print|input|main|test\w*|run_?tests?|check|testmod)$")


def parse_source(source: str) -> ast.Module | None:
    """Return the tree of some Python source, or None when it cannot be parsed."""
    if len(source) > MAX_SOURCE_CHARS:
        return None
    try:
        with warnings.catch_warnings():  # an invalid escape in a model's string is no concern of ours
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def defines(tree: ast.Module, name: str | None) -> bool:
    """Return whether a module defines `name` at its top level; for None, whether it defines anything."""
    return any(name is None or name in _names(node) for node in tree.body if _names(node))


def _names(node: ast.stmt) -> frozenset[str]:
    if isinstance(node, _Definition):
        return frozenset({node.name})
    if isinstance(node, ast.Assign):
        return frozenset(target.id for target in node.targets if isinstance(target, ast.Name))
    return frozenset()


def stub_in(prompt: str, entry_point: str | None) -> str | None:
    """Return the source in a prompt that begins the function to write: a fenced block of it, or the whole prompt."""
    blocks = [match.group(1) for match in _FENCE.finditer(prompt)]
    for text in (*reversed(blocks), prompt):
        tree = parse_source(text)
        if tree is not None and any(isinstance(n, _Definition) and n.name == entry_point for n in tree.body):
            return text.strip("\n") + "\n"
    return None


def with_preamble(code: str, stub: str | None, entry_point: str | None) -> str:
    """Return code with the imports and helpers of the problem's stub that it does not have itself.

    They go in front, but after `from __future__` lines, which must stay first.
    """
    tree, given = parse_source(code), parse_source(stub or "")
    if tree is None or given is None or stub is None:
        return code
    own = {name for node in tree.body for name in _names(node)}
    imported = {ast.dump(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
    missing = [
        ast.get_source_segment(stub, node) or ""
        for node in given.body
        if (isinstance(node, ast.Import | ast.ImportFrom) and ast.dump(node) not in imported)
        or (_names(node) and entry_point not in _names(node) and not _names(node) <= own)
    ]
    if not missing:
        return code
    lines = code.split("\n")
    future = [
        node.end_lineno or 0 for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    at = max(future, default=0)
    return "\n".join([*lines[:at], *"\n\n".join(missing).split("\n"), "", "", *lines[at:]])


def without_script(code: str, entry_point: str | None) -> str:
    """Return code without the top-level statements that only try it out.

    Dropped: asserts, `if __name__ == ...`, and statements that print, read input, call the function asked for or run
    tests. Imports, definitions and other assignments stay: the function may need them.
    """
    tree = parse_source(code)
    if tree is None:
        return code
    drop = [node for node in tree.body if _only_tries(node, entry_point)]
    kept_lines = {line for node in tree.body if node not in drop for line in _lines(node)}
    gone = {line for node in drop for line in _lines(node)} - kept_lines
    if not gone:
        return code
    return "\n".join(text for number, text in enumerate(code.split("\n"), 1) if number not in gone).strip("\n") + "\n"


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _only_tries(node: ast.stmt, entry_point: str | None) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, _Definition | ast.Import | ast.ImportFrom):
        return False
    if isinstance(node, ast.If) and any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test)):
        return True
    if isinstance(node, ast.Assign) and entry_point in _names(node):
        return False
    called = {_called(call) for call in ast.walk(node) if isinstance(call, ast.Call)}
    return any(name is not None and (name == entry_point or _SELF_TESTS.match(name)) for name in called)


def _called(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Name):
        return call.func.id
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def canonical_hash(code: str) -> str | None:
    """Return a hash that is equal for programs that differ in comments, docstrings and layout only."""
    tree = parse_source(code)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, _Definition | ast.Module) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    try:
        return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()[:24]
    except RecursionError:
        return None
