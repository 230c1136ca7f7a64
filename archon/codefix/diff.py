"""Write the difference of two trees as git does: a patch that `git apply` takes back byte for byte.

Text that is not UTF-8 goes in as a binary change, so that a patch is always text that JSON can hold. A rename is
written as one file gone and one file new, which every tool can apply.
"""

from __future__ import annotations

from collections.abc import Iterable

from archon.codefix._git import changed, repository
from archon.codefix.types import File, Tree

_DIFF = (
    *("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv"),
    *("--no-color", "--src-prefix=a/", "--dst-prefix=b/", "refs/heads/before", "refs/heads/after"),
)
_ALL_BINARY = "* -diff\n"


def diff(before: Tree, after: Tree) -> str:
    """Return the patch that turns one tree into the other, empty when they are equal.

    Raises:
        ConfigError: there is no git on this machine.
    """
    paths = frozenset(changed(before, after))
    if not paths:
        return ""
    text = _diff(_only(before, paths), _only(after, paths))
    try:
        return text.decode()
    except UnicodeDecodeError:
        opaque = frozenset(file.path for file in (*before, *after) if file.path in paths and not _is_text(file))
        rest = paths - opaque
        parts = (
            _diff(_only(before, rest), _only(after, rest)),
            _diff(_only(before, opaque), _only(after, opaque), attributes=_ALL_BINARY),
        )
        return b"".join(parts).decode()


def _diff(before: Iterable[File], after: Iterable[File], *, attributes: str | None = None) -> bytes:
    with repository() as repo:
        repo.commit(before=before, after=after)
        if attributes is not None:
            repo.attributes(attributes)
        return repo.git(*_DIFF)


def _only(tree: Tree, paths: frozenset[str]) -> list[File]:
    return [file for file in tree if file.path in paths]


def _is_text(file: File) -> bool:
    try:
        file.content.decode()
    except UnicodeDecodeError:
        return False
    return True
