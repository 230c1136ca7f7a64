"""The settings that a repository's suite runs under: taken from the pristine tree, written to an ini of our own.

Carried over is what decides how tests are found and marked. Left out is what loads plugins, writes reports or passes
options, except the import mode.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from archon.codefix.runner_files import settings_of
from archon.codefix.types import Tree

_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""In pytest's own order: the first that has settings is the one."""
_LISTS = ("filterwarnings", "markers", "norecursedirs", "usefixtures")
_PATTERNS = ("python_classes", "python_files", "python_functions")
_WORDS = ("doctest_optionflags", "xfail_strict")
_IMPORT_MODES = ("append", "importlib", "prepend")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a repository's suite is run."""

    ini: str
    """The text of our own ini."""
    import_mode: str = "prepend"
    python_path: tuple[str, ...] = ("", "src")
    """Folders of the tree that modules are imported from, first one first; empty is the tree itself."""
    test_paths: tuple[str, ...] = ()
    """Where tests are when a command names no place; may hold wildcards."""


def settings(pristine: Tree) -> Settings:
    """Return the settings of a pristine tree."""
    at = {file.path: file.content for file in pristine}
    having = (values for name in _FILES if name in at and (values := settings_of(name, at[name])))
    found: dict[str, object] = next(having, {})
    lines = ["[pytest]"]
    for name in (*_LISTS, *_PATTERNS, *_WORDS):
        if words := _values(found, name, lines=name in _LISTS and name != "norecursedirs"):
            lines += [f"{name} =", *(f"    {word}" for word in words)]
    return Settings(
        ini="\n".join(lines) + "\n",
        import_mode=_import_mode(" ".join(_values(found, "addopts"))),
        python_path=tuple(dict.fromkeys((*_inside(_values(found, "pythonpath")), "", "src"))),
        test_paths=_inside(_values(found, "testpaths")),
    )


def _values(found: Mapping[str, object], name: str, *, lines: bool = False) -> list[str]:
    value = found.get(name)
    if isinstance(value, list):
        return [str(part) for part in value]
    if isinstance(value, bool):
        return [str(value).lower()]
    text = "" if value is None else str(value)
    return [line.strip() for line in text.splitlines() if line.strip()] if lines else text.split()


def _inside(folders: list[str]) -> tuple[str, ...]:
    """Return the folders that are inside the tree; `.` is the tree itself."""
    kept = [folder.removeprefix("./").rstrip("/") for folder in folders]
    kept = ["" if folder == "." else folder for folder in kept]
    return tuple(folder for folder in kept if not folder.startswith("/") and ".." not in folder.split("/"))


def _import_mode(options: str) -> str:
    try:
        words = shlex.split(options)
    except ValueError:
        return "prepend"
    for word, after in zip(words, [*words, ""][1:], strict=True):
        name, _, value = word.partition("=")
        mode = (value or after) if name == "--import-mode" else ""
        if mode in _IMPORT_MODES:
            return mode
    return "prepend"
