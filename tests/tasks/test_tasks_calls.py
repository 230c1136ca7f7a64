import ast

import pytest

from archon.tasks.calls import assertion, call, distinct, literal, unit_test


@pytest.mark.parametrize(
    ("text", "args", "kwargs", "expected"),
    [
        ("assert f(1, [2]) == 3", (1, [2]), {}, 3),
        ("f('a=b', k=(1,)) == {'x': None}", ("a=b",), {"k": (1,)}, {"x": None}),
        ("assert f() is True", (), {}, True),
        ("assert(f(-1) == {1, 2})", (-1,), {}, {1, 2}),
        ("assert f(1) == 2, 'message'", (1,), {}, 2),
    ],
)
def test_assertions_become_structured(text, args, kwargs, expected):
    made, value = assertion(text)
    test = unit_test(made, value, "example")
    assert (ast.literal_eval(test.args), ast.literal_eval(test.kwargs), ast.literal_eval(test.expected)) == (
        args,
        kwargs,
        expected,
    )
    assert assertion(test.text) == (made, value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f(1)",
        "f(x) == 1",
        "f(1) == x",
        "f(1) != 2",
        "1 == f(1)",
        "a.f(1) == 2",
        "f(**{}) == 1",
        "f(*[1]) == 1",
        "f(1) == 2 == 3",
        "assert",
        "assertf(1) == 2 or True",
        "f(1) == [" * 400,
        "__import__('os').system('x') == 0",
        "f(\x00) == 1",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        assertion(text)


def test_long_literals_are_refused():
    with pytest.raises(ValueError, match="too long"):
        literal("1" * 30_000)


def test_contradicting_tests_are_left_out_and_repeats_kept_once():
    tests = [
        unit_test(call(text), value, "example") for text, value in (("f(1)", 1), ("f(1)", 1), ("f(2)", 1), ("f(2)", 2))
    ]
    assert [test.text for test in distinct(tests)] == ["assert f(1) == 1"]
