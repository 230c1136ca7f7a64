import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from archon.codefix.swebench import load_swebench, read_rows
from archon.errors import TaskError
from archon.tasks.data_folder import Source, data_folder, find

DATA = data_folder()
PUBLISHED = find(Source(stem="swebench_instances_15", fields=(), published=""), DATA)
ROW = {
    "instance_id": "shop__books-1",
    "repo": "shop/books",
    "problem_statement": "It adds wrongly.",
    "FAIL_TO_PASS": ["tests/test_a.py::test_new"],
    "PASS_TO_PASS": '["tests/test_a.py::test_old"]',
    "patch": "the gold patch",
    "made_up_key": [1],
    "repo_path": "repo",
}
TEST_PATCH = """\
diff --git a/tests/test_a.py b/tests/test_a.py
--- a/tests/test_a.py
+++ b/tests/test_a.py
@@ -1 +1,2 @@
 def test_old(): pass
+def test_new(): assert False
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "repo" / "tests").mkdir(parents=True)
    (tmp_path / "repo" / "a.py").write_text("x = 1\n")
    (tmp_path / "repo" / "tests" / "test_a.py").write_text("def test_old(): pass\n")
    return tmp_path


def write(folder: Path, *rows: object, name: str = "set.jsonl") -> Path:
    (folder / name).write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return folder / name


def git(repo: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", *identity, *arguments], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_row_with_a_folder(folder: Path):
    (instance,) = load_swebench(write(folder, ROW))
    assert instance.id == "shop__books-1"
    assert instance.statement == "It adds wrongly."
    assert instance.fail_to_pass == ("tests/test_a.py::test_new",)
    assert instance.pass_to_pass == ("tests/test_a.py::test_old",)
    assert [file.path for file in instance.tree] == ["a.py", "tests/test_a.py"]
    assert instance.held_out == ()
    assert instance.test_command == ("python3", "-m", "pytest", "-q")
    assert "gold patch" not in repr(instance)


def test_a_json_list_and_a_single_line_are_the_same(folder: Path):
    (folder / "set.json").write_text(json.dumps([ROW], indent=2))
    assert load_swebench(folder / "set.json") == load_swebench(write(folder, ROW))


def test_the_test_patch_is_held_out_and_not_in_the_tree(folder: Path):
    (instance,) = load_swebench(write(folder, {**ROW, "test_patch": TEST_PATCH}))
    assert [(file.path, file.content) for file in instance.held_out] == [
        ("tests/test_a.py", b"def test_old(): pass\ndef test_new(): assert False\n")
    ]
    assert b"test_new" not in instance.tree[1].content


def test_a_test_patch_that_does_not_fit(folder: Path):
    path = write(folder, {**ROW, "test_patch": TEST_PATCH.replace("test_old", "test_other")})
    with pytest.raises(TaskError, match=r"set\.jsonl line 1: its test_patch does not fit"):
        load_swebench(path)


def test_an_archive(folder: Path):
    with tarfile.open(folder / "repo.tgz", "w:gz") as archive:
        archive.add(folder / "repo", "books-abc")
    row = {key: value for key, value in ROW.items() if key != "repo_path"}
    row |= {"archive": "repo.tgz", "archive_root": "books-abc", "test_command": ["pytest", "tests"]}
    (instance,) = load_swebench(write(folder, row))
    assert [file.path for file in instance.tree] == ["a.py", "tests/test_a.py"]
    assert instance.test_command == ("pytest", "tests")


def test_a_base_commit_is_read_from_history(folder: Path):
    repo = folder / "repo"
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "first")
    first = git(repo, "rev-parse", "HEAD")
    (repo / "a.py").write_text("x = 2\n")
    git(repo, "commit", "-q", "-a", "-m", "second")
    (instance,) = load_swebench(write(folder, {**ROW, "base_commit": first}))
    assert instance.tree[0].content == b"x = 1\n"
    assert (repo / "a.py").read_text() == "x = 2\n"
    with pytest.raises(TaskError, match="has no commit 'abc123'"):
        load_swebench(write(folder, {**ROW, "base_commit": "abc123"}))
    with pytest.raises(TaskError, match="hexadecimal"):
        load_swebench(write(folder, {**ROW, "base_commit": "--output=x"}))


@pytest.mark.parametrize("key", ["instance_id", "problem_statement", "FAIL_TO_PASS", "PASS_TO_PASS"])
def test_a_missing_key_is_named_with_its_line(folder: Path, key: str):
    broken = {name: value for name, value in ROW.items() if name != key}
    with pytest.raises(TaskError, match=rf"set\.jsonl line 2: no '{key}'; a row needs instance_id"):
        read_rows(write(folder, {**ROW, "instance_id": "other"}, broken))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"FAIL_TO_PASS": "not json"}, "FAIL_TO_PASS 'not json' is not a list"),
        ({"PASS_TO_PASS": [1]}, "PASS_TO_PASS"),
        ({"problem_statement": 3}, "problem_statement '3' is not a text"),
        ({"archive": "a.zip"}, "both 'repo_path' and 'archive'"),
        ({"test_command": "pytest"}, "test_command 'pytest' is not a list"),
        ({"instance_id": " "}, "is empty"),
    ],
)
def test_wrong_values(folder: Path, change: dict[str, object], message: str):
    with pytest.raises(TaskError, match=message):
        read_rows(write(folder, {**ROW, **change}))


def test_a_folder_that_is_not_there(folder: Path):
    with pytest.raises(TaskError, match=r"set\.jsonl line 1: .*'.*gone' is not a folder"):
        load_swebench(write(folder, {**ROW, "repo_path": "gone"}))


def test_an_image_alone_is_one_clear_error(folder: Path):
    row = {key: value for key, value in ROW.items() if key != "repo_path"} | {"image": "swebench/x:latest"}
    with pytest.raises(TaskError, match=r"line 1: instance 'shop__books-1' has no 'repo_path'.*own harness"):
        load_swebench(write(folder, row))


def test_a_row_twice_counts_once_and_two_of_one_id_are_refused(folder: Path):
    assert len(read_rows(write(folder, ROW, {**ROW, "source": "elsewhere"}))) == 1
    with pytest.raises(TaskError, match=r"line 2: the id 'shop__books-1' is also at set\.jsonl line 1"):
        read_rows(write(folder, ROW, {**ROW, "problem_statement": "Other."}))


def test_nothing_in_a_file(folder: Path):
    (folder / "set.jsonl").write_text("\n")
    with pytest.raises(TaskError, match="no instances in it"):
        read_rows(folder / "set.jsonl")
    (folder / "set.jsonl").write_text("[1")
    with pytest.raises(TaskError, match="begins like a JSON list"):
        read_rows(folder / "set.jsonl")


@pytest.mark.skipif(PUBLISHED is None, reason="needs the folder of public data sets")
def test_published_rows_have_this_shape_and_say_where_they_can_run():
    assert PUBLISHED is not None
    rows = read_rows(PUBLISHED)
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.fail_to_pass and row.statement and row.test_patch for row in rows)
    with pytest.raises(TaskError, match="cannot be run here"):
        load_swebench(PUBLISHED)
