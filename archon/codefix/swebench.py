"""Read SWE-bench-shaped instances whose repository is at hand: a folder or an archive beside the file.

A row has the published keys (`instance_id`, `problem_statement`, `FAIL_TO_PASS`, `PASS_TO_PASS`, the last two a list or
a JSON text of one; `test_patch`, `base_commit`) and one of ours that says where the code is:

    repo_path      a folder; with history and a `base_commit` its files at that commit, else the files that lie there
    archive        a tar or zip file (`archives.py`); `archive_root` names the folder in it that is the repository

`test_command` (a list of words) is ours too and has a default. Paths are relative to the file. Other keys are allowed
and not read; the gold `patch` is among them, because an instance is what a solver may see.

The published instances have a Docker image each in place of the code. There is no way to run those here, and one error
says where they can be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archon.codefix._git import changed, repository, said
from archon.codefix._paths import path_fault
from archon.codefix._records import records, text_field
from archon.codefix.apply import apply
from archon.codefix.archives import read_archive
from archon.codefix.patch import read_patch
from archon.codefix.policy import PatchPolicy
from archon.codefix.tree import read_tree
from archon.codefix.types import File, Instance, Refused, Tree
from archon.errors import ConfigError, TaskError

_NEEDED = ("instance_id", "problem_statement", "FAIL_TO_PASS", "PASS_TO_PASS")
_ANY_FILE = PatchPolicy(tests=(), runners=())
"""A `test_patch` is the data set's own, and changes what a solver's patch may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    """One row of a file, checked, with its repository not read yet."""

    place: str
    """The file and the line or item, for error messages."""
    id: str
    statement: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    repo_path: Path | None = None
    archive: Path | None = None
    archive_root: str = ""
    base_commit: str = ""
    test_patch: str = ""
    test_command: tuple[str, ...] | None = None


def load_swebench(path: Path) -> tuple[Instance, ...]:
    """Return every instance of a file of JSON lines or of a JSON list.

    Raises:
        TaskError: the file, a row or a repository cannot be read; it names the file and the line.
    """
    return tuple(instance_of(row) for row in read_rows(path))


def read_rows(path: Path) -> tuple[InstanceRow, ...]:
    """Return the rows of a file; a row that is there twice and is the same counts once.

    Raises:
        TaskError: the file or a row cannot be read, or two rows have one id and differ.
    """
    rows: dict[str, InstanceRow] = {}
    for place, record in records(path):
        row = _row(place, record, path.parent)
        first = rows.setdefault(row.id, row)
        if _content(first) != _content(row):
            raise TaskError(f"{place}: the id {row.id!r} is also at {first.place}, with other content")
    if not rows:
        raise TaskError(f"{path.name}: no instances in it; a row needs {', '.join(_NEEDED)}")
    return tuple(rows.values())


def instance_of(row: InstanceRow) -> Instance:
    """Return a row as an instance, with its repository read.

    The files that `test_patch` adds or changes are `held_out`, as they are after it; a solver never sees them.

    Raises:
        TaskError: the repository cannot be read or the `test_patch` does not fit it, or the row names only an image.
    """
    with _at(row.place):
        tree = _repository(row)
        held_out = _held_out(tree, row) if row.test_patch.strip() else ()
    instance = Instance(
        id=row.id,
        tree=tree,
        statement=row.statement,
        fail_to_pass=row.fail_to_pass,
        pass_to_pass=row.pass_to_pass,
        held_out=held_out,
    )
    return instance if row.test_command is None else replace(instance, test_command=row.test_command)


def _row(place: str, record: dict[str, Any], folder: Path) -> InstanceRow:
    repo_path, archive = (_optional(place, record, key) for key in ("repo_path", "archive"))
    if repo_path and archive:
        raise TaskError(f"{place}: both 'repo_path' and 'archive'; give one of them")
    identity = text_field(place, record, "instance_id", needed=_NEEDED)
    if not identity.strip():
        raise TaskError(f"{place}: instance_id {identity!r} is empty")
    return InstanceRow(
        place=place,
        id=identity,
        statement=text_field(place, record, "problem_statement", needed=_NEEDED),
        fail_to_pass=_test_ids(place, record, "FAIL_TO_PASS"),
        pass_to_pass=_test_ids(place, record, "PASS_TO_PASS"),
        repo_path=folder / repo_path if repo_path else None,
        archive=folder / archive if archive else None,
        archive_root=_optional(place, record, "archive_root"),
        base_commit=_optional(place, record, "base_commit"),
        test_patch=_optional(place, record, "test_patch"),
        test_command=_command(place, record.get("test_command")),
    )


