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
    assert {cls.__name__ for cls in CLASSES if cls.retryable} == {"ModelUnavailable", "RateLimited", "SandboxFailed"}


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
