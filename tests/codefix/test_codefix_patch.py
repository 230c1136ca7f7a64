"""The adversarial corpus of patches, each with its verdict, and what is mended."""

from __future__ import annotations

import base64
import subprocess
import time
import zlib
from dataclasses import replace

import pytest

from archon.codefix._git import blob_name
from archon.codefix.apply import apply
from archon.codefix.patch import read_patch
from archon.codefix.policy import PatchPolicy
from archon.codefix.types import File, Patch, Refused, Tree

CALC = b"def add(a, b):\n    return a - b\n\n\ndef twice(a):\n    return a + a\n"
FIXED = CALC.replace(b"a - b", b"a + b")
TEST = b"from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
FIX = f"""\
--- a/calc.py
+++ b/calc.py
@@ -1,5 +1,5 @@
 def add(a, b):
-    return a - b
+    return a + b
{" "}
{" "}
 def twice(a):
"""


def tree_of(**files: bytes) -> Tree:
    return tuple(File(path=path, content=content) for path, content in sorted(files.items()))


TREE = tuple(
    File(path=path, content=content)
    for path, content in (
        ("calc.py", CALC),
        ("conftest.py", b"# settings\n"),
        ("docs/read me.txt", b"hello\n"),
        ("tests/test_calc.py", TEST),
    )
)


def content(tree: Tree | Refused, path: str) -> bytes:
    assert not isinstance(tree, Refused), tree
    return {file.path: file.content for file in tree}[path]


def paths(tree: Tree | Refused) -> list[str]:
    assert not isinstance(tree, Refused), tree
    return [file.path for file in tree]


def good(text: str, tree: Tree = TREE, policy: PatchPolicy | None = None) -> Patch:
    patch = read_patch(text, tree, policy or PatchPolicy())
    assert isinstance(patch, Patch), patch
    return patch


def refused(text: str, tree: Tree = TREE, policy: PatchPolicy | None = None) -> Refused:
    refusal = read_patch(text, tree, policy or PatchPolicy())
    assert isinstance(refusal, Refused), refusal
    assert "\n" not in refusal.reason or "nearest" in refusal.reason
    return refusal


def new_file(path: str, *lines: str, mode: str = "100644") -> str:
    body = "".join(f"+{line}\n" for line in lines)
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n"
        + body
    )


def test_a_plain_fix_is_read_and_applied() -> None:
    patch = good(FIX)
    assert (patch.paths, patch.repairs, patch.dropped, patch.form) == (("calc.py",), (), (), "diff")
    assert patch.text.startswith("diff --git a/calc.py b/calc.py\nindex ")
    assert content(apply(TREE, patch), "calc.py") == FIXED
    assert content(TREE, "calc.py") == CALC


# Cases 63 to 70: patches of the tests and of what runs them.


@pytest.mark.parametrize(
    "path",
    [
        *("pkg/conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", "pyproject.toml", "noxfile.py"),
        *("sitecustomize.py", "usercustomize.py", "evil.pth", "x.egg-info/entry_points.txt", "x.dist-info/RECORD"),
        *("pytest.py", "_pytest/runner.py", ".coveragerc"),
    ],
)
def test_63_to_65_a_new_runner_file_is_dropped_and_nothing_is_left(path: str) -> None:
    patch = good(new_file(path, "import os"))
    assert (patch.text, patch.paths, patch.dropped) == ("", (), (path,))
    assert apply(TREE, patch) == TREE


def test_63_an_edit_of_a_runner_file_is_dropped_even_where_it_does_not_fit() -> None:
    text = FIX + "--- a/conftest.py\n+++ b/conftest.py\n@@ -1 +1,2 @@\n # not there\n+import os\n"
    patch = good(text)
    assert (patch.paths, patch.dropped) == (("calc.py",), ("conftest.py",))


def test_66_an_edit_of_a_test_is_dropped() -> None:
    edit = "--- a/tests/test_calc.py\n+++ b/tests/test_calc.py\n@@ -4,2 +4,2 @@\n def test_add():\n"
    edit += "-    assert add(1, 2) == 3\n+    assert True\n"
    assert good(edit).dropped == ("tests/test_calc.py",)
    assert good(edit).text == ""
    both = good(edit + FIX)
    assert both.paths == ("calc.py",)
    assert content(apply(TREE, both), "tests/test_calc.py") == TEST


