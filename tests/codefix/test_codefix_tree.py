from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from archon.codefix.tree import read_folder, read_tree, with_files, write_tree
from archon.codefix.types import File, Tree
from archon.errors import ConfigError

FILES = {
    ".hidden": b"1",
    "a.py": b"x = 1\r\n",
    "empty": b"",
    "pkg/caf\u00e9 x.bin": b"\0\xff",
    "run.sh": b"#!/bin/sh\n",
}


def fill(folder: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def paths(tree: Tree) -> list[str]:
    return [file.path for file in tree]


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_size) for path in folder.rglob("*")}


def test_a_folder_is_read_and_written_as_it_is(tmp_path: Path) -> None:
    fill(tmp_path / "in", FILES)
    (tmp_path / "in/run.sh").chmod(0o755)
    before = snapshot(tmp_path / "in")
    tree = read_tree(tmp_path / "in")
    assert tree == tuple(
        File(path=path, content=content, executable=path == "run.sh") for path, content in sorted(FILES.items())
    )
    assert snapshot(tmp_path / "in") == before
    write_tree(tree, tmp_path / "out")
    assert read_tree(tmp_path / "out") == tree


def test_without_git_caches_version_control_and_environments_are_left_out(tmp_path: Path) -> None:
    names = (".hg/x", ".svn/x", "__pycache__/a.pyc", "p/.pytest_cache/x", "node_modules/x/y.js", "my env/lib/z.py")
    fill(tmp_path, {**FILES, **dict.fromkeys(names, b"x"), "my env/pyvenv.cfg": b""})
    assert paths(read_tree(tmp_path)) == sorted(FILES)


def test_in_a_work_tree_what_is_ignored_is_left_out_unless_tracked(tmp_path: Path) -> None:
    fill(tmp_path, {**FILES, "kept.log": b"", ".gitignore": b"*.log\n/out/\n", "p/.gitignore": b"*.tmp\n"})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-f", "kept.log", "a.py", "run.sh")
    fill(tmp_path, {"new.log": b"", "out/x": b"", "p/x.tmp": b"", "__pycache__/a.pyc": b"", "excluded": b""})
    (tmp_path / ".git/info").mkdir(exist_ok=True)
    (tmp_path / ".git/info/exclude").write_text("excluded\n")
    (tmp_path / "run.sh").unlink()
    before = snapshot(tmp_path)
    expected = sorted({*FILES, "kept.log", ".gitignore", "p/.gitignore"} - {"run.sh"})
    assert paths(read_tree(tmp_path)) == expected
    assert snapshot(tmp_path) == before


def test_a_folder_inside_a_work_tree_is_read_by_the_same_rules(tmp_path: Path) -> None:
    fill(tmp_path, {".gitignore": b"*.log\nbuild/\n", "sub/a.py": b"", "sub/x.log": b"", "build/copy/x.log": b"1"})
    git(tmp_path, "init", "-q")
    assert paths(read_tree(tmp_path / "sub")) == ["a.py"]
    assert paths(read_tree(tmp_path / "build/copy")) == ["x.log"]  # ignored as a whole, and asked for by name


@pytest.mark.parametrize("setting", ["fsmonitor", "hooksPath", "excludesFile", "sshCommand", "pager"])
def test_nothing_of_the_work_tree_s_configuration_runs(tmp_path: Path, setting: str) -> None:
    fill(tmp_path / "r", FILES)
    git(tmp_path / "r", "init", "-q")
    git(tmp_path / "r", "add", "a.py")
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    script.chmod(0o755)
    (tmp_path / "r/.gitattributes").write_text("* filter=evil diff=evil\n")
    with (tmp_path / "r/.git/config").open("a") as config:
        config.write(f'[core]\n\t{setting} = {script}\n[filter "evil"]\n\tclean = {script}\n\tsmudge = {script}\n')
        config.write(f"[include]\n\tpath = {script}\n[alias]\n\tls-files = !{script}\n")
    assert paths(read_tree(tmp_path / "r")) == sorted([*FILES, ".gitattributes"])
    assert not (tmp_path / "ran").exists()


def test_the_configuration_really_would_run(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    script = tmp_path / ".git/evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/.git/ran\n")
    script.chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(script))
    git(tmp_path, "ls-files", "--others")
    assert (tmp_path / ".git/ran").exists()


def test_a_linked_work_tree_is_read(tmp_path: Path) -> None:
    fill(tmp_path / "main", {"a.py": b"1", ".gitignore": b"*.log\n"})
    git(tmp_path / "main", "init", "-q")
    git(tmp_path / "main", "add", ".")
    git(tmp_path / "main", "commit", "-q", "-m", "x")
    git(tmp_path / "main", "worktree", "add", "-q", "../linked")
    fill(tmp_path / "linked", {"x.log": b"", "new.py": b""})
    assert paths(read_tree(tmp_path / "linked")) == [".gitignore", "a.py", "new.py"]


