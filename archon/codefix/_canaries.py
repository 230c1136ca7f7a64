"""Tests whose outcome is known beforehand: they show whether the runner of a job can still tell right from wrong.

A candidate that makes failing tests pass (a patched assertion helper, report class or comparison) makes these pass too.
Their names are random, so that nothing can be prepared for them; what reads them while it runs can still tell them from
the others by their place, which is the limit of judging inside the candidate's process.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

_MUST_RAISE = (
    "assert '{a}' in ['{b}']",
    "assert isinstance({a}, str)",
    "assert sorted([{b}, {a}]) == [{b}, {a}]",
    "assert math.isclose({a}, {b})",
    "assert {a} == pytest.approx({b})",
    "raise AssertionError({a})",
    "with pytest.raises(ValueError): {a}",
    "T().assertEqual({a}, {b})",
    "T().assertAlmostEqual({a}, {b})",
    "T().assertTrue({a} > {b})",
    "T().assertIn({a}, [{b}])",
    "T().assertRaises(ValueError, int, {a})",
    "sys.modules['numpy'].testing.assert_allclose([{a}], [{b}])",
)
"""Each is wrong and must say so; the last one, where numpy was not imported, does so by a KeyError."""
_TEXT = """\
import math
import sys
import unittest

import pytest


class T(unittest.TestCase):
    __test__ = False


{checks}

def {all_raise}():
    for check in [{names}]:
        try:
            check()
        except BaseException:
            continue
        return  # something wrong was let through: so is this test, which must fail
    raise AssertionError


def {fails}():
    assert {a} == {b}


def {passes}():
    assert {a} == {a}
"""
"""The checks share a test because showing a failure takes pytest longer than making it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canaries:
    """Two test files, one to run before the others and one after."""

    files: tuple[tuple[str, str], ...]
    """Name and text, in the order in which they run."""
    expected: tuple[tuple[str, str], ...]
    """By the name of a test: `passed` or `failed`."""


def make_canaries() -> Canaries:
    """Return canaries that no other job has had."""
    files: list[tuple[str, str]] = []
    expected: list[tuple[str, str]] = []
    for _ in range(2):
        all_raise, fails, passes = (f"test_{secrets.token_hex(6)}" for _ in range(3))
        a, b = 1000 + secrets.randbelow(1000), 2000 + secrets.randbelow(1000)
        checks = {f"x{secrets.token_hex(4)}": line.format(a=a, b=b) for line in _MUST_RAISE}
        text = _TEXT.format(
            checks="\n\n".join(f"def {name}():\n    {line}\n" for name, line in checks.items()),
            names=", ".join(checks),
            all_raise=all_raise,
            fails=fails,
            passes=passes,
            a=a,
            b=b,
        )
        files.append((f"test_{secrets.token_hex(6)}.py", text))
        expected += [(all_raise, "failed"), (fails, "failed"), (passes, "passed")]
    return Canaries(files=tuple(files), expected=tuple(expected))
