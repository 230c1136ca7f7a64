"""Read a folder into a tree and write a tree into a folder. Reading never changes the folder and never leaves it.

In a git work tree the files are those that git would look at: tracked ones and new ones that are not ignored. git is
asked through a configuration of ours and a copy of the index, so that nothing in the folder's own configuration runs
(`core.fsmonitor` alone is a command). Elsewhere everything counts but version control, caches and virtual environments.
A symlink to a file inside becomes a copy of that file; what a tree cannot hold is an error that names it.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from archon.codefix._git import repository, said
from archon.codefix._paths import collision, parents, path_fault
from archon.codefix.types import File, Tree
from archon.errors import ConfigError

MOST_BYTES = 200_000_000
"""Every candidate's tests get a copy of the tree in memory."""
MOST_FILES = 50_000

_VERSION_CONTROL = (".git", ".hg", ".svn", ".bzr", "_darcs", "CVS", ".jj")
_CACHES = (
    *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"),
    *(".tox", ".nox", ".eggs", ".venv", "node_modules"),
)
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """What a folder holds."""

    tree: Tree
    closed: tuple[str, ...]
    """Symlinks and nested repositories: in the tree as files, but not a patch's to change (`PatchPolicy.links`)."""


def read_tree(
    folder: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES, leave_out: Sequence[str] = ()
) -> Tree:
    """Return the files of a folder; see `read_folder`."""
    return read_folder(folder, most_bytes=most_bytes, most_files=most_files, leave_out=leave_out).tree


def read_folder(
    folder: Path, *, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES, leave_out: Sequence[str] = ()
) -> Folder:
    """Return the files of a folder, and which of them a patch must not change.

    Args:
        folder: a git work tree, a folder inside one, or any other folder.
        most_bytes: of all files together.
        most_files: how many there may be.
        leave_out: patterns of relative paths that are not read, in which `*` matches `/` too: `data/*`, `*.bin`.

    Raises:
        ConfigError: it is no folder, it is too large, or a tree cannot hold everything in it.
    """
    if not folder.is_dir():
        raise ConfigError(f"{str(folder)!r} is not a folder")
    reader = _Reader(root=Path(os.path.realpath(folder)), most_bytes=most_bytes, most_files=most_files)
    for path in sorted(set(_paths(reader.root, reader))):
        if not any(fnmatchcase(path, pattern) for pattern in leave_out):
            reader.read(path)
    if reader.faults:
        more = f" and {len(reader.faults) - _SHOWN} more" if len(reader.faults) > _SHOWN else ""
        shown = "; ".join(reader.faults[:_SHOWN])
        raise ConfigError(f"{str(folder)!r} holds what a tree cannot: {shown}{more}. Leave such paths out by pattern")
    return Folder(tree=tuple(reader.files), closed=tuple(sorted(reader.closed)))


