"""Reads the tests that a model writes: assert lines for code, numbered statements for prose.

A code test is kept only when it is a comparison of one call of the problem's function with a literal, all of its
arguments literals too. So nothing that a model writes is ever evaluated here, and nothing but data reaches the sandbox.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from archon.layers.ask import Status
from archon.types import UnitTest

_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\(?\d{1,3}[.):]|Test\s*#?\d{1,3}\s*:)[ \t]*", re.IGNORECASE)
_LONGEST = 2_000
"""Characters of one test; a longer one is a loop that a small model fell into."""
_LINES = 8
"""An assert may go on for so many lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTests:
    """The tests of a reply, what was dropped and why, and how it read."""

    tests: tuple[UnitTest, ...]
    dropped: tuple[tuple[str, int], ...]
    """Reason and count."""
    status: Status


def parse_code_tests(text: str, function: str, limit: int) -> ParsedTests:
    """Return at most `limit` tests of `function`.

    `ok`: nothing had to be dropped or turned round. Two tests that expect different values of the same call
    contradict each other: the first is kept.
    """
    tests: dict[tuple[str, str], UnitTest] = {}
    dropped: Counter[str] = Counter()
    for statement in _statements(text, function):
        test = _code_test(statement, function) if isinstance(statement, ast.Assert) else "not_python"
        if isinstance(test, str):
            dropped[test] += 1
        elif (known := tests.get((test.args, test.kwargs))) is not None:
            dropped["duplicate" if known.expected == test.expected else "contradiction"] += 1
        elif len(tests) == limit:
            dropped["beyond_limit"] += 1
        else:
            tests[test.args, test.kwargs] = test
    return _parsed(tuple(tests.values()), dropped)


def parse_prose_tests(text: str, limit: int) -> ParsedTests:
    """Return at most `limit` statements: numbered or bulleted lines, or a list of strings as Python writes it."""
    dropped: Counter[str] = Counter()
    kept: dict[str, UnitTest] = {}
    for statement in _string_list(text) or _listed_lines(text):
        if len(statement) > _LONGEST:
            dropped["too_long"] += 1
        elif statement in kept:
            dropped["duplicate"] += 1
        elif len(kept) == limit:
            dropped["beyond_limit"] += 1
        else:
            kept[statement] = UnitTest(text=statement, source="model")
    return _parsed(tuple(kept.values()), dropped)


def _parsed(tests: tuple[UnitTest, ...], dropped: Counter[str]) -> ParsedTests:
    status: Status = "failed" if not tests else "repaired" if dropped else "ok"
    return ParsedTests(tests=tests, dropped=tuple(sorted(dropped.items())), status=status)


def _statements(text: str, function: str) -> Iterator[ast.stmt | None]:
    """Yield each assert of a reply, None for one that is not Python. Calls without `assert` are read as asserts."""
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        line = _BULLET.sub("", lines[index]).strip().strip("`")
        if line.startswith(f"{function}(") and "==" in line:
            line = f"assert {line}"
        if not line.startswith(("assert ", "assert(")):
            index += 1
            continue
        statement, used = _one_statement([line, *lines[index + 1 : index + _LINES]])
        yield statement
        index += used


def _one_statement(lines: list[str]) -> tuple[ast.stmt | None, int]:
    """Return the statement that the first lines make up, and how many they are; None and 1 when they make none."""
    for used in range(1, len(lines) + 1):
        source = "\n".join(lines[:used])
        if len(source) > _LONGEST or (used > 1 and lines[used - 1].lstrip().startswith("assert")):
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a model's odd escapes are its own business
                body = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return (body[0] if len(body) == 1 else None), used
    return None, 1


def _code_test(statement: ast.Assert, function: str) -> UnitTest | str:
    """Return the test of an assert, or the reason why it is none."""
    sides = _sides(statement.test)
    if sides is None:
        return "not_a_comparison"
    call, expected = sides
    if not (isinstance(call.func, ast.Name) and call.func.id == function):
        return "other_function"
    try:
        args = tuple(ast.literal_eval(argument) for argument in call.args)
        kwargs = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg}
        value = ast.literal_eval(expected)
        if len(kwargs) != len(call.keywords):
            return "not_literal"
        source = f"assert {ast.unparse(call)} == {ast.unparse(expected)}"
        literals = repr(args), repr(kwargs), repr(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return "not_literal"
    if any(not _reads_back(literal) for literal in literals):
        return "not_literal"
    return UnitTest(
        text=source, source="model", function=function, args=literals[0], kwargs=literals[1], expected=literals[2]
    )


def _sides(test: ast.expr) -> tuple[ast.Call, ast.expr] | None:
    """Return the call and the expected value of `f(x) == v`, `v == f(x)`, `f(x) is True`, `f(x)` or `not f(x)`."""
    if isinstance(test, ast.Tuple) and test.elts:
        test = test.elts[0]  # `assert (f(x) == v, "message")`
    match test:
        case ast.Compare(left=ast.Call() as call, ops=[ast.Eq() | ast.Is()], comparators=[expected]):
            return call, expected
        case ast.Compare(left=expected, ops=[ast.Eq()], comparators=[ast.Call() as call]):
            return call, expected
        case ast.Call():
            return test, ast.Constant(value=True)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call() as call):
            return call, ast.Constant(value=False)
    return None


def _reads_back(literal: str) -> bool:
    """Return whether a repr is a literal again: `inf` and `nan` are not, though `1e999` was."""
    try:
        ast.literal_eval(literal)
    except (ValueError, SyntaxError):
        return False
    return True


def _string_list(text: str) -> list[str]:
    match = re.search(r"\[\s*[\"'].*[\"']\s*,?\s*\]", text, re.DOTALL)
    if match is None:
        return []
    try:
        value = ast.literal_eval(match[0])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    return [item.strip() for item in value if isinstance(item, str) and item.strip()]


def _listed_lines(text: str) -> list[str]:
    """Return the listed lines, or every line when none is listed; a line that ends in a colon introduces the list."""
    lines = [line for line in text.splitlines() if line.strip() and not line.rstrip().endswith(":")]
    listed = [line for line in lines if _BULLET.match(line)]
    return [stripped for line in listed or lines if (stripped := _BULLET.sub("", line).strip().strip('"`'))]
