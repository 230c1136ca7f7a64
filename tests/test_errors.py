import inspect
import pickle
import re

import pytest

from archon import errors

CLASSES = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.ArchonError)]
LINE = re.compile(
    r"^(?P<indent>[│ ]*(?:[├└]── )?)(?P<name>[A-Z]\w+)(?: \((?P<note>[^)]*)\))?(?P<retry>\s+\(retryable\))?"
)


def drawn():
    """Return the tree in the docstring: name, parent, the builtin or the word in brackets."""
    tree, path = {}, []
    for line in errors.__doc__.splitlines():
        if not line.startswith("    "):
            continue
        match = LINE.match(line[4:])
        assert match, line
        depth = len(match["indent"]) // 4
        path = [*path[:depth], match["name"]]
        notes = re.findall(r"\((\w+)\)", line)
        tree[match["name"]] = (path[depth - 1] if depth else None, set(notes))
    return tree


def test_the_docstring_draws_every_class_under_its_parent():
    tree = drawn()
    assert set(tree) == {cls.__name__ for cls in CLASSES}
    for cls in CLASSES:
        parent, notes = tree[cls.__name__]
        if parent is None:
            assert cls is errors.ArchonError
            continue
        assert getattr(errors, parent) in cls.__bases__
        builtin = [base.__name__ for base in cls.__bases__ if base.__module__ == "builtins"]
        assert notes - {"retryable"} == set(builtin), cls
        assert ("retryable" in notes) == cls.retryable, cls


def test_only_outages_rate_limits_and_engines_are_worth_a_retry():
    assert {cls.__name__ for cls in CLASSES if cls.retryable} == {
        "AnswerLost",
        "ModelUnavailable",
        "RateLimited",
        "SandboxFailed",
    }


def test_only_an_answer_that_was_lost_on_its_way_may_be_billed():
    models = [cls for cls in CLASSES if issubclass(cls, errors.ModelError)]
    assert [cls.__name__ for cls in models if cls("x").may_be_billed] == ["AnswerLost"]
    assert {(cls("x").attempts, cls("x").wait_s) for cls in models} == {(1, 0.0)}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_survives_a_process_boundary(cls):
    error = pickle.loads(pickle.dumps(cls("what went wrong")))
    assert type(error) is cls
    assert str(error) == "what went wrong"
    assert isinstance(error, Exception)


def test_a_rate_limits_wait_survives_too():
    error = pickle.loads(pickle.dumps(errors.RateLimited("slow down", 2.5)))
    assert (str(error), error.retry_after_s) == ("slow down", 2.5)
    assert errors.RateLimited("slow down").retry_after_s is None


def test_what_was_spent_survives_too_and_is_put_on_a_copy():
    error = errors.RateLimited("slow down", 2.5)
    told = pickle.loads(pickle.dumps(error.with_spent(attempts=3, wait_s=4.5, may_be_billed=True)))
    assert type(told) is errors.RateLimited
    assert (str(told), told.retry_after_s) == ("slow down", 2.5)
    assert (told.attempts, told.wait_s, told.may_be_billed) == (3, 4.5, True)
    assert (error.attempts, error.wait_s, error.may_be_billed) == (1, 0.0, False)
    nothing = errors.AnswerLost("gone").with_spent()
    assert (nothing.attempts, nothing.wait_s, nothing.may_be_billed) == (0, 0.0, False)


def test_the_copy_still_says_where_it_happened():
    try:
        raise errors.ModelError("no")
    except errors.ModelError as error:
        assert error.with_spent().__traceback__ is error.__traceback__ is not None


@pytest.mark.parametrize(
    ("given", "valid", "said"),
    [
        ("top_kk", ["n", "top_k"], "did you mean 'top_k'? valid: n, top_k"),
        ("length_contorl", ["length_control", "n"], "did you mean 'length_control'? valid: length_control, n"),
        ("xyz", ["b", "a"], "valid: a, b"),
        ("", ["a"], "valid: a"),
        ("a", [], "valid: (none)"),
        ("a", iter(["ab", "b"]), "did you mean 'ab'? valid: ab, b"),
    ],
)
def test_the_nearest_name(given, valid, said):
    assert errors.nearest(given, valid) == said