def test_67_deleting_or_renaming_a_test_is_dropped() -> None:
    body = "".join(f"-{line}\n" for line in TEST.decode().splitlines())
    gone = f"--- a/tests/test_calc.py\n+++ /dev/null\n@@ -1,5 +0,0 @@\n{body}"
    moved = "diff --git a/tests/test_calc.py b/old.txt\nsimilarity index 100%\n"
    moved += "rename from tests/test_calc.py\nrename to old.txt\n"
    assert good(gone).dropped == ("tests/test_calc.py",)
    assert good(moved).dropped == ("old.txt", "tests/test_calc.py")
    assert good(moved).text == ""


def test_67_writing_a_test_anew_as_if_it_were_not_there_is_dropped() -> None:
    assert good(new_file("tests/test_calc.py", "x = 1")).dropped == ("tests/test_calc.py",)


def test_69_a_new_test_stays_in_the_patch() -> None:
    patch = good(FIX + new_file("tests/test_more.py", "def test_it(): pass"))
    assert patch.paths == ("calc.py", "tests/test_more.py")
    assert patch.dropped == ()


def test_70_a_fix_with_a_change_of_settings_keeps_the_fix() -> None:
    patch = good(FIX + "--- a/conftest.py\n+++ b/conftest.py\n@@ -1 +1,2 @@\n # settings\n+X = 1\n")
    assert (patch.paths, patch.dropped) == (("calc.py",), ("conftest.py",))


# Cases 72 to 79: places that nothing may write to.


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../evil.py", "leads out"),
        ("pkg/../../evil.py", "leads out"),
        ("/etc/evil", "is absolute"),
        ("pkg/./x.py", "plain form"),
        ("pkg//x.py", "plain form"),
        (".git/hooks/post-checkout", "git's own"),
        ("sub/.git/config", "git's own"),
        (".GIT/config", "git's own"),
        ("git~1/config", "git's own"),
        (".git./config", "git's own"),
        (".g\u200cit/config", "git's own"),
        (".gitmodules", "submodules"),
        ("a" * 256, "too long"),
    ],
)
@pytest.mark.parametrize("with_git_header", [True, False])
def test_72_73_78_a_path_out_of_the_tree_is_rejected(path: str, why: str, *, with_git_header: bool) -> None:
    text = new_file(path, "x")
    text = text if with_git_header else text[text.index("--- ") :]
    refusal = refused(text)
    assert refusal.status == "patch_rejected"
    assert why in refusal.reason


@pytest.mark.parametrize("text", ["--- a/../calc.py\n+++ b/calc.py\n", "--- a/calc.py\n+++ b/../calc.py\n"])
def test_72_both_names_are_checked(text: str) -> None:
    assert refused(text + FIX.split("\n", 2)[2]).status == "patch_rejected"


def test_72_a_rename_out_of_the_tree_is_rejected() -> None:
    text = "diff --git a/calc.py b/calc.py\nrename from calc.py\nrename to ../calc.py\n"
    assert refused(text).status == "patch_rejected"


def test_74_a_path_through_a_link_of_the_folder_is_rejected() -> None:
    refusal = refused(new_file("link/new.py", "x"), policy=PatchPolicy(links=("link",)))
    assert refusal.status == "patch_rejected"
    assert "'link'" in refusal.reason
    assert refused(FIX, policy=PatchPolicy(links=("calc.py",))).status == "patch_rejected"
    assert good(new_file("linked/new.py", "x"), policy=PatchPolicy(links=("link",)))


LINK = "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+{}\n"
LINK += "\\ No newline at end of file\n"


@pytest.mark.parametrize("target", ["/etc/passwd", "calc.py"])
def test_75_76_a_symlink_is_rejected_with_all_that_goes_with_it(target: str) -> None:
    link = LINK.format(target)
    for text in (link, link + new_file("link/x.py", "x"), FIX + link):
        refusal = refused(text)
        assert refusal.status == "patch_rejected"
        assert "symlink" in refusal.reason


