import pytest

from archon.layers.parse_tests import parse_code_tests, parse_prose_tests


def read(reply, limit=10):
    parsed = parse_code_tests(reply, "f", limit)
    return [(t.args, t.kwargs, t.expected) for t in parsed.tests], dict(parsed.dropped), parsed.status


def test_assert_lines():
    assert read("assert f(1) == 2\nassert f([1, 2], k='a') == {'x': (1,)}") == (
        [("(1,)", "{}", "2"), ("([1, 2],)", "{'k': 'a'}", "{'x': (1,)}")],
        {},
        "ok",
    )


def test_text_source_and_function_are_set():
    (test,) = parse_code_tests("assert f( 1 )==2, 'why'", "f", 5).tests
    assert (test.text, test.source, test.function) == ("assert f(1) == 2", "model", "f")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("assert 3 == f(1)", "3"),
        ("assert f(1)", "True"),
        ("assert not f(1)", "False"),
        ("assert f(1) is None", "None"),
        ("assert (f(1) == -2.5)", "-2.5"),
        ("assert (f(1) == 2, 'why')", "2"),
        ("assert f(1) == '\\d'", "'\\\\d'"),
        ("1. assert f(1) == 'a'", "'a'"),
        ("- `assert f(1) == 'a'`", "'a'"),
        ("Test 3: assert f(1) == {1}", "{1}"),
        ("f(1) == 7", "7"),
        ("    assert f(1) == b'x'  # indented", "b'x'"),
    ],
)
def test_shapes_that_are_understood(line, expected):
    tests, dropped, _ = read(line)
    assert (tests, dropped) == ([("(1,)", "{}", expected)], {})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("assert g(1) == 2", "other_function"),
        ("assert len(f(1)) == 2", "other_function"),
        ("assert obj.f(1) == 2", "other_function"),
        ("assert f(x) == 2", "not_literal"),
        ("assert f(1) == g(2)", "not_literal"),
        ("assert f([i for i in range(3)]) == 2", "not_literal"),
        ("assert f(10 ** 10 ** 10) == 2", "not_literal"),
        ("assert f(__import__('os').system('true')) == 0", "not_literal"),
        ("assert f(1e999) == 2", "not_literal"),
        ("assert f(*[1, 2]) == 2", "not_literal"),
        ("assert f(**{'a': 1}) == 2", "not_literal"),
        ("assert f(1) != 2", "not_a_comparison"),
        ("assert abs(f(1) - 2.0) < 1e-6", "not_a_comparison"),
        ("assert 1 < f(1) == 2", "not_a_comparison"),
        ("assert f(1) ==", "not_python"),
        ("assert f((((", "not_python"),
        ("assert " + "(" * 500 + "f(1)", "not_python"),
        ("assert f('" + "a" * 3000 + "') == 1", "not_python"),
    ],
)
def test_what_is_no_literal_test_is_dropped_and_counted(line, reason):
    assert read(line) == ([], {reason: 1}, "failed")


def test_duplicates_contradictions_and_the_limit():
    tests, dropped, status = read(
        "assert f(1) == 2\nassert f(1) == 2\nassert f(1) == 3\nassert f(2) == 2\nassert f(3) == 3", 2
    )
    assert tests == [("(1,)", "{}", "2"), ("(2,)", "{}", "2")]
    assert dropped == {"duplicate": 1, "contradiction": 1, "beyond_limit": 1}
    assert status == "repaired"


def test_prose_fences_and_statements_over_several_lines():
    listed = "assert f([\n    1,\n    2,\n]) == 3\nassert f(4) == 5\n"
    reply = f"Here are the tests:\n```python\ndef f(x):\n    return 1\n\n{listed}```"
    assert read(reply) == ([("([1, 2],)", "{}", "3"), ("(4,)", "{}", "5")], {}, "ok")


def test_a_cut_off_last_line_loses_only_itself():
    assert read("assert f(1) == 2\nassert f([1, 2") == ([("(1,)", "{}", "2")], {"not_python": 1}, "repaired")


def test_prose_tests_as_lines_and_as_a_list():
    lines = parse_prose_tests("Here they are:\n1. The answer is 5.\n2) It states the units.\n", 8)
    assert [test.text for test in lines.tests] == ["The answer is 5.", "It states the units."]
    assert lines.status == "ok"
    assert lines.tests[0].function is None
    listed = parse_prose_tests("```\n['The answer is 5.', \"It's short.\"]\n```", 8)
    assert [test.text for test in listed.tests] == ["The answer is 5.", "It's short."]


def test_prose_tests_are_limited_and_distinct():
    parsed = parse_prose_tests("- a\n- a\n- b\n- c", 2)
    assert [test.text for test in parsed.tests] == ["a", "b"]
    assert dict(parsed.dropped) == {"duplicate": 1, "beyond_limit": 1}
    assert parse_prose_tests("", 2).status == "failed"
