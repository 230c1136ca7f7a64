"""Reads the test command of a repository: which tests a pytest invocation asks for.

The command itself is never run. What it selects is taken from it, what only changes the display is left out, and what
could change a verdict (plugins, settings, another root) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from archon.errors import ConfigError, nearest

_DISPLAY = (
    *("-q", "-qq", "-v", "-vv", "-vvv", "-s", "-l", "--quiet", "--verbose", "--showlocals", "--no-header"),
    *("--no-summary", "--disable-warnings", "--full-trace", "-rA", "-ra", "-rf", "-rfE", "-rs", "-rP"),
)
_DISPLAY_VALUE = ("--tb", "--color", "--durations", "--capture", "--show-capture", "--verbosity")
_STOPPING = ("-x", "--exitfirst")
_STOPPING_VALUE = ("--maxfail",)
_KEPT_VALUE = ("-k", "-m", "-W", "--deselect", "--ignore")
_NO_EFFECT = ("-p", "no:cacheprovider")
_VALID = (*_DISPLAY, *_DISPLAY_VALUE, *_STOPPING, *_STOPPING_VALUE, *_KEPT_VALUE, "-p no:cacheprovider")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The tests that a command asks for."""

    paths: tuple[str, ...] = ()
    """Files and folders of the tree; none: where the settings say, else all of it."""
    prefixes: tuple[str, ...] = ()
    """Tests, classes or files named by id; none: everything in `paths`."""
    options: tuple[str, ...] = ()
    """`-k`, `-m`, `-W`, `--deselect` and `--ignore`, as they were given."""


def is_pytest(command: Sequence[str]) -> bool:
    """Return whether a command starts pytest by one of its names."""
    return _arguments(command) is not None


def selection(command: Sequence[str]) -> Selection:
    """Return what a pytest command asks for.

    `-x` and `--maxfail` are read and have no effect: every test is run, because one that did not run is not known to
    pass. A file that is given both whole and by id counts as given whole.

    Raises:
        ConfigError: no pytest command, or an option or path that is not allowed.
    """
    words = _arguments(command)
    if words is None:
        raise ConfigError(
            f"the test command {' '.join(command)!r} does not start pytest; valid: pytest, py.test or "
            "python -m pytest with paths and options; any other command only by its exit code, when asked for"
        )
    targets: list[str] = []
    options: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.startswith("-"):
            targets.append(_target(word, command))
        elif word in _DISPLAY or word in _STOPPING:
            continue
        elif word == _NO_EFFECT[0] and rest[:1] == [_NO_EFFECT[1]]:
            rest.pop(0)
        elif name in (*_DISPLAY_VALUE, *_STOPPING_VALUE, *_KEPT_VALUE):
            if not equals and not rest:
                raise ConfigError(f"the test command {' '.join(command)!r} ends in {word!r}, which needs a value")
            value = value if equals else rest.pop(0)
            if name in _KEPT_VALUE:
                checked = _target(value, command) if name in ("--deselect", "--ignore") else value
                options += [f"{name}={checked}"] if name.startswith("--") else [name, checked]
        else:
            raise ConfigError(
                f"the test command {' '.join(command)!r} has the option {word!r}, which is not allowed here; "
                f"{nearest(word, _VALID)}"
            )
    whole = [target for target in targets if "::" not in target]
    named = [target for target in targets if "::" in target]
    return Selection(
        paths=tuple(dict.fromkeys([*whole, *(target.partition("::")[0] for target in named)])),
        prefixes=tuple(dict.fromkeys([*whole, *named])) if named else (),
        options=tuple(options),
    )


def _arguments(command: Sequence[str]) -> list[str] | None:
    if not command:
        return None
    program = PurePosixPath(command[0]).name
    if program in ("pytest", "py.test"):
        return list(command[1:])
    if re.fullmatch(r"python(3(\.\d+)?)?", program) and list(command[1:3]) == ["-m", "pytest"]:
        return list(command[3:])
    return None


def _target(word: str, command: Sequence[str]) -> str:
    path = word.partition("::")[0]
    parts = PurePosixPath(path).parts
    if not path or path.startswith("/") or ".." in parts or "\0" in word:
        raise ConfigError(f"the test command {' '.join(command)!r} names {word!r}; valid: a path inside the tree")
    plain = str(PurePosixPath(path))
    return plain + word[len(path) :]