@pytest.mark.parametrize(
    "header",
    [
        "old mode 100644\nnew mode 120000\n",
        "deleted file mode 120000\n",
        "index 1234567..89abcde 120000\n",
        "old mode 120000\nnew mode 100644\n",
    ],
)
def test_76_a_symlink_in_any_other_form_is_rejected(header: str) -> None:
    refusal = refused(f"diff --git a/calc.py b/calc.py\n{header}")
    assert (refusal.status, "symlink" in refusal.reason) == ("patch_rejected", True)


@pytest.mark.parametrize("header", ["new file mode 160000\n", "index 1234567..89abcde 160000\n"])
def test_77_a_submodule_is_rejected(header: str) -> None:
    text = f"diff --git a/sub b/sub\n{header}--- /dev/null\n+++ b/sub\n@@ -0,0 +1 @@\n+Subproject commit {'a' * 40}\n"
    refusal = refused(text)
    assert (refusal.status, "submodule" in refusal.reason) == ("patch_rejected", True)


def test_an_odd_file_mode_is_rejected() -> None:
    refusal = refused(new_file("x.py", "x", mode="104755"))
    assert (refusal.status, "104755" in refusal.reason) == ("patch_rejected", True)


@pytest.mark.parametrize(
    "names", ["--- a/calc.py\n+++ b/other.py\n", "--- a/calc.py.orig\n+++ b/calc.py\n", "--- calc.py\n+++ b/calc.py\n"]
)
def test_79_names_that_differ_are_rejected(names: str) -> None:
    for header in ("", "diff --git a/calc.py b/calc.py\n"):
        refusal = refused(header + names + FIX.split("\n", 2)[2])
        assert refusal.status == "patch_rejected"
        assert "differ" in refusal.reason


def test_79_a_git_rename_without_its_lines_is_rejected() -> None:
    assert refused("diff --git a/calc.py b/other.py\n").status == "patch_rejected"


def test_a_rename_with_a_change_is_applied() -> None:
    text = "diff --git a/calc.py b/pkg/sum.py\nsimilarity index 90%\nrename from calc.py\nrename to pkg/sum.py\n"
    after = apply(TREE, good(text + FIX.replace("b/calc.py", "b/pkg/sum.py")))
    assert content(after, "pkg/sum.py") == FIXED
    assert "calc.py" not in paths(after)


def test_a_copy_leaves_the_old_file() -> None:
    text = "diff --git a/calc.py b/sum.py\nsimilarity index 100%\ncopy from calc.py\ncopy to sum.py\n"
    after = apply(TREE, good(text))
    assert content(after, "sum.py") == content(after, "calc.py") == CALC


# Cases 80 to 84: mended and recorded.


def test_80_a_crlf_patch_on_an_lf_file_is_normalised() -> None:
    patch = good(FIX.replace("\n", "\r\n"))
    assert patch.repairs == ("line ends",)
    assert content(apply(TREE, patch), "calc.py") == FIXED


def test_80_crlf_in_the_lines_alone_is_normalised_too() -> None:
    head, body = FIX.split("@@\n", 1)
    patch = good(f"{head}@@\n" + body.replace("\n", "\r\n"))
    assert patch.repairs == ("line ends",)
    assert content(apply(TREE, patch), "calc.py") == FIXED


def test_80_a_new_file_that_came_with_crlf_gets_lf() -> None:
    patch = good(new_file("new.py", "x = 1", "y = 2").replace("\n", "\r\n"))
    assert patch.repairs == ("line ends",)
    assert content(apply(TREE, patch), "new.py") == b"x = 1\ny = 2\n"


@pytest.mark.parametrize("carried_as", ["\n", "\r\n"])
def test_80_a_crlf_file_keeps_crlf(carried_as: str) -> None:
    tree = tree_of(**{"calc.py": CALC.replace(b"\n", b"\r\n")})
    after = apply(tree, good(FIX.replace("\n", carried_as), tree))
    assert content(after, "calc.py") == FIXED.replace(b"\n", b"\r\n")


def test_82_a_last_line_without_its_line_feed_is_mended() -> None:
    patch = good(FIX.rstrip("\n"))
    assert patch.repairs == ("final newline",)
    assert content(apply(TREE, patch), "calc.py") == FIXED


