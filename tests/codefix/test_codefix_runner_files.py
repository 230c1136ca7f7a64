"""Which files are the judge's, and the tree that is tested."""

from __future__ import annotations

import pytest

from archon.codefix.runner_files import compose, is_runner_file, settings_of, top_modules
from archon.codefix.types import File


def make(files):
    return tuple(File(path=path, content=text.encode()) for path, text in sorted(files.items()))


@pytest.mark.parametrize(
    "path",
    [
        *("conftest.py", "a/b/conftest.py", "pytest.ini", "tox.ini", "x/test_y.py", "x/y_test.py", "app/tests.py"),
        *("tests/data/in.txt", "pkg/tests/helper.py", "test/a.py", "testing/a.py", "evil.pth", "sitecustomize.py"),
        *("x-1.dist-info/entry_points.txt", "src/x.egg-info/PKG-INFO"),
    ],
)
def test_files_of_the_judge(path):
    assert is_runner_file(path)


@pytest.mark.parametrize(
    "path",
    ["calc.py", "django/test/client.py", "numpy/testing/utils.py", "latest_news.py", "contests/a.py", "setup.cfg"],
)
def test_files_of_the_code(path):
    assert not is_runner_file(path)


def test_a_candidates_tests_are_put_back_dropped_and_listed():
    pristine = make({"a.py": "1", "tests/test_a.py": "old", "tests/gone.txt": "data", "conftest.py": "c"})
    candidate = make(
        {"a.py": "2", "b.py": "3", "tests/test_a.py": "new", "tests/test_b.py": "more", "conftest.py": "c"}
    )
    composed = compose(candidate, pristine)
    assert {file.path: file.content for file in composed.files} == {
        "a.py": b"2",
        "b.py": b"3",
        "conftest.py": b"c",
        "tests/gone.txt": b"data",
        "tests/test_a.py": b"old",
    }
    assert [file.path for file in composed.files] == sorted(file.path for file in composed.files)
    assert composed.set_aside == ("tests/gone.txt", "tests/test_a.py", "tests/test_b.py")
    assert composed.changed == ("a.py", "b.py")


def test_held_out_files_come_last_and_are_not_the_candidates():
    pristine = make({"a.py": "1", "tests/test_a.py": "old"})
    held_out = make({"tests/test_a.py": "held out"})
    composed = compose(pristine, pristine, held_out)
    assert {file.path: file.content for file in composed.files}["tests/test_a.py"] == b"held out"
    assert (composed.set_aside, composed.changed) == ((), ())


def test_new_modules_that_shadow_are_left_out_and_old_ones_stay_the_candidates():
    pristine = make({"src/json/__init__.py": "ours"})
    candidate = make(
        {
            "src/json/__init__.py": "fixed",
            "src/json/more.py": "new",
            "pytest.py": "",
            "_pytest/x.py": "",
            "src/unittest/__init__.py": "",
            "deep/unittest.py": "",
            "calc.cpython-311-x86_64-linux-gnu.so": "",
        }
    )
    composed = compose(candidate, pristine)
    assert composed.changed == ("deep/unittest.py", "src/json/__init__.py", "src/json/more.py")
    assert composed.set_aside == (
        "_pytest/x.py",
        "calc.cpython-311-x86_64-linux-gnu.so",
        "pytest.py",
        "src/unittest/__init__.py",
    )


def test_only_pytests_part_of_shared_settings_is_set_aside():
    pristine = make({"pyproject.toml": "[project]\nversion = '1'\n"})
    version = compose(make({"pyproject.toml": "[project]\nversion = '2'\n"}), pristine)
    options = compose(make({"pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-k x'\n"}), pristine)
    assert (version.set_aside, version.changed) == ((), ("pyproject.toml",))
    assert options.set_aside == ("pyproject.toml",)


def test_a_second_look_keeps_the_candidates_conftest():
    pristine, candidate = make({"conftest.py": "a", "test_x.py": "t"}), make({"conftest.py": "b", "test_x.py": "u"})
    composed = compose(candidate, pristine, own_conftest=True)
    assert [file.content for file in composed.files] == [b"b", b"t"]
    assert composed.set_aside == ("test_x.py",)


def test_there_is_no_history():
    with_git = make({".git/HEAD": "x", "sub/.git/HEAD": "x", "a.py": ""})
    assert [file.path for file in compose(with_git, with_git).files] == ["a.py"]


def test_top_modules():
    assert top_modules(["a.py", "src/b/__init__.py", "c/d.py", "README.md", "src/e.py"]) == {"a", "b", "c", "e"}


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("pytest.ini", "[pytest]\naddopts = -q\n", {"addopts": "-q"}),
        ("tox.ini", "[tox]\nenvlist = a\n[pytest]\ntestpaths = t\n", {"testpaths": "t"}),
        ("setup.cfg", "[metadata]\nname = %x\n[tool:pytest]\nmarkers = %a\n", {"markers": "%a"}),
        ("pyproject.toml", "[tool.pytest.ini_options]\ntestpaths = ['t']\n", {"testpaths": ["t"]}),
        ("pyproject.toml", "[tool.pytest]\ntestpaths = ['t']\n", {"testpaths": ["t"]}),
        ("pyproject.toml", "[tool.black]\n", {}),
        ("pyproject.toml", "not [toml", {}),
        ("pytest.ini", "no section", {}),
    ],
)
def test_pytests_settings_in_a_file(path, text, found):
    assert settings_of(path, text.encode()) == found
