"""Find the places of a repository that a fix is likely to touch: from tracebacks, failing tests, and named symbols.

A small repository is shown whole. In a larger one every file gets evidence points: a line of a traceback in it (the
deeper the frame, the more), a symbol that it defines and that the failing tests or the statement name, its own name in
the statement, and being imported by a failing test. The best files are shown, each cut to the definitions that the
evidence is about when it does not fit whole. Differs from Agentless (arXiv 2407.01489), which asks a model for each of
these steps: here no call is made, so localisation costs nothing and is the same every time.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archon.codefix.types import File, Tree

_FRAME = re.compile(r"(?:File \"([^\"]+)\", line (\d+)|^([\w./-]+\.py):(\d+):)", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_PATH = re.compile(r"[\w./-]+\.\w+")

_DEEPEST_FRAME, _OTHER_FRAME, _NAMED_PATH, _DEFINED_SYMBOL, _IMPORTED = 8.0, 3.0, 6.0, 2.0, 2.0
"""Points of evidence. The deepest frame inside the repository is where the error came out, which is most often near the
cause; a path in the statement was written by somebody who knew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One file, or the part of it, that is worth showing."""

    path: str
    text: str
    first_line: int = 1
    """The line of the file on which the text begins."""
    points: float = 0.0
    whole: bool = True


def localise(
    tree: Tree,
    *,
    statement: str = "",
    test_output: str = "",
    failing: Sequence[str] = (),
    most_characters: int = 12_000,
) -> tuple[Place, ...]:
    """Return the places to show, most likely first, together at most `most_characters` long.

    Args:
        tree: the repository as it is.
        statement: what is wrong, in words.
        test_output: what the failing tests printed.
        failing: ids of the failing tests, `tests/test_x.py::test_y`.
        most_characters: a bound of all texts together; a tree of sources that fits is returned whole.
    """
    sources = {file.path: _text(file) for file in tree if file.path.endswith(".py") and not is_test(file.path)}
    named = Counter(_NAME.findall(statement)) + Counter(_NAME.findall(_bodies(tree, failing)))
    lines = _frames(test_output, sources)
    points = {path: _points(path, text, lines, named, statement) for path, text in sources.items()}
    for path in _imported(tree, failing, sources):
        points[path] += _IMPORTED
    order = sorted(sources, key=lambda path: (-points[path], path))
    if sum(map(len, sources.values())) <= most_characters:
        return tuple(Place(path=path, text=sources[path], points=points[path]) for path in order)
    return tuple(_fitted([(path, sources[path], points[path]) for path in order], lines, named, most_characters))


def is_test(path: str) -> bool:
    """Return whether a file is a test or belongs to tests, by the names that pytest and people use."""
    *folders, name = path.split("/")
    return (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or bool({"tests", "test"} & set(folders))
    )


def _text(file: File) -> str:
    return file.content.decode("utf-8", errors="replace")


def _frames(output: str, sources: Iterable[str]) -> dict[str, list[int]]:
    """Return the lines of tracebacks by source file, in the order in which they were printed: the deepest last."""
    found: dict[str, list[int]] = {}
    paths = tuple(sources)
    for match in _FRAME.finditer(output):
        shown, line = match[1] or match[3], int(match[2] or match[4])
        for path in paths:
            if shown == path or shown.endswith("/" + path):
                lines = found.pop(path, [])
                found[path] = [*lines, line]
    return found


def _points(path: str, text: str, frames: dict[str, list[int]], named: Counter[str], statement: str) -> float:
    total = 0.0
    if path in frames:
        deepest = next(reversed(frames))
        total += _DEEPEST_FRAME if path == deepest else _OTHER_FRAME
    if any(path == shown or path.endswith("/" + shown) for shown in _PATH.findall(statement)):
        total += _NAMED_PATH
    defined = {name for name, _, _ in _definitions(text)}
    return total + _DEFINED_SYMBOL * len(defined & set(named))


def _bodies(tree: Tree, failing: Sequence[str]) -> str:
    """Return the source of the failing tests' functions."""
    texts = {file.path: _text(file) for file in tree}
    found = []
    for test in failing:
        path, *names = test.split("::")
        wanted = names[-1].partition("[")[0] if names else None
        text = texts.get(path, "")
        lines = text.splitlines()
        found += ["\n".join(lines[first - 1 : last]) for name, first, last in _definitions(text) if name == wanted]
    return "\n".join(found)


def _imported(tree: Tree, failing: Sequence[str], sources: Iterable[str]) -> list[str]:
    """Return the source files that the failing tests' modules import."""
    texts = {file.path: _text(file) for file in tree}
    modules: set[str] = set()
    for path in {test.partition("::")[0] for test in failing}:
        for node in _walk(texts.get(path, "")):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return [path for path in sources if _module(path) in modules]


def _module(path: str) -> str:
    trimmed = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__")
    return trimmed.replace("/", ".")


def _walk(text: str) -> Iterable[ast.AST]:
    try:
        return list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):  # a file that does not parse has no symbols, and may be the bug
        return []


def _definitions(text: str) -> list[tuple[str, int, int]]:
    """Return each function's and class's name with its first and last line, decorators included."""
    found = []
    for node in _walk(text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found.append((node.name, first, node.end_lineno or node.lineno))
    return found


def _fitted(
    ordered: list[tuple[str, str, float]], frames: dict[str, list[int]], named: Counter[str], room: int
) -> list[Place]:
    """Return whole files while they fit in a half of the room that is left, else the definitions worth showing."""
    places: list[Place] = []
    for path, text, points in ordered:
        if points <= 0 and places:
            break
        if len(text) <= room // 2:
            places.append(Place(path=path, text=text, points=points))
            room -= len(text)
            continue
        for first, last in _worth(text, frames.get(path, []), named):
            cut = "\n".join(text.splitlines()[first - 1 : last]) + "\n"
            if len(cut) <= room:
                places.append(Place(path=path, text=cut, first_line=first, points=points, whole=False))
                room -= len(cut)
    return places


def _worth(text: str, lines: list[int], named: Counter[str]) -> list[tuple[int, int]]:
    """Return the spans of the definitions with evidence, best first, none inside another."""
    spans: dict[tuple[int, int], float] = {}
    for name, first, last in _definitions(text):
        hits = sum(first <= line <= last for line in lines)
        # A class that merely holds the evidence is longer than the method that does.
        weight = (_OTHER_FRAME * hits + _DEFINED_SYMBOL * (name in named)) / (1 + (last - first) / 50)
        if weight > 0:
            spans[first, last] = max(weight, spans.get((first, last), 0.0))
    chosen: list[tuple[int, int]] = []
    for first, last in sorted(spans, key=lambda span: (-spans[span], span)):
        if not any(first <= b and a <= last for a, b in chosen):
            chosen.append((first, last))
    return chosen