def test_82_a_file_without_a_final_newline_takes_a_patch_that_does_not_say_so() -> None:
    tree = tree_of(**{"calc.py": CALC.rstrip(b"\n")})
    text = "--- a/calc.py\n+++ b/calc.py\n@@ -5,2 +5,2 @@\n def twice(a):\n-    return a + a\n+    return 2 * a\n"
    patch = good(text, tree)
    assert patch.repairs == ("final newline",)
    assert content(apply(tree, patch), "calc.py").endswith(b"    return 2 * a\n")


@pytest.mark.parametrize(
    "header", ["@@ -1,2 +1,2 @@", "@@ -1,9 +1,9 @@", "@@ -1,5 +1,9 @@", "@@ -1 +1 @@", "@@ ... @@", "@@"]
)
@pytest.mark.parametrize("follows", ["", "--- a/docs/read me.txt\n+++ b/docs/read me.txt\n@@ -1 +1 @@\n-hello\n+bye\n"])
def test_83_wrong_hunk_counts_are_mended(header: str, follows: str) -> None:
    patch = good(FIX.replace("@@ -1,5 +1,5 @@", header) + follows)
    assert "hunk counts" in patch.repairs
    after = apply(TREE, patch)
    assert content(after, "calc.py") == FIXED
    assert content(after, "docs/read me.txt") == (b"bye\n" if follows else b"hello\n")


def test_83_prose_that_looks_like_diff_lines_after_a_right_hunk_is_passed_over() -> None:
    patch = good(f"{FIX}- this mends the sign\n")
    assert patch.repairs == ()
    assert content(apply(TREE, patch), "calc.py") == FIXED


def test_83_blank_context_lines_may_have_lost_their_space() -> None:
    patch = good(FIX.replace("\n \n", "\n\n").replace("\n \n", "\n\n"))
    assert patch.repairs == ()
    assert content(apply(TREE, patch), "calc.py") == FIXED


@pytest.mark.parametrize(
    "text",
    [
        f"Here is the fix:\n\n```diff\n{FIX}```\nIt adds now.\n",
        f"```\n{FIX}```",
        f"~~~~patch\n{FIX}~~~~\n",
        f"```diff\n{FIX}",
        f"First run this:\n```sh\nmake\n```\nThen:\n```diff\n{FIX}```\n",
    ],
)
def test_84_a_fence_is_taken_off(text: str) -> None:
    patch = good(text)
    assert patch.repairs == ("fence",)
    assert content(apply(TREE, patch), "calc.py") == FIXED


def test_84_two_fenced_diffs_are_one_patch() -> None:
    other = "--- a/docs/read me.txt\n+++ b/docs/read me.txt\n@@ -1 +1 @@\n-hello\n+bye\n"
    assert good(f"```diff\n{FIX}```\nand\n```diff\n{other}```\n").paths == ("calc.py", "docs/read me.txt")


def test_a_mailed_patch_with_its_signature_is_read() -> None:
    patch = good(f"From abc Mon Sep 17\nSubject: [PATCH] fix\n\n---\n calc.py | 2 +-\n\n{FIX}-- \n2.39.5\n\n")
    assert patch.repairs == ()


# Cases 85 to 87: binaries and sizes.


def literal(data: bytes, path: str = "logo.bin", size: int | None = None) -> str:
    packed, lines = zlib.compress(data), list[str]()
    for at in range(0, len(packed), 52):
        part = packed[at : at + 52]
        length = chr(64 + len(part)) if len(part) <= 26 else chr(70 + len(part))
        lines.append(length + base64.b85encode(part, pad=True).decode())
    head = (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\nindex {'0' * 40}..{blob_name(data)}\nGIT binary patch\n"
    )
    body = "\n".join(lines)
    return f"{head}literal {len(data) if size is None else size}\n{body}\n\nliteral 0\nHcmV?d00001\n\n"


def test_85_a_binary_literal_under_the_limit_is_applied() -> None:
    data = bytes(range(256)) * 3
    assert content(apply(TREE, good(literal(data))), "logo.bin") == data


