"""Which files of a repository belong to its tests and their runner, and the tree that is tested for a candidate.

A patch may change the code, never the judge: whatever decides which tests run, and how, comes from the pristine tree.
Also removed are new modules that would stand in for the runner's own or the standard library's. What a candidate
changed there is not an error; it is set aside and listed.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from archon.codefix.types import File, Tree

RUNNER_MODULES = frozenset({"_pytest", "iniconfig", "packaging", "pluggy", "py", "pytest"})
"""What pytest is made of; a repository that holds one of these at its top cannot be tested here."""
_SHADOWED = RUNNER_MODULES | sys.stdlib_module_names | {"exceptiongroup", "numpy", "pygments", "tomli"}
_NAMES = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini"),
    *("sitecustomize.py", "usercustomize.py", "*.pth", "test_*.py", "*_test.py", "tests.py"),
)
_FOLDERS = ("*.dist-info", "*.egg-info", "tests")
_TOP_FOLDERS = ("test", "testing")
_COMPILED = (".pyc", ".pyo", ".so", ".pyd")
_SHARED = ("pyproject.toml", "setup.cfg")
"""Files of many tools' settings; pytest's are read from the pristine tree, the rest is the candidate's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The tree that is tested."""

    files: Tree
    set_aside: tuple[str, ...]
    """Files of the candidate's that were put back, left out, or (for settings) have no effect."""
    changed: tuple[str, ...]
    """Files that are the candidate's own: new, or other than in the pristine tree."""


def is_runner_file(path: str) -> bool:
    """Return whether a file belongs to the tests or their runner, so that a patch's change of it is set aside.

    That is by name (`test_*.py`, `conftest.py`, `pytest.ini`, `*.pth`, ...) or by place: below a folder `tests`
    anywhere, or `test` or `testing` at the top. `package/testing/...` is code.
    """
    *folders, name = PurePosixPath(path).parts
    return (
        any(fnmatchcase(name, pattern) for pattern in _NAMES)
        or any(fnmatchcase(folder, pattern) for folder in folders for pattern in _FOLDERS)
        or (bool(folders) and folders[0] in _TOP_FOLDERS)
    )


def compose(tree: Tree, pristine: Tree, held_out: Tree = (), *, own_conftest: bool = False) -> Composed:
    """Return a candidate's tree with the judge's files put back.

    Args:
        tree: the candidate's.
        pristine: the tree before the patch.
        held_out: further test files, put in place last.
        own_conftest: let the candidate keep its `conftest.py` files: for a second look, never for a verdict.
    """
    before = {file.path: file for file in pristine if not _is_history(file.path)}
    after = {file.path: file for file in tree if not _is_history(file.path)}

    def judges(path: str) -> bool:
        if own_conftest and PurePosixPath(path).name == "conftest.py":
            return False
        return is_runner_file(path) or _stands_in(path, before)

    aside = {path for path in before.keys() | after.keys() if judges(path) and after.get(path) != before.get(path)}
    settings = {path for path in _SHARED if _settings(path, before) != _settings(path, after)}
    files = {path: file for path, file in after.items() if not judges(path)}
    files |= {path: file for path, file in before.items() if judges(path)}
    files |= {file.path: file for file in held_out}
    untouched = before | {file.path: file for file in held_out}
    return Composed(
        files=tuple(files[path] for path in sorted(files)),
        set_aside=tuple(sorted(aside | settings)),
        changed=tuple(path for path in sorted(files) if files[path] != untouched.get(path)),
    )


def top_modules(paths: Iterable[str]) -> set[str]:
    """Return the names of modules and packages at the top of a tree and of its `src`."""
    return {name for path in paths if (name := _top_module(path))}


def _top_module(path: str) -> str:
    parts = PurePosixPath(path).parts
    parts = parts[1:] if parts[0] == "src" else parts
    if not parts or PurePosixPath(path).suffix not in (".py", *_COMPILED):
        return ""
    return parts[0].partition(".")[0]


def _stands_in(path: str, before: dict[str, File]) -> bool:
    """Return whether a file could be imported instead of a module of the runner's or the library's, or of a source."""
    if PurePosixPath(path).suffix in _COMPILED:
        return True  # it can stand in for any source, and no fix is made of it
    return (name := _top_module(path)) in _SHADOWED and name not in top_modules(before)


def _is_history(path: str) -> bool:
    return ".git" in PurePosixPath(path).parts


def _settings(path: str, files: dict[str, File]) -> dict[str, object]:
    return settings_of(path, files[path].content) if path in files else {}


def settings_of(path: str, content: bytes) -> dict[str, object]:
    """Return pytest's settings in one file by its name; empty when it has none or cannot be read."""
    text = content.decode("utf-8", "replace")
    name = PurePosixPath(path).name
    if name.endswith(".toml"):
        try:
            table: object = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return {}
        for key in ("tool", "pytest") if name == "pyproject.toml" else ("pytest",):
            table = table.get(key, {}) if isinstance(table, dict) else {}
        old_style = table.get("ini_options") if isinstance(table, dict) else None
        found = old_style if isinstance(old_style, dict) else table
        return dict(found) if isinstance(found, dict) else {}
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except ConfigParserError:
        return {}
    section = "tool:pytest" if name == "setup.cfg" else "pytest"
    return dict(parser[section]) if parser.has_section(section) else {}
