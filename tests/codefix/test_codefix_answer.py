from __future__ import annotations

import time

import pytest

from archon.codefix.answer import read_answer
from archon.codefix.apply import apply
from archon.codefix.types import File, Patch, Refused, Tree

CALC = "import math\n\n\ndef add(a, b):\n    return a - b\n\n\ndef area(r):\n    return math.pi * r\n"
FIXED = CALC.replace("a - b", "a + b")
TREE: Tree = (
    File(path="calc.py", content=CALC.encode(), executable=True),
    File(path="tests/test_calc.py", content=b"from calc import add\n\ndef test_add():\n    assert add(1, 1) == 2\n"),
)
TWO: Tree = (TREE[0], File(path="other.py", content=b"def more():\n    pass\n"))
ADD = "def add(a, b):\n    return a + b\n"
DIFF = "--- a/calc.py\n+++ b/calc.py\n@@ -4,2 +4,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
EDIT = f"calc.py\n<<<<<<< SEARCH\n{ADD.replace('+', '-')}=======\n{ADD}>>>>>>> REPLACE\n"


def block(code: str, language: str = "python") -> str:
    return f"The sign is wrong.\n\n```{language}\n{code}```\nThat mends it.\n"


def good(text: str, tree: Tree = TREE, entry_point: str | None = None) -> tuple[Patch, str]:
    patch = read_answer(text, tree, entry_point=entry_point)
    assert isinstance(patch, Patch), patch
    after = apply(tree, patch)
    assert not isinstance(after, Refused), after
    assert all(file.executable == (file.path == "calc.py") for file in after)
    return patch, next(file.content.decode() for file in after if file.path == "calc.py")


def refused(text: str, tree: Tree = TREE, entry_point: str | None = None) -> Refused:
    refusal = read_answer(text, tree, entry_point=entry_point)
    assert isinstance(refusal, Refused), refusal
    return refusal


@pytest.mark.parametrize(
    ("text", "entry_point", "form"),
    [
        (DIFF, None, "diff"),
        (block(DIFF, "diff"), "add", "diff"),
        (EDIT, None, "search_replace"),
        (block(EDIT), "add", "search_replace"),
        (EDIT + block(DIFF, "diff"), None, "search_replace"),
        (block(ADD), "add", "function"),
        (block(ADD, ""), "add", "function"),
        (ADD, "add", "function"),
        (block(ADD + "\nprint(add(1, 2))\n"), "add", "function"),
        (block(ADD), None, "function"),
        (block(FIXED), None, "file"),
        (block(FIXED), "add", "function"),
        ("Run it:\n```sh\nmake\n```\n" + block(FIXED), None, "file"),
    ],
)
def test_each_form_is_found_and_gives_the_same_change(text: str, entry_point: str | None, form: str) -> None:
    patch, source = good(text, TREE, entry_point)
    assert (patch.form, source) == (form, FIXED)


def test_the_last_block_that_defines_the_function_counts() -> None:
    assert good(block(ADD.replace("+", "*")) + block(ADD), TREE, "add")[1] == FIXED


def test_a_function_is_found_in_the_file_that_defines_it() -> None:
    assert good(block(ADD), TWO, "add")[0].paths == ("calc.py",)
    both = (*TWO[:1], File(path="other.py", content=ADD.encode()))
    assert "'calc.py', 'other.py'" in refused(block(ADD), both, "add").reason
    assert "no file" in refused(block("def gone():\n    pass\n"), TWO, "gone").reason


def test_a_method_is_replaced_by_its_dotted_name() -> None:
    tree = (File(path="calc.py", content=b"class C:\n    def f(self):\n        return 1\n", executable=True),)
    assert good(block("def f(self):\n    return 2\n"), tree, "C.f")[1].endswith("        return 2\n")


def test_a_whole_file_keeps_crlf() -> None:
    tree = (File(path="calc.py", content=CALC.replace("\n", "\r\n").encode(), executable=True),)
    patch, source = good(block(FIXED), tree)
    assert (patch.repairs, source) == (("line ends",), FIXED.replace("\n", "\r\n"))


@pytest.mark.parametrize(
    ("text", "tree", "status"),
    [
        ("I would change the sign.", TREE, "empty_patch"),
        ("", TREE, "empty_patch"),
        (block(FIXED), TWO, "empty_patch"),  # no file is named and two could be meant
        (block(CALC), TREE, "empty_patch"),
        (block("make\n", "sh"), TREE, "empty_patch"),
        (block(FIXED) + block(CALC), TREE, "patch_rejected"),
        (block("def add(a, b:\n"), TREE, "patch_rejected"),
        (block("def new():\n    pass\n"), TREE, "patch_conflict"),
        (EDIT.replace("a + b", "b + a") + block(DIFF, "diff"), TREE, "patch_rejected"),
        (EDIT.replace("=======\n", ""), TREE, "patch_rejected"),
        (DIFF.replace("a - b", "a / b"), TREE, "patch_conflict"),
    ],
)
def test_what_holds_no_clear_change_is_refused(text: str, tree: Tree, status: str) -> None:
    assert refused(text, tree).status == status


def test_a_huge_answer_is_rejected_unread() -> None:
    assert refused("x" * 2_000_000).status == "patch_rejected"


@pytest.mark.parametrize(
    "text",
    [
        "```a\n" * 150_000,
        "`" * 900_000,
        f"{' ' * 400_000}x{' ' * 400_000}x\n{EDIT.split(chr(10), 1)[1]}",
        "a.py\n<<<<<<< SEARCH\n" + "=======\n" * 100_000 + ">>>>>>> REPLACE\n",
        "<<<<<<< SEARCH\n" * 60_000,
        "--- a/calc.py\n+++ b/calc.py\n" + "@@\n" * 400 + "-x\n" * 100_000,
        '--- "' + "\\" * 400_000 + '\n+++ "b\n',
        "diff --git " + "a " * 300_000 + "\n",
    ],
    ids=["openings", "ticks", "spaces", "dividers", "searches", "lines", "escapes", "names"],
)
@pytest.mark.parametrize("entry_point", [None, "add"])
def test_a_hostile_answer_is_dealt_with_soon(text: str, entry_point: str | None) -> None:
    started = time.process_time()
    read_answer(text, TREE, entry_point=entry_point)
    assert time.process_time() - started < 3.0