def test_85_a_binary_literal_over_the_limit_is_rejected_without_unpacking() -> None:
    bomb = literal(b"\0" * 200_000)
    assert len(bomb) < 2_000
    refusal = refused(bomb)
    assert (refusal.status, "200000" in refusal.reason) == ("patch_rejected", True)
    lying = refused(literal(b"\0" * 200_000, size=50))
    assert (lying.status, "says 50 bytes" in lying.reason) == ("patch_rejected", True)


@pytest.mark.parametrize("damage", ['not base 85 "', "zzzz", "A"])
def test_85_a_damaged_binary_is_rejected(damage: str) -> None:
    text = literal(b"abc").split("literal 3\n")[0] + f"literal 3\n{damage}\n\n"
    assert refused(text).status == "patch_rejected"


def test_85_a_delta_of_other_content_is_a_conflict() -> None:
    old = bytes(range(256)) * 8
    tree = tree_of(**{"logo.bin": old})
    text = f"diff --git a/logo.bin b/logo.bin\nindex {'1' * 40}..{'2' * 40} 100644\nGIT binary patch\ndelta 4\nLcmZ\n\n"
    assert refused(text, tree).status == "patch_conflict"


def test_86_binary_files_differ_is_rejected_with_the_reason() -> None:
    for header in ("", "diff --git a/logo.bin b/logo.bin\nindex 1234567..89abcde 100644\n"):
        refusal = refused(f"{header}Binary files a/logo.bin and b/logo.bin differ\n")
        assert refusal.status == "patch_rejected"
        assert "says that a file differs and not how" in refusal.reason


def test_87_a_huge_patch_is_rejected_before_it_is_read() -> None:
    huge = new_file("x.py", "x") + "+" + "x" * 50_000_000
    many = "".join(f"--- a/f{n}\n+++ b/f{n}\n@@ -1 +1 @@\n-a\n+b\n" for n in range(100_000))
    started = time.monotonic()
    assert refused(huge).status == "patch_rejected"
    assert refused(many).status == "patch_rejected"
    assert "100000 files" in refused(many, policy=PatchPolicy(most_bytes=10**9)).reason
    assert time.monotonic() - started < 2.0


def test_87_each_limit_is_kept() -> None:
    two = new_file("a.py", "x") + new_file("b.py", "x")
    assert "2 files" in refused(two, policy=PatchPolicy(most_files=1)).reason
    assert "bytes" in refused(FIX, policy=PatchPolicy(most_bytes=100)).reason
    assert "bytes" in refused(new_file("a.py", "\u00e9" * 60), policy=PatchPolicy(most_bytes=180)).reason
    assert "1 hunks" in refused(FIX, policy=PatchPolicy(most_hunks=0)).reason
    assert "come to" in refused(FIX, policy=PatchPolicy(most_result_bytes=10)).reason


def test_87_many_hunks_on_a_large_file_of_equal_lines_end_soon() -> None:
    tree = tree_of(**{"data.txt": b"x\n" * 500_000})
    hunks = "".join("@@ -900000,3 +1,4 @@\n x\n+y\n x\n x\n" for _ in range(500))
    started = time.monotonic()
    assert refused(f"--- a/data.txt\n+++ b/data.txt\n{hunks}", tree).status == "patch_conflict"
    assert time.monotonic() - started < 5.0


# Cases 89 to 92.


def test_89_wrong_line_numbers_are_mended_where_the_lines_stand_once() -> None:
    patch = good(FIX.replace("-1,5 +1,5", "-31,5 +34,5"))
    assert patch.repairs == ("line numbers",)
    assert content(apply(TREE, patch), "calc.py") == FIXED


def test_89_lines_that_differ_are_a_conflict_and_the_nearest_are_shown() -> None:
    refusal = refused(FIX.replace(" def add(a, b):", " def add(a, b, c):"))
    assert refusal.status == "patch_conflict"
    assert "nearest, from line 1:\ndef add(a, b):\n    return a - b\n" in refusal.reason


