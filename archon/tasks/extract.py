"""Find the program or the final answer in what a model wrote. Pure functions; nothing is run."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from archon.tasks.source import MAX_SOURCE_CHARS, defines, parse_source, stub_in, with_preamble, without_script

_OPENING = re.compile(r"^(?:(?:[-*>]|\d+\.)[ \t]*)?(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`\n]*$")
_CODE_LINE = re.compile(r"^(import \w|from [\w.]+ import\b|(async )?def \w|class \w|@\w|\w+ *(:[^=]+)?= *\S)")
_MAX_TRIMS = 120
"""How many trailing lines are tried as prose or as a cut-off end before a text is given up."""
_MAX_PARSED_CHARS = 500_000
"""How much source is parsed in these tries, so that a hostile text costs a fraction of a second."""
_NOT_PYTHON = frozenset(
    {"bash", "sh", "shell", "console", "text", "txt", "output", "json", "java", "javascript", "cpp", "c"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    text: str
    language: str


def extract_code(text: str, entry_point: str | None, prompt: str) -> str | None:
    """Return the program in a model's answer as complete source, or None when there is none.

    The last fenced block that defines `entry_point` wins, one that parses before one that had to be trimmed; without
    fences the text itself is searched; a bare function body continues the stub in the prompt. Imports and helpers of
    the stub that the answer left out are put in front, statements that only try the function out are dropped.

    Args:
        text: the answer, with any thinking removed.
        entry_point: the function that will be called; None takes the last program of any name.
        prompt: the problem's statement, as a fenced block holds its stub or as it is the stub.
    """
    if len(text) > MAX_SOURCE_CHARS:
        return None
    stub = stub_in(prompt, entry_point) if entry_point is not None else None
    blocks = [block.text for block in _blocks(text) if block.language not in _NOT_PYTHON]
    sources = list(reversed(blocks)) or [text]
    for find in (_whole, _trimmed, _embedded):
        for source in sources:
            code = find(source, entry_point)
            if code is not None:
                return with_preamble(without_script(code, entry_point), stub, entry_point)
    if stub is None:
        return None
    bodies = (_continued(stub, source, entry_point) for source in sources)
    return next((without_script(code, entry_point) for code in bodies if code is not None), None)


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the fenced blocks of Markdown, the last one unclosed when the answer was cut off."""
    mark, language, lines = "", "", list[str]()
    for line in text.splitlines():
        opening = _OPENING.match(line.lstrip())
        if not mark:
            if opening is not None:
                mark, language, lines = opening.group(1), opening.group(2).lower(), []
        elif line.strip().startswith(mark) and not line.strip().strip(mark[0]):
            yield _Block(text=textwrap.dedent("\n".join(lines)), language=language)
            mark = ""
        else:
            lines.append(line)
    if mark and lines:
        yield _Block(text=textwrap.dedent("\n".join(lines)), language=language)


def _whole(source: str, entry_point: str | None) -> str | None:
    tree = parse_source(source)
    return source if tree is not None and defines(tree, entry_point) else None


def _trimmed(source: str, entry_point: str | None) -> str | None:
    """Return source without a cut-off or prose end."""
    return _longest_prefix(source.splitlines(), entry_point)


