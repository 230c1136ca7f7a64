from __future__ import annotations

import pytest

from archon.codefix.apply import apply
from archon.codefix.edits import read_edits
from archon.codefix.policy import PatchPolicy
from archon.codefix.types import File, Patch, Refused, Tree

CALC = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
TREE: Tree = (
    File(path="conftest.py", content=b"# settings\n"),
    File(path="src/calc.py", content=CALC.encode()),
    File(path="src/other.py", content=b"x = 1\n"),
    File(path="tests/test_calc.py", content=b"assert True\n"),
)
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
FIXED = CALC.replace("a - b", "a + b", 1).encode()


def edit(old: str, new: str, path: str | None = "src/calc.py") -> str:
    return f"{'' if path is None else path}\n{SEARCH}\n{old}{MIDDLE}\n{new}{REPLACE}\n".lstrip("\n")


FIX = edit("def add(a, b):\n    return a - b\n", "def add(a, b):\n    return a + b\n")


def good(text: str, tree: Tree = TREE) -> tuple[Patch, dict[str, bytes]]:
    patch = read_edits(text, tree)
    assert isinstance(patch, Patch), patch
    after = apply(tree, patch)
    assert not isinstance(after, Refused), after
    assert patch.form == "search_replace"
    return patch, {file.path: file.content for file in after}


def refused(text: str, tree: Tree = TREE) -> Refused:
    refusal = read_edits(text, tree)
    assert isinstance(refusal, Refused), refusal
    return refusal


def test_an_edit_replaces_the_lines_that_stand_there_once() -> None:
    patch, after = good(FIX)
    assert (patch.paths, patch.repairs) == (("src/calc.py",), ())
    assert after["src/calc.py"] == FIXED
    assert "-    return a - b\n+    return a + b\n" in patch.text


@pytest.mark.parametrize(
    "text",
    [
        FIX.replace("src/calc.py\n", "src/calc.py\n```python\n") + "```\n",
        "Here:\n\n```python\n" + FIX + "```\n",
        FIX.replace("src/calc.py", "### `src/calc.py`:"),
        FIX.replace("src/calc.py", "**File: src/calc.py**"),
        FIX.replace("src/calc.py\n", "src/calc.py\n\n"),
        FIX.replace("\n", "\r\n"),
        FIX.replace(SEARCH, SEARCH + "  ").replace(REPLACE, REPLACE + " "),
        FIX.replace("src/calc.py\n", "```python:src/calc.py\n") + "```\n",
    ],
)
def test_what_stands_around_edits_does_not_matter(text: str) -> None:
    assert good(text)[1]["src/calc.py"] == FIXED


def test_spaces_at_line_ends_are_mended_where_the_lines_still_stand_once() -> None:
    patch, after = good(FIX.replace("def add(a, b):\n    return a - b\n", "def add(a, b):  \n    return a - b\t\n", 1))
    assert patch.repairs == ("trailing spaces",)
    assert after["src/calc.py"] == FIXED
    twice = (File(path="a.py", content=b"x = 1 \ny\nx = 1\t\n"),)
    assert "there 2 times (line 1, 3)" in refused(edit("x = 1\n", "x = 2\n", "a.py"), twice).reason
    once = (File(path="a.py", content=b"x = 1 \ny\nx = 1\n"),)
    assert good(edit("x = 1\n", "x = 2\n", "a.py"), once)[1]["a.py"] == b"x = 1 \ny\nx = 2\n"


def test_lines_that_are_not_there_are_refused_with_the_nearest() -> None:
    refusal = refused(edit("def add(a, c):\n    return a - b\n", "x\n"))
    assert refusal.status == "patch_conflict"
    assert refusal.reason.startswith("edit 1 (src/calc.py): the lines to search for are not in the file; nearest, from")
    assert "\n    return a - b" in refusal.reason
    assert "nearest, from line 1:\ndef add(a, b):" in refused(edit("def add(a,b):\n", "x\n")).reason
    assert "no line of it is in the file" in refused(edit("completely different\n", "x\n")).reason


def test_an_indentation_that_differs_is_not_overlooked() -> None:
    assert refused(edit("  def add(a, b):\n      return a - b\n", "x\n")).status == "patch_conflict"


def test_lines_that_are_there_twice_are_refused_with_their_places() -> None:
    refusal = refused(edit("    return a - b\n", "    return a + b\n"))
    assert refusal.status == "patch_conflict"
    assert "are there 2 times (line 2, 6); copy more lines around them" in refusal.reason


def test_a_part_of_a_line_is_not_a_line() -> None:
    assert refused(edit("def add\n", "def plus\n")).status == "patch_conflict"


def test_edits_are_taken_in_order_and_all_or_none() -> None:
    second = edit("def add(a, b):\n    return a + b\n", "def add(a, b):\n    return sum((a, b))\n", None)
    patch, after = good(FIX + second + edit("x = 1\n", "x = 2\n", "src/other.py"))
    assert patch.paths == ("src/calc.py", "src/other.py")
    assert b"sum((a, b))" in after["src/calc.py"]
    refusal = refused(FIX + edit("nothing like it\n", "x\n"))
    assert "edit 2" in refusal.reason


