"""Read a stated call with its result, such as `f([1, 2]) == 3`, as a structured test. Literals only; nothing is run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from archon.types import UnitTest

_MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a named function with literal arguments."""

    function: str
    args: tuple[object, ...]
    kwargs: tuple[tuple[str, object], ...] = ()


def literal(text: str) -> object:
    """Return the value of a Python literal; infinities and NaN are not literals.

    Raises:
        ValueError: the text is anything else.
    """
    if len(text) > _MAX_CHARS:
        raise ValueError("a literal that is too long")
    return _value(_expression(text))


def _expression(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a Python expression: {text[:80]!r}") from error


def _value(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a Python literal: {ast.unparse(node)[:80]!r}") from error


def call(text: str) -> Call:
    """Return a call written in Python.

    Raises:
        ValueError: it is not the call of a plain name with literal arguments.
    """
    return _call(_expression(text))


def _call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"not the call of a function by its name: {ast.unparse(node)[:80]!r}")
    if any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("a call with ** arguments")
    kwargs = tuple((keyword.arg or "", _value(keyword.value)) for keyword in node.keywords)
    return Call(function=node.func.id, args=tuple(_value(argument) for argument in node.args), kwargs=kwargs)


def assertion(text: str) -> tuple[Call, object]:
    """Return the call and the expected value of `assert f(args) == value`; the word `assert` may be left out.

    Raises:
        ValueError: it has another shape, or holds more than literals.
    """
    text = text.strip()
    if text.startswith("assert") and not text[6:7].isidentifier():
        text = text[6:].strip()
    node = _expression(text)
    if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Compare):
        node = node.elts[0]  # `assert f(x) == y, "message"`
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.Is):
        raise ValueError(f"not of the shape `f(args) == value`: {text[:80]!r}")
    return _call(node.left), _value(node.comparators[0])


def unit_test(called: Call, expected: object, source: Literal["example", "model"]) -> UnitTest:
    """Return a call and its value as a structured test, with the text `assert f(args) == value`."""
    arguments = [repr(value) for value in called.args] + [f"{name}={value!r}" for name, value in called.kwargs]
    return UnitTest(
        text=f"assert {called.function}({', '.join(arguments)}) == {expected!r}",
        source=source,
        function=called.function,
        args=repr(called.args),
        kwargs=repr(dict(called.kwargs)),
        expected=repr(expected),
    )


def distinct(tests: Sequence[UnitTest]) -> tuple[UnitTest, ...]:
    """Return the tests in order, each call once; calls that were stated with two different values are left out."""
    values: dict[tuple[str | None, str, str], set[str]] = {}
    for test in tests:
        values.setdefault((test.function, test.args, test.kwargs), set()).add(test.expected)
    once: dict[tuple[str | None, str, str], UnitTest] = {}
    for test in tests:
        key = (test.function, test.args, test.kwargs)
        if len(values[key]) == 1:
            once.setdefault(key, test)
    return tuple(once.values())