def _embedded(source: str, entry_point: str | None) -> str | None:
    """Return the program that begins at some line of a text without fences."""
    lines = source.splitlines()
    if entry_point is not None and entry_point not in source:
        return None
    starts = [number for number, line in enumerate(lines) if _CODE_LINE.match(line.strip())]
    for start in starts[: min(20, 1 + _MAX_PARSED_CHARS // len(source))]:
        block = textwrap.dedent("\n".join(lines[start:])).splitlines()
        code = _longest_prefix(_code_only(block), entry_point)
        if code is not None:
            return code
    return None


def _code_only(lines: list[str]) -> list[str]:
    """Return the lines up to the first one at the margin that no Python statement could begin like."""
    for number, line in enumerate(lines):
        at_margin = line[:1].strip() != ""
        if at_margin and number and re.match(r"^[A-Z][\w']* [a-z]", line) and parse_source(line) is None:
            return lines[:number]
    return lines


def _longest_prefix(lines: list[str], entry_point: str | None) -> str | None:
    for end in _ends(lines):
        source = "\n".join(lines[:end])
        tree = parse_source(source)
        if tree is not None:
            return source + "\n" if defines(tree, entry_point) else None
    return None


def _ends(lines: list[str]) -> range:
    chars = 1 + sum(len(line) for line in lines)
    return range(len(lines), max(0, len(lines) - min(_MAX_TRIMS, 2 + _MAX_PARSED_CHARS // chars)), -1)


def _continued(stub: str, text: str, entry_point: str | None) -> str | None:
    """Return the stub with a body that the text gives, whatever its indentation."""
    body = text.strip("\n").rstrip()
    dedented = textwrap.dedent(body)
    for indented in (body, "    " + body.lstrip(" "), textwrap.indent(dedented, "    ")):
        lines = indented.splitlines()
        for end in _ends(lines):
            code = stub + "\n".join(lines[:end]) + "\n"
            tree = parse_source(code)
            if tree is not None:
                if _has_result(tree, entry_point):
                    return code
                break
    return None


def _has_result(tree: ast.Module, entry_point: str | None) -> bool:
    """Return whether the function does something: prose that happens to parse does not count as a body."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == entry_point:
            return any(
                isinstance(part, ast.Return | ast.Raise | ast.Yield | ast.YieldFrom) for part in _own_parts(node)
            )
    return False


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a function that are not inside another function or class."""
    for part in ast.iter_child_nodes(node):
        yield part
        if not isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _own_parts(part)


_NUMBER = re.compile(
    r"(?<![\w.])[-−+]?\s?\$?\s?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s?/\s?\d+(?:\.\d+)?)?|(?<![\w.])[-−]?\.\d+"
)
_ANCHOR = re.compile(r"(?:answer|result)\**\s*(?:is|was|:|=|equals)\s*:?\s*", re.IGNORECASE)
_MATHS_SPAN = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)


def extract_answer(text: str) -> str | None:
    r"""Return the final answer that a solution states, or None when it states none.

    In this order: the last complete `\boxed{...}`, the last `#### x`, what follows the last "the answer is", the last
    number in the text. What comes back is text as written, without surrounding dollars, emphasis and full stops.
    """
    boxed = last_boxed(text)
    if boxed is not None:
        return boxed
    marked = re.findall(r"^[ \t]*#{4}[ \t]*(\S.*)$", text, re.MULTILINE)
    if marked:
        return _tidy(marked[-1]) or None
    for anchor in reversed(list(_ANCHOR.finditer(text))):
        answer = _stated(text[anchor.end() :])
        if answer:
            return answer
    return _last_number(text)


def last_boxed(text: str) -> str | None:
    r"""Return the inside of the last `\boxed{...}` or `\fbox{...}` that is closed and not empty."""
    starts = {match.end() for match in re.finditer(r"\\f?boxed\s*\{|\\fbox\s*\{", text)}
    opened, last, end = list[int](), -1, -1
    for brace in re.finditer(r"(?<!\\)[{}]", text):  # one pass: a text of nothing but openings must not take minutes
        if brace.group() == "{":
            opened.append(brace.end())
        elif opened:
            start = opened.pop()
            if start in starts and start > last and text[start : brace.start()].strip():
                last, end = start, brace.start()
    return _tidy(text[last:end]) if last >= 0 else None


def _stated(rest: str) -> str | None:
    """Return the answer in what follows "the answer is"."""
    first = rest.replace("**", "").lstrip("* \t\n:")
    span = _MATHS_SPAN.match(first)
    if span is not None and not re.match(r"\$\s?[\d,.]+\s", first):
        return _tidy(next(group for group in span.groups() if group is not None))
    sentence = re.split(r"\n|(?<=[^\s\d])\.(?:\s|$)|(?<=\d)\.(?:\s|$)|;", first, maxsplit=1)[0]
    sentence = _tidy(sentence)
    if "=" in sentence:
        return _tidy(sentence.rsplit("=", 1)[1]) or None
    number = _NUMBER.match(sentence)
    if number is not None and re.fullmatch(r"[\s%°]*|\s*[a-zA-Z€£ ]*", sentence[number.end() :]):
        return number.group().strip()
    if len(sentence.split()) <= 3:
        return sentence or None
    return _last_number(sentence)


def _last_number(text: str) -> str | None:
    numbers = _NUMBER.findall(text)
    return numbers[-1].strip() if numbers else None


def _tidy(answer: str) -> str:
    answer = answer.strip().strip("*").strip()
    while answer.endswith((".", ",")) or (answer.endswith("$") and answer.startswith("$") and len(answer) > 2):
        answer = answer[1:-1].strip() if answer.endswith("$") else answer[:-1].rstrip()
    return answer.strip("*").strip()