def _content(row: InstanceRow) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in InstanceRow.__slots__ if name != "place")


def _optional(place: str, record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise TaskError(f"{place}: {key} {str(value)[:60]!r} is not a text")
    return value or ""


def _test_ids(place: str, record: dict[str, Any], key: str) -> tuple[str, ...]:
    if key not in record:
        raise TaskError(f"{place}: no {key!r}; a row needs {', '.join(_NEEDED)}")
    value = record[key]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise TaskError(f"{place}: {key} {str(record[key])[:60]!r} is not a list of test ids, nor a JSON text of one")
    return tuple(dict.fromkeys(value))


def _command(place: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise TaskError(f'{place}: test_command {str(value)[:60]!r} is not a list like ["python3", "-m", "pytest"]')
    return tuple(value)


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Say where in the file an error belongs."""
    try:
        yield
    except (ConfigError, TaskError) as error:
        raise TaskError(f"{place}: {error}") from error


def _repository(row: InstanceRow) -> Tree:
    if row.archive is not None:
        return read_archive(row.archive, root=row.archive_root)
    if row.repo_path is None:
        raise TaskError(
            f"instance {row.id!r} has no 'repo_path' or 'archive', only the name of a published image or repository, "
            "which cannot be run here; it can be where Docker and a registry with the SWE-bench images are, by that "
            "project's own harness, which reads the predictions files written here"
        )
    if row.base_commit and (row.repo_path / ".git").exists():
        return _at_commit(row.repo_path, row.base_commit)
    return read_tree(row.repo_path)


def _at_commit(folder: Path, commit: str) -> Tree:
    """Return the files of a commit, read from a folder's objects; nothing in the folder is run or changed."""
    if not all(letter in "0123456789abcdefABCDEF" for letter in commit):
        raise TaskError(f"base_commit {commit!r} is not a commit's hexadecimal name")
    if not (folder / ".git").is_dir():
        raise TaskError(f"{str(folder)!r} is a linked work tree; give the repository it belongs to")
    with repository() as repo:
        borrowed = repo.git_dir / "objects" / "info" / "alternates"
        borrowed.parent.mkdir(exist_ok=True)
        borrowed.write_text(f"{(folder / '.git' / 'objects').resolve()}\n", "utf-8", "surrogateescape")
        listed = repo.attempt("ls-tree", "-r", "-z", "--full-tree", f"{commit}^{{tree}}")
        if listed.returncode != 0:
            raise TaskError(f"{str(folder)!r} has no commit {commit!r}: {said(listed)}")
        heads = [entry.split(b"\t", 1) for entry in listed.stdout.split(b"\0") if entry]
        odd = next((name for head, name in heads if head[:6] not in (b"100644", b"100755")), None)
        if odd is not None:
            raise TaskError(
                f"{str(folder)!r} holds {odd.decode('utf-8', 'replace')!r} at that commit, a link or a submodule; give "
                "a folder with the files of that commit and without history"
            )
        repo.git("read-tree", f"{commit}^{{tree}}")
        files = sorted((file for _, file in repo.index()), key=lambda file: file.path)
    return tuple(_checked(file) for file in files)


def _checked(file: File) -> File:
    fault = path_fault(file.path)
    if fault is not None:
        raise TaskError(f"the path {file.path[:200]!r} {fault}")
    return file


def _held_out(tree: Tree, row: InstanceRow) -> Tree:
    patch = read_patch(row.test_patch, tree, _ANY_FILE)
    after = patch if isinstance(patch, Refused) else apply(tree, patch)
    if isinstance(after, Refused):
        raise TaskError(f"its test_patch does not fit the repository: {after.reason}")
    paths = frozenset(changed(tree, after))
    return tuple(file for file in after if file.path in paths)
