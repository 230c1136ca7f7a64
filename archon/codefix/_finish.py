"""Make the checked patch out of two trees: the last step of every way of reading a model's change."""

from __future__ import annotations

from collections.abc import Iterable

from archon.codefix._git import changed
from archon.codefix._refuse import Refuse, rejected
from archon.codefix.diff import diff
from archon.codefix.policy import PatchPolicy
from archon.codefix.types import Form, Patch, Tree


def finished(
    before: Tree,
    after: Tree,
    *,
    policy: PatchPolicy,
    form: Form,
    repairs: Iterable[str] = (),
    dropped: Iterable[str] = (),
) -> Patch:
    """Return the patch from one tree to another.

    Raises:
        Refuse: it is empty although nothing was dropped, or it is too large.
    """
    paths, left_out = changed(before, after), tuple(sorted(set(dropped)))
    if not paths and not left_out:
        raise Refuse("empty_patch", "it changes nothing")
    check_result(before, after, policy)
    was = {file.path: file.executable for file in before}
    return Patch(
        text=diff(before, after),
        paths=paths,
        repairs=tuple(sorted(set(repairs))),
        dropped=left_out,
        modes=tuple(file.path for file in after if was.get(file.path, file.executable) != file.executable),
        form=form,
    )


def check_result(before: Tree, after: Tree, policy: PatchPolicy) -> None:
    """Refuse a change of too many files, or to too many bytes.

    Raises:
        Refuse: it is too large.
    """
    paths = frozenset(changed(before, after))
    if len(paths) > policy.most_files:
        raise rejected(f"it changes {len(paths)} files; at most {policy.most_files} are allowed")
    size = sum(len(file.content) for file in after if file.path in paths)
    if size > policy.most_result_bytes:
        raise rejected(f"the files it changes come to {size} bytes; at most {policy.most_result_bytes} are allowed")
