"""The project's own repositories with seeded bugs: small packages with their tests, written for this.

A project is a folder of `projects/`:

    repo/          its files, each with `.txt` behind its name, so that no tool takes them for this project's own
    held_out/      test files that a solver does not see, in the same way
    bugs.yaml      each bug: an issue as a user would file it, a difficulty from 1 to 3, and replacements of text that
                   put it in (`fixed` becomes `broken`; `fixed` is in the file exactly once)
    pinned.json    by bug: the tests that it makes fail, and those that pass with and without it, as pytest said

A bug that one file can mend has difficulty 1 or 2; the ones of difficulty 3 need two files or a look at the state.
A test whose outcome depends on which tests ran before it is in neither list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from archon.codefix.types import File, Instance, Tree

_FOLDER = "projects"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One place of a bug."""

    path: str
    fixed: str
    broken: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeededBug:
    """A bug of a project, with what only a grader and the tests may know."""

    instance: Instance
    project: str
    difficulty: int
    kind: str
    replacements: tuple[Replacement, ...]
    fixed: Tree
    """The tree without the bug."""


def original_bugs() -> tuple[SeededBug, ...]:
    """Return every bug of every project, in the order of the projects' names."""
    return _all()


@cache
def _all() -> tuple[SeededBug, ...]:
    root = resources.files("archon.codefix") / _FOLDER
    projects = sorted((each for each in root.iterdir() if each.is_dir()), key=lambda each: each.name)
    return tuple(bug for project in projects for bug in _bugs(project))


def _bugs(project: Traversable) -> list[SeededBug]:
    fixed, held_out = files_of(project / "repo"), files_of(project / "held_out")
    pinned = json.loads((project / "pinned.json").read_text("utf-8"))
    bugs = yaml.safe_load((project / "bugs.yaml").read_text("utf-8"))
    return [_bug(project.name, bug, fixed, held_out, pinned[bug["id"]]) for bug in bugs]


def _bug(
    project: str, bug: Mapping[str, Any], fixed: Tree, held_out: Tree, pinned: Mapping[str, Sequence[str]]
) -> SeededBug:
    replacements = tuple(Replacement(**each) for each in bug["replacements"])
    instance = Instance(
        id=bug["id"],
        tree=with_bug(fixed, replacements),
        statement=bug["statement"].strip(),
        fail_to_pass=tuple(pinned["FAIL_TO_PASS"]),
        pass_to_pass=tuple(pinned["PASS_TO_PASS"]),
        held_out=held_out,
    )
    return SeededBug(
        instance=instance,
        project=project,
        difficulty=bug["difficulty"],
        kind=bug["kind"],
        replacements=replacements,
        fixed=fixed,
    )


def with_bug(fixed: Tree, replacements: Sequence[Replacement]) -> Tree:
    """Return a tree with replacements made, each in the only place where its text is."""
    texts = {file.path: file.content.decode() for file in fixed}
    for each in replacements:
        assert texts[each.path].count(each.fixed) == 1, f"{each.path}: {each.fixed!r} is not there exactly once"
        texts[each.path] = texts[each.path].replace(each.fixed, each.broken)
    return tuple(File(path=file.path, content=texts[file.path].encode(), executable=file.executable) for file in fixed)


def files_of(folder: Traversable, above: str = "") -> Tree:
    """Return the files below a folder of the package, without the `.txt` at the end of their names."""
    files: list[File] = []
    for each in folder.iterdir():
        path = f"{above}{each.name}"
        if each.is_dir():
            files += files_of(each, f"{path}/")
        elif each.name.endswith(".txt"):
            files.append(File(path=path.removesuffix(".txt"), content=each.read_bytes()))
    return tuple(sorted(files, key=lambda file: file.path))
