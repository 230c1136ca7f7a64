"""Values that come out of the sandbox: decoded from tagged JSON into plain Python, and compared by fixed rules.

The decoder builds only plain built-in values, so nothing that a candidate defined takes part in the comparison: an
object that claims to equal everything arrives as what it really holds, or as the name of its type.

The rules, where the expected value is a Python literal:

- None, str, bytes: same type, same value. bool is not int: `True` does not equal `1`.
- int and float are one kind, as in Python's own `==`. Two ints compare exactly; where either is a float, they are
  equal within 1e-6 relative or 1e-9 absolute. inf equals inf, NaN equals NaN, -0.0 equals 0.0.
- list, tuple, set, frozenset and dict: same type, same parts. With `lenient_sequences` a list equals a tuple, and a
  set a frozenset. Inside sets and as dict keys numbers compare exactly.
- An instance of a subclass counts as its built-in base (a named tuple as a tuple, Counter and OrderedDict as dict,
  an IntEnum member as int), a numpy scalar as the Python value it holds.
- Anything else has no literal and fails.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Hashable
from typing import Any, TypeGuard

MAX_DEPTH = 210
"""Above the worker's own limit (100, twice where subclasses are read), so that what it sends can be decoded."""
MAX_ITEMS = 10_000
"""In one set or dict: a forged reply could choose keys that collide, and building such a set takes squared time."""
_REL_TOL, _ABS_TOL = 1e-6, 1e-9


def parse_literal(source: str) -> object:
    """Return the value of a Python literal.

    Raises:
        ValueError: it is not one, whatever else is wrong with it.
    """
    try:
        value: object = ast.literal_eval(source.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"not a Python literal: {source[:120]!r} ({type(error).__name__})") from None
    return value


def decode(tagged: object, depth: int = 0) -> object:
    """Return the plain value of a tagged JSON value.

    Raises:
        ValueError: it is not one that the worker writes, or it is too deep or too large.
    """
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if tagged is None or isinstance(tagged, bool | int | str):
        return tagged
    if isinstance(tagged, list):
        return [decode(part, depth + 1) for part in tagged]
    if isinstance(tagged, dict) and len(tagged) == 1:
        ((tag, content),) = tagged.items()
        try:
            return _decode_tag(tag, content, depth + 1)
        except (TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a value of tag {tag!r}: {type(error).__name__}") from None
    raise ValueError(f"not a tagged value: {type(tagged).__name__}")


def _decode_tag(tag: str, content: Any, depth: int) -> object:  # noqa: ANN401 (whatever a forged reply holds)
    match tag:
        case "i":
            return int(content, 16)
        case "f":
            return float.fromhex(content)
        case "c":
            real, imaginary = content
            return complex(float.fromhex(real), float.fromhex(imaginary))
        case "b":
            return bytes.fromhex(content)
        case "t":
            return tuple(decode(part, depth) for part in content)
    if tag not in ("s", "z", "d"):
        raise ValueError(f"unknown tag {tag!r}; valid: i, f, c, b, t, s, z, d")
    if len(content) > MAX_ITEMS:
        raise ValueError("a set or dict with too many items")
    if tag == "d":
        return {decode(key, depth): decode(value, depth) for key, value in content}
    parts = [decode(part, depth) for part in content]
    return set(parts) if tag == "s" else frozenset(parts)


def equal(expected: object, got: object, *, lenient_sequences: bool = False) -> bool:
    """Return whether two plain values are equal by the rules of this module. Symmetric."""
    if _is_number(expected) and _is_number(got):
        return _equal_numbers(expected, got)
    if isinstance(expected, complex) and isinstance(got, complex):
        return _equal_numbers(expected.real, got.real) and _equal_numbers(expected.imag, got.imag)
    if _kind(expected, lenient_sequences) is not _kind(got, lenient_sequences):
        return False
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        return len(expected) == len(got) and all(
            equal(a, b, lenient_sequences=lenient_sequences) for a, b in zip(expected, got, strict=True)
        )
    if isinstance(expected, dict) and isinstance(got, dict):
        ours = {_key(key, lenient_sequences): value for key, value in expected.items()}
        theirs = {_key(key, lenient_sequences): value for key, value in got.items()}
        return ours.keys() == theirs.keys() and all(
            equal(value, theirs[key], lenient_sequences=lenient_sequences) for key, value in ours.items()
        )
    if isinstance(expected, set | frozenset):
        return _key(expected, lenient_sequences) == _key(got, lenient_sequences)
    return expected == got


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal_numbers(a: float, b: float) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    try:
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return math.isclose(a, b, rel_tol=_REL_TOL, abs_tol=_ABS_TOL)
    except OverflowError:  # an int beyond every float
        return a == b


def _kind(value: object, lenient: bool) -> type:
    if lenient and isinstance(value, tuple | frozenset):
        return list if isinstance(value, tuple) else set
    return type(value)


def _key(value: object, lenient: bool) -> Hashable:
    """Return something hashable that is the same for exactly the values that are equal, numbers compared exactly."""
    if isinstance(value, list | tuple):
        return (_kind(value, lenient).__name__, *(_key(part, lenient) for part in value))
    if isinstance(value, set | frozenset):
        return (_kind(value, lenient).__name__, frozenset(_key(part, lenient) for part in value))
    if _is_number(value):
        return ("number", "nan" if math.isnan(value) else value)
    return (type(value).__name__, value)
