"""Which relative paths a tree may hold and a patch may name. Pure text rules, the same in every place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that HFS+ leaves out when it compares names, so that `.g<U+200C>it` opens `.git` there."""
_LONGEST_NAME_BYTES = 255
_LONGEST_PATH_BYTES = 4096


def path_fault(path: str) -> str | None:
    """Say why a path cannot be in a tree, or None when it can."""
    if path.startswith("/"):
        return "is absolute"
    parts = path.split("/")
    if ".." in parts:
        return "leads out of the folder"
    if "" in parts or "." in parts:
        return "is not in its plain form"
    if any(_is_git(part) for part in parts):
        return "is git's own"
    if "\x00" in path:
        return "has a NUL character"
    try:
        lengths = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "is not UTF-8"
    if max(lengths) > _LONGEST_NAME_BYTES or sum(lengths) + len(lengths) > _LONGEST_PATH_BYTES:
        return "is too long"
    return None


def written_path_fault(path: str) -> str | None:
    """Say why a patch may not name a path: all that a tree refuses, and what only an attack would write."""
    fault = path_fault(path)
    if fault is not None:
        return fault
    if _CONTROL.search(path):
        return "has control characters"
    if path.split("/")[-1] == ".gitmodules":
        return "declares submodules"
    return None


def parents(path: str) -> Iterator[str]:
    """Yield the folders above a path, the outermost first."""
    for at, character in enumerate(path):
        if character == "/":
            yield path[:at]


def collision(path: str, others: Iterable[str]) -> str | None:
    """Return a path that cannot be beside `path`: a file where it needs a folder, or the other way round."""
    above = set(parents(path))
    return next((other for other in others if other in above or other.startswith(f"{path}/")), None)


def _is_git(part: str) -> bool:
    plain = _IGNORED_BY_HFS.sub("", part).casefold().rstrip(". ")
    return plain in (".git", "git~1") or plain.startswith((".git:", ".git\\"))