def test_89_lines_in_two_places_are_a_conflict_unless_the_header_is_right() -> None:
    tree = tree_of(**{"x.py": b"a\nb\n\na\nb\n"})
    text = "--- a/x.py\n+++ b/x.py\n@@ -{0},2 +{0},2 @@\n a\n-b\n+c\n"
    refusal = refused(text.format(3), tree)
    assert (refusal.status, "at line 1 and 4" in refusal.reason) == ("patch_conflict", True)
    assert content(apply(tree, good(text.format(4), tree)), "x.py") == b"a\nb\n\na\nc\n"
    assert content(apply(tree, good(text.format(1), tree)), "x.py") == b"a\nc\n\na\nb\n"


@pytest.mark.parametrize(
    "text",
    [
        FIX.replace("     return a - b", "\treturn a - b").replace("-    return a - b", "-\treturn a - b"),
        FIX.replace(" def twice(a):", " def  twice(a):"),
        FIX.replace("calc.py", "cacl.py"),
        "--- a/calc.py\n+++ b/calc.py\n@@ -3,0 +4,1 @@\n+x = 1\n",
        "diff --git a/calc.py b/calc.py\ndeleted file mode 100644\n--- a/calc.py\n+++ /dev/null\n@@ -1 +0,0 @@\n"
        "-def add(a, b):\n",
        new_file("calc.py", "x"),
        new_file("calc.py/x.py", "x"),
        new_file("docs", "x"),
    ],
)
def test_89_what_does_not_fit_exactly_is_a_conflict(text: str) -> None:
    assert refused(text).status == "patch_conflict"


def test_89_two_hunks_that_change_one_line_are_a_conflict() -> None:
    hunk = "@@ -2 +2 @@\n-    return a - b\n+    return a + b\n"
    assert refused(f"--- a/calc.py\n+++ b/calc.py\n{hunk}{hunk}").status == "patch_conflict"


def test_hunks_may_share_context_and_come_in_any_order() -> None:
    tree = tree_of(x=b"1\n2\n3\n4\n5\n")
    text = "--- a/x\n+++ b/x\n@@ -3,3 +3,3 @@\n 3\n-4\n+four\n 5\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"
    assert content(apply(tree, good(text, tree)), "x") == b"1\ntwo\n3\nfour\n5\n"


def test_a_patch_is_never_applied_backwards() -> None:
    tree = tree_of(**{"calc.py": FIXED})
    assert refused(FIX, tree).status == "patch_conflict"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("caf\u00e9.py", '"a/caf\\303\\251.py"'),
        ("caf\u00e9.py", "a/caf\u00e9.py"),
        ('say "hi".py', '"a/say \\"hi\\".py"'),
        ("back\\slash.py", '"a/back\\\\slash.py"'),
        ("two words.py", "a/two words.py"),
        ("two words.py", "a/two words.py\t2024-01-01 00:00:00"),
        ("\u65e5\u672c/\u8a9e.py", "a/\u65e5\u672c/\u8a9e.py"),
    ],
)
def test_90_quoted_and_other_names_are_read(name: str, written: str) -> None:
    tree = (File(path=name, content=CALC),)
    new = written.replace("a/", "b/", 1)
    body = FIX.split("\n", 2)[2]
    for header in ("", f"diff --git {written} {new}\n".replace("\t2024-01-01 00:00:00", "")):
        patch = good(f"{header}--- {written}\n+++ {new}\n{body}", tree)
        assert patch.paths == (name,)
        assert content(apply(tree, patch), name) == FIXED


def test_90_names_without_a_and_b_are_read_where_the_tree_has_them() -> None:
    tree = tree_of(**{"a/calc.py": CALC, "src/calc.py": CALC})
    assert good(FIX.replace("a/calc.py", "src/calc.py").replace("b/calc.py", "src/calc.py"), tree).paths == (
        "src/calc.py",
    )
    assert good(FIX.replace("b/calc.py", "a/calc.py"), tree).paths == ("a/calc.py",)
    both = tree_of(**{"b/calc.py": CALC, "calc.py": CALC})
    assert good(FIX, both).paths == ("calc.py",)
    beside = tree_of(**{"a/new.py": b"x", "b/new.py": b"x"})
    assert good(new_file("new.py", "y"), beside).paths == ("new.py",)
    assert good(new_file("new.py", "y").split("\n", 2)[2], beside).paths == ("new.py",)
    assert good(FIX.replace("a/calc.py", "i/src/calc.py").replace("b/calc.py", "w/src/calc.py"), tree).paths == (
        "src/calc.py",
    )


