"""The settings that are carried over from a pristine tree."""

from __future__ import annotations

from archon.codefix.pytest_settings import Settings, settings
from archon.codefix.types import File


def of(files):
    return settings(tuple(File(path=path, content=text.encode()) for path, text in sorted(files.items())))


def test_a_tree_without_settings():
    assert of({"a.py": ""}) == Settings(ini="[pytest]\n", import_mode="prepend", python_path=("", "src"), test_paths=())


def test_what_decides_how_tests_are_found_is_kept_and_the_rest_is_not():
    found = of(
        {
            "pyproject.toml": (
                "[tool.pytest.ini_options]\n"
                "addopts = '-p evil --import-mode=importlib --cov'\n"
                "testpaths = ['testing', '.']\n"
                "pythonpath = ['lib', '../out', '/abs', '.']\n"
                "python_files = ['check_*.py', 'test_*.py']\n"
                "markers = ['slow: takes long', 'net']\n"
                "xfail_strict = true\n"
                "required_plugins = ['x']\n"
                "log_file = 'x'\n"
            )
        }
    )
    assert found.ini == (
        "[pytest]\nmarkers =\n    slow: takes long\n    net\n"
        "python_files =\n    check_*.py\n    test_*.py\nxfail_strict =\n    true\n"
    )
    assert (found.import_mode, found.python_path) == ("importlib", ("lib", "", "src"))
    assert found.test_paths == ("testing", "")


def test_lists_of_an_ini_file_are_lines_and_patterns_are_words():
    found = of(
        {
            "pytest.ini": "[pytest]\nmarkers =\n    a: b c\n    d\npython_files = x_*.py y_*.py\n"
            "addopts = --import-mode append\n"
        }
    )
    assert found.ini == "[pytest]\nmarkers =\n    a: b c\n    d\npython_files =\n    x_*.py\n    y_*.py\n"
    assert found.import_mode == "append"


def test_the_first_file_that_has_settings_is_the_one():
    files = {
        "pytest.ini": "[other]\n",
        "tox.ini": "[pytest]\ntestpaths = b\n",
        "pyproject.toml": "[tool.pytest.ini_options]\ntestpaths = ['a']\n",
        "setup.cfg": "[tool:pytest]\ntestpaths = c\n",
        "sub/pytest.ini": "[pytest]\ntestpaths = d\n",
    }
    assert of(files).test_paths == ("a",)
    del files["pyproject.toml"]
    assert of(files).test_paths == ("b",)


def test_an_import_mode_that_pytest_does_not_know_is_not_passed_on():
    assert of({"pytest.ini": "[pytest]\naddopts = --import-mode=x\n"}).import_mode == "prepend"
    assert of({"pytest.ini": "[pytest]\naddopts = 'unclosed\n"}).import_mode == "prepend"
