from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from archon.codefix._git import repository
from archon.codefix.apply import apply
from archon.codefix.diff import diff
from archon.codefix.patch import read_patch
from archon.codefix.types import File, Patch, Refused, Tree
from archon.errors import ConfigError

LINES = "".join(f"line {n}\n" for n in range(1, 21)).encode()
BASE: Tree = (File(path="a.txt", content=LINES), File(path="b.txt", content=b"b\n"))


def changed(tree: Tree, old: bytes, new: bytes) -> Tree:
    return tuple(replace(file, content=file.content.replace(old, new)) for file in tree)


def patch_of(before: Tree, after: Tree) -> Patch:
    patch = read_patch(diff(before, after), before)
    assert isinstance(patch, Patch)
    return patch


TOP = patch_of(BASE, changed(BASE, b"line 2\n", b"line two\n"))


def test_a_patch_fits_the_tree_that_it_was_made_for() -> None:
    assert apply(BASE, TOP) == changed(BASE, b"line 2\n", b"line two\n")


def test_what_the_patch_does_not_touch_may_differ() -> None:
    moved_on = changed(BASE, b"b\n", b"c\n")
    assert apply(moved_on, TOP) == changed(moved_on, b"line 2\n", b"line two\n")


def test_89_a_tree_that_has_moved_on_is_merged_with_the_base_and_a_conflict_without() -> None:
    moved_on = changed(BASE, b"line 18\n", b"more\nline eighteen\n")
    refusal = apply(moved_on, TOP)
    assert isinstance(refusal, Refused)
    assert (refusal.status, refusal.reason) == ("patch_conflict", "a.txt: the patch was made for other content")
    assert apply(moved_on, TOP, base=BASE) == changed(moved_on, b"line 2\n", b"line two\n")


def test_89_a_merge_puts_lines_where_they_belong_and_not_at_the_nearest_copy() -> None:
    block = b"start\nx = 1\nend\n"
    base = (File(path="a", content=block + b"--\n" * 20 + block),)
    fix = patch_of(base, (File(path="a", content=block + b"--\n" * 20 + block.replace(b"1", b"2")),))
    moved_on = (File(path="a", content=b"new\n" * 23 + base[0].content),)
    after = apply(moved_on, fix, base=base)
    assert after == (File(path="a", content=b"new\n" * 23 + block + b"--\n" * 20 + block.replace(b"1", b"2")),)


def test_two_changes_of_one_line_are_a_conflict_and_nothing_is_half_applied() -> None:
    both = patch_of(BASE, changed(changed(BASE, b"line 2\n", b"line two\n"), b"b\n", b"c\n"))
    moved_on = changed(BASE, b"line 2\n", b"line zwei\n")
    refusal = apply(moved_on, both, base=BASE)
    assert isinstance(refusal, Refused)
    assert refusal.status == "patch_conflict"
    assert moved_on[1].content == b"b\n"


def test_a_base_that_is_not_the_patch_s_is_a_conflict() -> None:
    moved_on = changed(BASE, b"line 18\n", b"x\n")
    assert isinstance(apply(moved_on, TOP, base=changed(BASE, b"line 9\n", b"y\n")), Refused)


@pytest.mark.parametrize("base", [None, BASE])
def test_a_file_that_is_gone_or_there_already_is_a_conflict(base: Tree | None) -> None:
    without = BASE[1:]
    made = patch_of(without, BASE)
    for tree, patch in ((without, TOP), (BASE, made)):
        refusal = apply(tree, patch, base=base)
        assert isinstance(refusal, Refused)
        assert refusal.status == "patch_conflict"


def test_a_new_file_where_the_tree_has_a_folder_is_a_conflict() -> None:
    made = patch_of((), (File(path="pkg", content=b"x\n"),))
    assert isinstance(apply((File(path="pkg/x.py", content=b""),), made), Refused)
    inside = patch_of((), (File(path="pkg/x.py", content=b"x\n"),))
    assert isinstance(apply((File(path="pkg", content=b""),), inside), Refused)


def test_the_mode_changes_alone() -> None:
    after = (replace(BASE[0], executable=True), BASE[1])
    patch = patch_of(BASE, after)
    assert patch.modes == ("a.txt",)
    assert apply(BASE, patch) == after


def test_no_text_changes_nothing() -> None:
    assert apply(BASE, Patch(text="", paths=(), dropped=("conftest.py",))) == BASE


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-line 1\n+one\n", ("a.txt",)),  # names no content
        (TOP.text, ("b.txt",)),
        ("diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n", ("l",)),
        ("diff --git a/../l b/../l\nnew file mode 100644\n--- /dev/null\n+++ b/../l\n@@ -0,0 +1 @@\n+x\n", ("../l",)),
        (
            "diff --git a/.git/l b/.git/l\nnew file mode 100644\n--- /dev/null\n+++ b/.git/l\n@@ -0,0 +1 @@\n+x\n",
            (".git/l",),
        ),
    ],
)
def test_a_patch_that_was_not_read_first_cannot_do_more(text: str, paths: tuple[str, ...]) -> None:
    assert isinstance(apply(BASE, Patch(text=text, paths=paths)), Refused)


def test_without_git_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="git is not installed"):
        apply(BASE, TOP)


def test_96_the_repository_has_no_history_remote_or_hook_and_goes_away() -> None:
    with repository() as repo:
        repo.commit(main=BASE)
        assert repo.git("rev-list", "--all", "--count").split() == [b"1"]
        assert repo.git("remote") == b""
        assert not (repo.git_dir / "hooks").exists()
        settings = repo.git("config", "--list", "--show-origin").decode().splitlines()
        assert all(line.startswith(f"file:{repo.git_dir}/config\t") for line in settings)
        assert list(repo.work_tree.iterdir()) == []
        kept = repo.git_dir
    assert not kept.exists()