def test_a_nested_repository_is_read_as_files_and_closed(tmp_path: Path) -> None:
    fill(tmp_path, {"a.py": b"", "sub/b.py": b"", "sub/.gitignore": b"*.log\n", "sub/x.log": b""})
    git(tmp_path / "sub", "init", "-q")
    git(tmp_path, "init", "-q")
    git(tmp_path / "sub", "add", ".")
    git(tmp_path / "sub", "commit", "-q", "-m", "x")
    git(tmp_path, "add", ".")
    folder = read_folder(tmp_path)
    assert paths(folder.tree) == ["a.py", "sub/.gitignore", "sub/b.py"]
    assert folder.closed == ("sub",)


@pytest.mark.parametrize("with_git", [True, False])
def test_a_link_to_a_file_inside_is_a_copy_and_closed(tmp_path: Path, *, with_git: bool) -> None:
    fill(tmp_path, {"docs/a.md": b"hello"})
    (tmp_path / "README.md").symlink_to("docs/a.md")
    if with_git:
        git(tmp_path, "init", "-q")
    folder = read_folder(tmp_path)
    assert folder.tree == (File(path="README.md", content=b"hello"), File(path="docs/a.md", content=b"hello"))
    assert folder.closed == ("README.md",)


@pytest.mark.parametrize("with_git", [True, False])
def test_everything_that_a_tree_cannot_hold_is_named_in_one_error(tmp_path: Path, *, with_git: bool) -> None:
    (tmp_path / "secret").write_text("secret")
    root = tmp_path / "r"
    fill(root, {"ok": b"", "d/x": b""})
    if with_git:
        git(root, "init", "-q")
    (root / "outside").symlink_to(tmp_path / "secret")
    (root / "dangling").symlink_to("nowhere")
    (root / "folder").symlink_to("d")
    (root / "own").symlink_to("own")
    with pytest.raises(ConfigError) as caught:
        read_tree(root)
    message = str(caught.value)
    assert all(f"'{name}' is a symlink" in message for name in ("outside", "dangling", "folder", "own"))
    assert "\n" not in message
    assert paths(read_tree(root, leave_out=["outside", "dangling", "fold*", "own"])) == ["d/x", "ok"]


def test_a_tracked_file_behind_a_link_that_leads_out_is_not_read(tmp_path: Path) -> None:
    fill(tmp_path, {"r/d/x": b"ours", "out/x": b"secret"})
    git(tmp_path / "r", "init", "-q")
    git(tmp_path / "r", "add", ".")
    (tmp_path / "r/d/x").unlink()
    (tmp_path / "r/d").rmdir()
    (tmp_path / "r/d").symlink_to(tmp_path / "out")
    with pytest.raises(ConfigError, match="'d/x' is behind a symlink|'d' is a symlink"):
        read_tree(tmp_path / "r")


def test_a_special_file_is_an_error_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="'pipe' is not a regular file"):
        read_tree(tmp_path)


def test_a_name_that_is_not_utf_8_is_an_error_that_shows_it(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/bad\xff.py", "wb"):
        pass
    with pytest.raises(ConfigError, match=r"'bad\\udcff.py' is not UTF-8") as caught:
        read_tree(tmp_path)
    str(caught.value).encode()
    assert read_tree(tmp_path, leave_out=["bad*"]) == ()


def test_sizes_are_limited(tmp_path: Path) -> None:
    fill(tmp_path, {"a": b"12345", "b": b"12345"})
    assert len(read_tree(tmp_path, most_bytes=10, most_files=2)) == 2
    with pytest.raises(ConfigError, match=r"more than 9 bytes of files \('b' alone has 5\)"):
        read_tree(tmp_path, most_bytes=9)
    with pytest.raises(ConfigError, match="more than 1 files"):
        read_tree(tmp_path, most_files=1)


def test_what_is_no_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        read_tree(tmp_path / "nowhere")


@pytest.mark.parametrize("path", ["../x", "/x", ".git/config", "a/../b", "a//b", "", "x\0y"])
def test_a_tree_with_a_path_that_leads_elsewhere_is_not_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError):
        write_tree((File(path="ok", content=b""), File(path=path, content=b"")), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_tree_is_written_into_an_empty_folder_only(tmp_path: Path) -> None:
    fill(tmp_path, {"x": b""})
    with pytest.raises(ConfigError, match="is not empty"):
        write_tree((), tmp_path)
    with pytest.raises(ConfigError, match="needs it to be a folder"):
        write_tree((File(path="a", content=b""), File(path="a/b", content=b"")), tmp_path / "out")


def test_files_are_added_and_replaced_and_win_over_what_is_in_their_way() -> None:
    tree = (File(path="a", content=b"1"), File(path="d/x", content=b"2"), File(path="z", content=b"3"))
    added = [File(path="z", content=b"4"), File(path="b", content=b"5"), File(path="d", content=b"6")]
    assert with_files(tree, added) == (tree[0], added[1], added[2], added[0])
    below = File(path="a/b/c", content=b"7")
    assert with_files(tree, [below]) == (below, tree[1], tree[2])
    assert with_files(tree, []) == tree
    with pytest.raises(ConfigError, match="cannot both"):
        with_files(tree, [below, File(path="a/b", content=b"")])
    with pytest.raises(ConfigError, match="leads out"):
        with_files(tree, [File(path="../x", content=b"")])
