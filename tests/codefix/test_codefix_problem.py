"""What a solver is shown of an instance, and what it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archon.codefix.answer import read_answer
from archon.codefix.problem import Form, problem_of
from archon.codefix.types import File, Instance, Patch, TestRun

TREE = (
    File(path="app.py", content=b"def add(a, b):\n    return a - b\n"),
    File(path="tests/test_app.py", content=b"from app import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"),
)
INSTANCE = Instance(
    id="i1",
    tree=TREE,
    statement="Adding is wrong.",
    fail_to_pass=("tests/test_app.py::test_add",),
    held_out=(File(path="tests/test_hidden.py", content=b"SECRET = 1\n"),),
)
SEEN = TestRun(
    outcomes=(("tests/test_app.py::test_add", "failed"), ("tests/test_app.py::test_other", "passed")),
    status="finished",
    output="E  assert -1 == 3\n",
)


def test_a_repository_is_shown_with_its_failing_tests_and_asked_for_functions():
    problem = problem_of(INSTANCE, SEEN)
    assert (problem.id, problem.kind, problem.entry_point) == ("i1", "code", None)
    order = [
        "Adding is wrong.",
        "tests/test_app.py::test_add",
        "assert -1 == 3",
        "app.py\n```python\n",
        "```python code block",
    ]
    places = [problem.text.index(part) for part in order]
    assert places == sorted(places)
    assert "test_other" not in problem.text


def test_held_out_tests_never_reach_the_solver():
    hidden = replace(INSTANCE, fail_to_pass=(*INSTANCE.fail_to_pass, "tests/test_hidden.py::test_it"))
    problem = problem_of(hidden, SEEN)
    assert "SECRET" not in problem.text
    assert "test_hidden" not in problem.text


def test_without_named_tests_those_that_failed_are_shown():
    problem = problem_of(replace(INSTANCE, fail_to_pass=()), SEEN)
    assert "These tests fail:\ntests/test_app.py::test_add\n\n" in problem.text


def test_one_function_is_asked_for_whole():
    problem = problem_of(replace(INSTANCE, entry_point="add", fail_to_pass=()), None)
    assert problem.entry_point == "add"
    assert "whole corrected function `add`" in problem.text
    assert "SEARCH" not in problem.text
    assert "What the tests printed" not in problem.text


def test_long_output_keeps_its_end():
    problem = problem_of(INSTANCE, replace(SEEN, output="x" * 10_000 + "\nthe end"))
    assert "the end" in problem.text
    assert problem.text.count("x") < 2_600


def test_many_failing_tests_are_counted():
    many = tuple(f"tests/test_app.py::test_{i}" for i in range(30))
    assert "and 18 more" in problem_of(replace(INSTANCE, fail_to_pass=many), SEEN).text


@pytest.mark.parametrize("form", ["functions", "edits"])
def test_the_example_before_the_problem_is_itself_an_answer_that_can_be_read(form: Form):
    question, answer = problem_of(INSTANCE, SEEN, form=form).history
    source = str(question.content).partition("```python\n")[2].partition("```")[0]
    tree = (File(path="shop/week.py", content=source.encode()),)
    patch = read_answer(str(answer.content), tree)
    assert isinstance(patch, Patch)
    assert "+    return list(range(1, DAYS + 1))\n" in patch.text
    assert patch.form == ("function" if form == "functions" else "search_replace")
