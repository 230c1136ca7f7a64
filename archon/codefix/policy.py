"""What a patch may do: how large it may be, and which files are not a fix's to change.

Tests decide whether a fix is right, so a fix that edits them, or the settings of what runs them, has its edits of those
files dropped; the rest of it is judged. A *new* test file stays in the patch, because a user wants it, and is left out
of grading. Runner files are dropped even when they are new: a `conftest.py` alone can turn every test green.

Patterns: `tests/` is a folder of that name at any depth, `conftest.py` or `*.pth` a file name at any depth,
`/pytest.py` or `/_pytest/` a path from the top. What is not covered: code under test that tampers with its tests while
they run in its own process; that is the test run's to detect.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

TESTS = ("tests/", "/test/", "/testing/", "__tests__/", "test_*.py", "tests.py", "*_test.*", "*.test.*", "*.spec.*")
"""A folder `test` or `testing` counts at the top only: `django/test` and its like are source code."""

RUNNERS = (
    *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "noxfile.py"),
    *("setup.cfg", "setup.py", "pyproject.toml", ".coveragerc"),
    *("sitecustomize.py", "usercustomize.py", "*.pth"),
    *("entry_points.txt", "*.egg-info/", "*.dist-info/"),
    # `python -m pytest` looks for its own modules in the working folder first.
    *("/pytest.py", "/pytest/", "/_pytest/", "/pluggy.py", "/pluggy/", "/iniconfig.py", "/iniconfig/"),
)
"""Files that decide which tests run and how, or that Python runs before them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchPolicy:
    """Limits of a patch, and the files that it cannot change."""

    most_bytes: int = 1_000_000
    """Of the text that holds it."""
    most_files: int = 100
    most_hunks: int = 500
    """Finding the place of one takes time in proportion to its file."""
    most_binary_bytes: int = 100_000
    """Of the content that one binary change makes."""
    most_result_bytes: int = 20_000_000
    """Of all files that it changes, together, as they are afterwards."""
    tests: tuple[str, ...] = TESTS
    runners: tuple[str, ...] = RUNNERS
    links: tuple[str, ...] = ()
    """Symlinks and nested repositories of the user's folder (`Folder.closed`); nothing is written at or below them."""

    def is_test(self, path: str) -> bool:
        """Return whether a path is a test's: edits of it are dropped, a new one is kept but not graded."""
        return any(_matches(path, pattern) for pattern in self.tests)

    def is_runner(self, path: str) -> bool:
        """Return whether a path belongs to what runs the tests: edits of it are dropped, new or not."""
        return any(_matches(path, pattern) for pattern in self.runners)

    def drops(self, path: str, *, exists: bool) -> bool:
        """Return whether a change of this path is left out of a patch."""
        return self.is_runner(path) or (exists and self.is_test(path))

    def link_above(self, path: str) -> str | None:
        """Return the link that a path is, or goes through."""
        return next((link for link in self.links if path == link or path.startswith(f"{link}/")), None)


DEFAULT_POLICY = PatchPolicy()


def _matches(path: str, pattern: str) -> bool:
    *folders, name = path.split("/")
    if not pattern.endswith("/"):
        return fnmatchcase(path, pattern[1:]) if pattern.startswith("/") else fnmatchcase(name, pattern)
    if pattern.startswith("/"):
        return path.startswith(pattern[1:])
    return any(fnmatchcase(folder, pattern[:-1]) for folder in folders)
