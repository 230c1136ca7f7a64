"""Reading test commands."""

from __future__ import annotations

import shlex

import pytest

from archon.codefix.pytest_command import Selection, is_pytest, selection
from archon.errors import ConfigError


@pytest.mark.parametrize(
    "start", ["pytest", "py.test", "python -m pytest", "python3 -m pytest", "/usr/bin/python3.11 -m pytest"]
)
def test_the_ways_to_start_pytest(start):
    command = shlex.split(f"{start} -q tests/x.py -k 'a and b'")
    assert is_pytest(command)
    assert selection(command) == Selection(paths=("tests/x.py",), options=("-k", "a and b"))


@pytest.mark.parametrize(
    "command",
    [
        "",
        "make test",
        "python -m unittest",
        "sh -c pytest",
        "env pytest",
        "python -c pytest",
        "tox",
        "python setup.py test",
    ],
)
def test_other_programs_are_not_pytest(command):
    assert not is_pytest(shlex.split(command))
    with pytest.raises(ConfigError, match="does not start pytest; valid: pytest"):
        selection(shlex.split(command))


def test_paths_ids_and_options():
    command = shlex.split(
        "pytest -x --maxfail=2 --maxfail 3 -vv --tb=short --tb long -p no:cacheprovider -m 'not slow' -W error "
        "--deselect ./tests/a.py::test_x --ignore=tests/b.py tests/a.py::TestA::test_y[1] tests/c tests/a.py::test_z"
    )
    assert selection(command) == Selection(
        paths=("tests/c", "tests/a.py"),
        prefixes=("tests/c", "tests/a.py::TestA::test_y[1]", "tests/a.py::test_z"),
        options=("-m", "not slow", "-W", "error", "--deselect=tests/a.py::test_x", "--ignore=tests/b.py"),
    )


def test_a_bare_command_selects_everything():
    assert selection(["pytest"]) == Selection()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-p evil", "'-p', which is not allowed"),
        ("-p no:terminal", "'-p', which is not allowed"),
        ("-c other.ini", "'-c', which is not allowed"),
        ("--rootdir=/", "not allowed"),
        ("--collect-only", "not allowed"),
        ("-o addopts=x", "not allowed"),
        ("--junitxml=/tmp/x", "not allowed"),
        ("--maxfial=1", "did you mean '--maxfail'"),
        ("/etc/passwd", "names '/etc/passwd'; valid: a path inside the tree"),
        ("../other", "valid: a path inside the tree"),
        ("--ignore=../x", "valid: a path inside the tree"),
        ("-k", "ends in '-k', which needs a value"),
    ],
)
def test_what_is_refused(words, said):
    with pytest.raises(ConfigError, match=said) as caught:
        selection(["pytest", *words.split()])
    assert words.split()[0] in str(caught.value)