@pytest.mark.parametrize(
    "written", ['"a/\\377.py"', '"a/x\\ny.py"', '"a/x\\033[31m.py"'], ids=["not utf-8", "line feed", "escape code"]
)
def test_90_names_that_only_an_attack_would_write_are_rejected(written: str) -> None:
    text = f"--- /dev/null\n+++ {written}\n@@ -0,0 +1 @@\n+x\n"
    refusal = refused(text)
    assert refusal.status == "patch_rejected"
    assert refusal.reason.isprintable()


def test_91_a_mode_change_alone_is_allowed_and_reported() -> None:
    text = "diff --git a/calc.py b/calc.py\nold mode 100644\nnew mode 100755\n"
    patch = good(text)
    assert (patch.paths, patch.modes) == (("calc.py",), ("calc.py",))
    after = apply(TREE, patch)
    assert after == tuple(replace(file, executable=file.path == "calc.py") for file in TREE)
    back = good(text.replace("100755", "x").replace("100644", "100755").replace("x", "100644"), after)
    assert apply(after, back) == TREE


def test_91_a_change_of_an_executable_leaves_it_executable() -> None:
    tree = (File(path="calc.py", content=CALC, executable=True),)
    patch = good(FIX, tree)
    assert patch.modes == ()
    assert apply(tree, patch) == (File(path="calc.py", content=FIXED, executable=True),)


@pytest.mark.parametrize("text", ["", " \n\t\n", "# nothing to do\n\n# at all\n", "```diff\n```\n"])
def test_92_an_empty_patch_is_empty(text: str) -> None:
    assert refused(text).status == "empty_patch"


@pytest.mark.parametrize(
    "text",
    [
        "The code is right as it is.\n",
        "diff --git a/calc.py b/calc.py\n",
        "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n     return a - b\n",
        "--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-def add(a, b):\n+def add(a, b):\n",
    ],
)
def test_92_a_patch_that_changes_nothing_is_empty(text: str) -> None:
    assert refused(text).status == "empty_patch"


def test_a_hunk_without_a_file_and_a_combined_diff_are_rejected() -> None:
    assert refused("@@ -1 +1 @@\n-a\n+b\n").status == "patch_rejected"
    assert refused("diff --cc calc.py\n@@@ -1,1 -1,1 +1,1 @@@\n--a\n +b\n").status == "patch_rejected"


def test_one_bad_section_refuses_all() -> None:
    assert refused(FIX + new_file("../x", "x")).status == "patch_rejected"
    assert refused(FIX + FIX.replace("calc", "none")).status == "patch_conflict"


def test_an_empty_file_is_made_and_removed() -> None:
    made = "diff --git a/pkg/__init__.py b/pkg/__init__.py\nnew file mode 100644\nindex 0000000..e69de29\n"
    after = apply(TREE, good(made))
    assert content(after, "pkg/__init__.py") == b""
    assert not isinstance(after, Refused)
    gone = made.replace("new file", "deleted file").replace("0000000..e69de29", "e69de29..0000000")
    assert apply(after, good(gone, after)) == TREE


def test_a_file_may_take_the_place_of_a_folder() -> None:
    tree = tree_of(**{"pkg/x.py": b"x\n"})
    gone = "--- a/pkg/x.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    after = apply(tree, good(new_file("pkg", "y") + gone, tree))
    assert after == (File(path="pkg", content=b"y\n"),)


def test_the_user_s_git_is_not_asked(tmp_path, monkeypatch) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text("[core]\n\thooksPath = /nowhere\n[apply]\n\twhitespace = error\n[diff]\n\tnoprefix = true\n")
    for variable in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(variable, str(settings))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    text = new_file("new.py", "x = 1   ")
    assert content(apply(TREE, good(text)), "new.py") == b"x = 1   \n"


def test_a_patch_is_what_git_itself_takes(tmp_path) -> None:
    for file in TREE:
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.path).write_bytes(file.content)
    text = good(FIX.replace("-1,5 +1,5", "-9,9 +9,9").replace("\n", "\r\n")).text
    subprocess.run(["git", "apply", "-"], input=text.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "calc.py").read_bytes() == FIXED