def write_tree(tree: Tree, folder: Path) -> None:
    """Write a tree's files into a folder that is empty or not there yet.

    Raises:
        ConfigError: the folder is not empty, or a path has no place in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(f"{str(folder)!r} is not empty")
    for file in tree:
        fault = path_fault(file.path)
        if fault is not None:
            raise ConfigError(f"the path {file.path!r} {fault}")
    paths = {file.path for file in tree}
    for file in tree:
        above = next((each for each in parents(file.path) if each in paths), None)
        if above is not None:
            raise ConfigError(f"{above!r} is a file and {file.path!r} needs it to be a folder")
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as stream:
            stream.write(file.content)
        target.chmod(0o755 if file.executable else 0o644)


def with_files(tree: Tree, files: Iterable[File]) -> Tree:
    """Return a tree with these files added or put in the place of others.

    They win: a file where one of them needs a folder, and everything below one of them, goes.
    """
    added = {file.path: file for file in files}
    for path in added:
        fault = path_fault(path)
        if fault is not None:
            raise ConfigError(f"the path {path!r} {fault}")
        other = collision(path, added)
        if other is not None:
            raise ConfigError(f"{path!r} and {other!r} cannot both be files of one tree")
    in_the_way = {above for path in added for above in parents(path)}
    kept = [
        file
        for file in tree
        if file.path not in added
        and file.path not in in_the_way
        and not any(above in added for above in parents(file.path))
    ]
    return tuple(sorted([*kept, *added.values()], key=lambda file: file.path))


@dataclass(slots=True, kw_only=True)
class _Reader:
    root: Path
    most_bytes: int
    most_files: int
    files: list[File] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    bytes_read: int = 0
    inside: dict[str, bool] = field(default_factory=dict)
    """By folder: whether it is where its path says, and not behind a symlink."""

    def read(self, path: str) -> None:
        fault = path_fault(path) or ("is behind a symlink" if not self._is_inside(os.path.dirname(path)) else None)
        if fault is not None:
            self.faults.append(f"{path!r} {fault}")
            return
        full = self.root / path
        try:
            status = full.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return  # tracked and deleted
        if stat.S_ISLNK(status.st_mode):
            target = Path(os.path.realpath(full))
            if (
                not target.is_relative_to(self.root)
                or not target.is_file()
                or ".git" in target.relative_to(self.root).parts
            ):
                self.faults.append(f"{path!r} is a symlink that does not lead to a file in the folder")
                return
            self.closed.append(path)
            full, status = target, target.lstat()
        if not stat.S_ISREG(status.st_mode):
            self.faults.append(f"{path!r} is not a regular file")
            return
        self._add(path, full, status)

    def _add(self, path: str, full: Path, status: os.stat_result) -> None:
        if len(self.files) == self.most_files:
            raise ConfigError(f"{str(self.root)!r} has more than {self.most_files} files; leave some out by pattern")
        if self.bytes_read + status.st_size > self.most_bytes:
            raise ConfigError(
                f"{str(self.root)!r} has more than {self.most_bytes} bytes of files ({path!r} alone has "
                f"{status.st_size}); leave some out by pattern"
            )
        try:
            descriptor = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            self.faults.append(f"{path!r} cannot be read ({error.strerror})")
            return
        with open(descriptor, "rb") as stream:
            content = stream.read(self.most_bytes - self.bytes_read + 1)
        self.bytes_read += len(content)
        self.files.append(File(path=path, content=content, executable=bool(status.st_mode & stat.S_IXUSR)))

    def _is_inside(self, parent: str) -> bool:
        if parent not in self.inside:
            full = os.path.join(self.root, parent) if parent else str(self.root)
            self.inside[parent] = os.path.realpath(full) == full
        return self.inside[parent]


def _paths(root: Path, reader: _Reader) -> list[str]:
    """Return the relative paths of what is to be read below a folder, nested repositories included."""
    top = next((each for each in (root, *root.parents) if (each / ".git").exists()), None)
    listed = _listed_by_git(root, top) if top is not None else []
    if not listed:  # no repository, or one that ignores this very folder
        return list(_walked(root))
    paths = list[str]()
    for path in listed:
        inner = root / path
        if inner.is_symlink() or not inner.is_dir():
            paths.append(path)
            continue
        plain = path.rstrip("/")
        nested = _paths(inner, reader) if (inner / ".git").exists() else list(_walked(inner))
        reader.closed.extend([plain] if nested else [])
        paths += [f"{plain}/{each}" for each in nested]
    return paths


def _listed_by_git(root: Path, top: Path) -> list[str]:
    with repository(top) as repo:
        _borrow_index(top, repo.git_dir)
        skip = [argument for name in _CACHES for argument in ("-x", f"{name}/")]
        prefix = f"{root.relative_to(top).as_posix()}/" if root != top else ""
        below = ["--", prefix] if prefix else []
        arguments = ("ls-files", "--cached", "--others", "--exclude-standard", *skip, "-z", *below)
        done = repo.attempt(*arguments)
    if done.returncode != 0:
        raise ConfigError(f"git cannot list the files of {str(top)!r}: {said(done)}")
    names = [os.fsdecode(name).removeprefix(prefix) for name in done.stdout.split(b"\0") if name]
    return [name for name in names if name]


def _borrow_index(top: Path, git_dir: Path) -> None:
    """Give our repository a copy of a work tree's index and of what it excludes, and sight of its objects."""
    own = top / ".git"
    if own.is_file():
        written = re.match(r"gitdir: (.*)", own.read_text("utf-8", "surrogateescape"))
        own = top / (written.group(1) if written is not None else ".git")
    common = own
    if (own / "commondir").is_file():
        common = own / (own / "commondir").read_text("utf-8", "surrogateescape").strip()
    for source in (own / "index", *own.glob("sharedindex.*")):
        if source.is_file():
            shutil.copyfile(source, git_dir / source.name)
    if (common / "info" / "exclude").is_file():
        shutil.copyfile(common / "info" / "exclude", git_dir / "info" / "exclude")
    (git_dir / "objects" / "info").mkdir()  # a sparse index is spelled out from tree objects
    (git_dir / "objects" / "info" / "alternates").write_text(f"{common / 'objects'}\n", "utf-8", "surrogateescape")


def _walked(root: Path) -> Iterator[str]:
    for folder, names, files in os.walk(root):
        here = Path(folder)
        names[:] = sorted(name for name in names if _is_read(here / name))
        links = [name for name in names if (here / name).is_symlink()]
        for name in (*(name for name in files if name not in _VERSION_CONTROL), *links):
            yield (here / name).relative_to(root).as_posix()


def _is_read(folder: Path) -> bool:
    if folder.name in _VERSION_CONTROL or folder.name in _CACHES:
        return False
    return not (folder / "pyvenv.cfg").is_file()