def test_a_new_file_has_an_empty_search() -> None:
    patch, after = good(edit("", "y = 2\n", "src/new.py"))
    assert (patch.paths, after["src/new.py"]) == (("src/new.py",), b"y = 2\n")
    assert good(edit("", "y = 2\n", "src/empty.py"), (File(path="src/empty.py", content=b""),))
    refusal = refused(edit("", "y = 2\n"))
    assert (refusal.status, "nothing to search for" in refusal.reason) == ("patch_conflict", True)


def test_lines_can_be_deleted() -> None:
    assert good(edit("x = 1\n", "", "src/other.py"))[1]["src/other.py"] == b""


def test_a_file_that_is_not_there_is_refused_with_the_nearest() -> None:
    refusal = refused(FIX.replace("src/calc.py", "lib/calc.py"))
    assert (refusal.status, "nearest: 'src/calc.py'" in refusal.reason) == ("patch_conflict", True)


@pytest.mark.parametrize("path", ["../x.py", "/etc/x.py", ".git/hooks/x.py", "a/../../x.py"])
def test_a_path_that_leads_out_is_rejected(path: str) -> None:
    assert refused(edit("", "x\n", path)).status == "patch_rejected"


def test_a_path_through_a_link_is_rejected() -> None:
    refusal = read_edits(edit("", "x\n", "link/x.py"), TREE, PatchPolicy(links=("link",)))
    assert isinstance(refusal, Refused)
    assert refusal.status == "patch_rejected"


def test_edits_of_tests_and_their_settings_are_dropped() -> None:
    hook, test = edit("# settings\n", "x = 1\n", "conftest.py"), edit("assert True\n", "x\n", "tests/test_calc.py")
    patch, after = good(FIX + hook + test + edit("", "assert 1\n", "tests/test_new.py"))
    assert patch.dropped == ("conftest.py", "tests/test_calc.py")
    assert patch.paths == ("src/calc.py", "tests/test_new.py")
    assert after["conftest.py"] == b"# settings\n"
    alone, _ = good(hook)
    assert (alone.text, alone.dropped) == ("", ("conftest.py",))


def test_a_path_may_be_left_out_where_one_source_file_is_there() -> None:
    one = tuple(file for file in TREE if file.path != "src/other.py")
    patch, after = good(FIX.removeprefix("src/calc.py\n"), one)
    assert (patch.repairs, after["src/calc.py"]) == (("path",), FIXED)
    refusal = refused(FIX.removeprefix("src/calc.py\n"))
    assert "the line before '<<<<<<< SEARCH' must be the path of a file" in refusal.reason


def test_a_crlf_file_keeps_its_line_ends() -> None:
    tree = (File(path="src/calc.py", content=CALC.replace("\n", "\r\n").encode()),)
    patch, after = good(FIX, tree)
    assert (patch.repairs, after["src/calc.py"]) == (("line ends",), FIXED.replace(b"\n", b"\r\n"))


def test_a_file_without_a_final_newline_keeps_that() -> None:
    tree = (File(path="a.py", content=b"x = 1\ny = 2"),)
    assert good(edit("y = 2\n", "y = 3\n", "a.py"), tree)[1]["a.py"] == b"x = 1\ny = 3"


def test_a_line_of_equals_signs_belongs_to_the_search_where_the_file_has_it() -> None:
    tree = (File(path="a.rst", content=b"Heading\n=======\n\ntext\n"),)
    _, after = good(edit("Heading\n=======\n", "Title\n=======\n", "a.rst"), tree)
    assert after["a.rst"] == b"Title\n=======\n\ntext\n"
    _, after = good(edit("text\n", "Next\n=======\n", "a.rst"), tree)
    assert after["a.rst"] == b"Heading\n=======\n\nNext\n=======\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FIX.replace(REPLACE, ""), "has no '>>>>>>> REPLACE' line"),
        (FIX.replace(REPLACE + "\n", "") + FIX, "has no '>>>>>>> REPLACE' line"),
        (FIX.replace(SEARCH + "\n", ""), "without '<<<<<<< SEARCH'"),
        (FIX.replace(MIDDLE + "\n", ""), "has no '=======' line"),
    ],
)
def test_an_edit_that_is_not_whole_is_rejected(text: str, why: str) -> None:
    refusal = refused(text)
    assert (refusal.status, why in refusal.reason) == ("patch_rejected", True)


def test_nothing_and_no_change_are_empty() -> None:
    assert refused("all is well\n").status == "empty_patch"
    assert refused(edit("x = 1\n", "x = 1\n", "src/other.py")).status == "empty_patch"


def test_sizes_are_limited() -> None:
    for policy in (PatchPolicy(most_bytes=20), PatchPolicy(most_result_bytes=20), PatchPolicy(most_hunks=0)):
        refusal = read_edits(FIX, TREE, policy)
        assert isinstance(refusal, Refused)
        assert refusal.status == "patch_rejected"
