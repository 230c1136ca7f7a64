"""What comes out of a sandbox: encoded by the worker, decoded here, compared by rules."""

from __future__ import annotations

import collections
import enum
import json
import math
from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archon.sandbox.values import decode, equal, parse_literal

WORKER: dict[str, object] = {"__name__": "worker"}
exec((resources.files("archon.sandbox") / "call_worker.py.txt").read_text(), WORKER)
encode = WORKER["encode"]
Unrepresentable = WORKER["Unrepresentable"]


def through(value):
    tagged = encode(value)
    text = WORKER["to_json"](tagged)
    assert json.loads(text) == json.loads(json.dumps(tagged))
    return decode(json.loads(text))


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
HASHABLE = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(HASHABLE, inner)
        | st.sets(HASHABLE)
        | st.frozensets(HASHABLE)
    ),
    max_leaves=20,
)


@settings(deadline=None)  # a busy machine stops a test for a second
@given(VALUES)
def test_plain_values_come_through_as_they_are(value):
    back = through(value)
    # A NaN differs from itself, and a set's order from another's: the rules below compare those.
    assert repr(back) == repr(value) or back == value or "nan" in repr(value)
    assert type(back) is type(value)
    assert equal(value, back)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, -0.0, 10**5000, -(2**53) - 1, "\ud800\0", b"\xff"], ids=range(8)
)
def test_extremes_come_through(value):
    back = through(value)
    assert type(back) is type(value)
    assert equal(value, back)
    if value == 0:
        assert math.copysign(1, back) == -1


class EqualToAll:
    def __eq__(self, other):
        return True

    __hash__ = None


class IntEqualToAll(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__

    def __add__(self, other):
        return 42

    __index__ = __int__ = lambda self: 42


class ListEqualToAll(list):
    def __eq__(self, other):
        return True

    __hash__ = None

    def __iter__(self):
        return iter([42])


class Pretender:
    __class__ = int


def generator():
    yield 1


@pytest.mark.parametrize(
    "value",
    [EqualToAll(), [EqualToAll()], {1: EqualToAll()}, object(), len, generator(), range(3), Pretender(), int],
    ids=range(9),
)
def test_what_has_no_literal_is_named_and_not_sent(value):
    with pytest.raises(Unrepresentable):
        encode(value)


def test_subclasses_arrive_as_what_they_hold():
    assert through(IntEqualToAll(3)) == 3
    assert type(through(IntEqualToAll(3))) is int
    assert through(ListEqualToAll([1, 2])) == [1, 2]
    pair = collections.namedtuple("pair", "a b")
    assert through(pair(1, [2])) == (1, [2])
    assert through(collections.Counter("aab")) == {"a": 2, "b": 1}
    assert through(collections.OrderedDict(a=1)) == {"a": 1}
    assert through(enum.IntEnum("Colour", "red").red) == 1


def test_numpy_scalars_arrive_as_python_values():
    numpy = pytest.importorskip("numpy")
    for value, plain in ((numpy.int64(3), 3), (numpy.float64(0.5), 0.5), (numpy.bool_(True), True)):
        back = through([value])[0]
        assert (back, type(back)) == (plain, type(plain))
    with pytest.raises(Unrepresentable):
        encode(numpy.zeros(2))


def test_deep_cyclic_and_wide_values_are_refused():
    cycle = []
    cycle.append(cycle)
    deep = []
    for _ in range(100_000):
        deep = [deep]
    wide = [0]
    for _ in range(60):
        wide = [wide, wide]
    for value in (cycle, deep, wide, set(range(20_000))):
        with pytest.raises(Unrepresentable):
            encode(value)


@pytest.mark.parametrize(
    "forged",
    [
        {"s": [[1]]},
        {"d": [[[1], 2]]},
        {"d": [1]},
        {"i": "zz"},
        {"i": 5},
        {"f": "x"},
        {"f": "0x1p99999"},
        {"c": ["0x1p0"]},
        {"c": 1},
        {"b": "0"},
        {"q": 1},
        {},
        {"i": "1", "f": "0x1p0"},
        {"s": list(range(20_000))},
        {"t": 3},
        1.5,
    ],
)
def test_forged_replies_are_refused(forged):
    with pytest.raises(ValueError, match=r"\w"):
        decode(forged)


def test_forged_depth_is_refused():
    forged = []
    for _ in range(900):
        forged = [forged]
    with pytest.raises(ValueError, match="deep"):
        decode(forged)


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [
        (1, 1, True),
        (1, 2, False),
        (1, True, False),
        (True, True, True),
        (False, 0, False),
        (1, 1.0, True),
        (0.3, 0.1 + 0.2, True),
        (1e6, 1e6 + 0.5, True),
        (1e6, 1e6 + 2, False),
        (0.0, 1e-10, True),
        (0.0, 1e-8, False),
        (0.0, -0.0, True),
        (math.nan, math.nan, True),
        (math.nan, 0.0, False),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.inf, 10**400, False),
        (10**400, 10**400, True),
        (10**400, 1.0, False),
        (2**53, 2**53 + 1, False),
        ("1", 1, False),
        ("a", b"a", False),
        (None, None, True),
        (None, False, False),
        ([1, 2], [1, 2], True),
        ([1, 2], (1, 2), False),
        ([1, 2], [1, 2, 3], False),
        ([1, [2.0]], [1, [2.0000001]], True),
        ([True], [1], False),
        ({1, 2}, {2, 1}, True),
        ({1}, {True}, False),
        ({1}, {1.0}, True),
        ({1}, frozenset({1}), False),
        ({1}, [1], False),
        ({(1, 2)}, {(1, 2)}, True),
        ({"a": 1.0}, {"a": 1.0000001}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({1: "x"}, {True: "x"}, False),
        (1 + 2j, 1.0000000001 + 2j, True),
        (1 + 0j, 1, False),
    ],
)
def test_the_rules(expected, got, same):
    assert equal(expected, got) is same
    assert equal(got, expected) is same


def test_lenient_sequences():
    for expected, got in (([1, 2], (1, 2)), ([(1, 2)], [[1, 2]]), ({1}, frozenset({1})), ({"a": (1,)}, {"a": [1]})):
        assert not equal(expected, got)
        assert equal(expected, got, lenient_sequences=True)
    assert not equal([1], {1}, lenient_sequences=True)
    assert not equal([1, 2], (2, 1), lenient_sequences=True)


@pytest.mark.parametrize(
    "source", ["", "x", "f(1)", "1 +", "[", "(" * 5000, "{[]: 1}", "\0", "9" * 5000, "__import__('os')"], ids=range(10)
)
def test_what_is_no_literal(source):
    with pytest.raises(ValueError, match="not a Python literal"):
        parse_literal(source)


def test_literals():
    assert parse_literal("  ([1, -2.5], {'a': {1}}, set(), None)\n") == ([1, -2.5], {"a": {1}}, set(), None)
