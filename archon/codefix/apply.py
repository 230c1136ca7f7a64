"""Apply a checked patch to a tree: all of it or nothing, by git, in a repository that is thrown away.

A patch names the content that each of its hunks was made for. Where the tree has that content, it is applied exactly.
Where the tree has moved on, a 3-way merge is tried if the tree that the patch was made for is given too, for instance
to put two fixes of one tree together. Nothing else is: no fuzz, no nearest place, no half of a patch.
"""

from __future__ import annotations

from archon.codefix._git import Repository, blob_name, repository, said
from archon.codefix._paths import collision, path_fault
from archon.codefix._refuse import Refuse, conflict, rejected
from archon.codefix._unified import Section, parse
from archon.codefix.types import File, Patch, Refused, Tree


def apply(tree: Tree, patch: Patch, *, base: Tree | None = None) -> Tree | Refused:
    """Return the tree with a patch in it, or why it cannot have it.

    Args:
        tree: what is to be changed; the tree given stays as it is.
        patch: as `read_patch` or `read_answer` made it; an empty text changes nothing.
        base: the tree that the patch was made for; None: only this very tree can take it.

    Raises:
        ConfigError: there is no git on this machine.
    """
    if not patch.text:
        return tree
    try:
        return _apply(tree, patch, base)
    except Refuse as refuse:
        return refuse.refused


def _apply(tree: Tree, patch: Patch, base: Tree | None) -> Tree:
    text = patch.text.encode()
    sections = parse(text.split(b"\n")[:-1], {file.path: file for file in (*tree, *(base or ()))})
    touched = {path for section in sections for path in (section.old, section.new) if path is not None}
    if touched != set(patch.paths):
        raise rejected("its text and its list of paths disagree")
    ours = {file.path: file for file in tree if file.path in touched}
    theirs = {file.path: file for file in base or () if file.path in touched}
    exact = all(_made_for(section, ours) for section in sections)
    if not exact and (base is None or not all(_made_for(section, theirs) for section in sections)):
        section = next(each for each in sections if not _made_for(each, ours))
        raise conflict(f"{section.old or section.new}: the patch was made for other content")
    with repository() as repo:
        repo.commit(main=ours.values(), base=() if exact else theirs.values())
        after = _patched(repo, text, merge=not exact)
    return _joined([file for file in tree if file.path not in touched], after, touched)


def _made_for(section: Section, files: dict[str, File]) -> bool:
    if section.old is None:
        return section.new not in files
    if section.old not in files:
        return False
    if section.blob is None:  # git leaves it out when only the mode changes
        return not section.hunks and section.binary is None
    return blob_name(files[section.old].content).startswith(section.blob)


def _patched(repo: Repository, text: bytes, *, merge: bool) -> list[File]:
    repo.git("read-tree", "refs/heads/main")
    done = repo.attempt("apply", "--cached", *(["--3way"] if merge else []), "-", stdin=text)
    if done.returncode != 0:
        raise conflict(said(done))
    entries = repo.index()
    odd = next((file.path for mode, file in entries if mode not in ("100644", "100755")), None)
    if odd is not None:
        raise rejected(f"it makes {odd!r} something other than a file")
    return [file for _, file in entries]


def _joined(untouched: list[File], after: list[File], touched: set[str]) -> Tree:
    for file in after:
        fault = path_fault(file.path) or (None if file.path in touched else "is none of its own")
        if fault is not None:
            raise rejected(f"the path {file.path[:200]!r} {fault}")
        other = collision(file.path, (each.path for each in untouched))
        if other is not None:
            raise conflict(f"{file.path!r} cannot be beside {other!r}: one is a file where the other needs a folder")
    return tuple(sorted([*untouched, *after], key=lambda each: each.path))
