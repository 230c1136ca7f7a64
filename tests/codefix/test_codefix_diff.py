"""The diff of any two trees, read and applied to the first, gives the second byte for byte."""

from __future__ import annotations

import json
import random
import string

import pytest

from archon.codefix._git import repository
from archon.codefix.apply import apply
from archon.codefix.diff import diff
from archon.codefix.patch import read_patch
from archon.codefix.policy import PatchPolicy
from archon.codefix.types import File, Patch, Refused, Tree

OPEN = PatchPolicy(tests=(), runners=(), most_binary_bytes=1_000_000)
NAMES = ("a", "b.py", "caf\u00e9.txt", "two words", 'q"uote', "\u65e5\u672c\u8a9e.md", "back\\slash", "-- x", "+++ b")
LINES = (
    *(
        "",
        " ",
        "x",
        "return 1",
        "- item",
        "-- x",
        "--- a/b.py",
        "+++ b/b.py",
        "++ y",
        "@@ -1,2 +1,2 @@",
        "\\ No newline",
    ),
    *("diff --git a/a b/a", "\u00e9t\u00e9", "tab\there", "\x0c", "\u2028", "trailing  ", "```", "# c", "lone\rcr"),
)


def a_path(rng: random.Random) -> str:
    folders = [rng.choice(("src", "a", "b", "d \u00e9")) for _ in range(rng.choice((0, 0, 1, 2)))]
    return "/".join([*folders, rng.choice(NAMES)])


def a_text(rng: random.Random) -> bytes:
    end = rng.choice(("\n", "\n", "\r\n"))
    lines = [rng.choice(LINES) for _ in range(rng.choice((0, 1, 2, 5, 30)))]
    text = "".join(line + (rng.choice(("\n", "\r\n")) if rng.random() < 0.03 else end) for line in lines)
    return (text[: -len(end)] if text and rng.random() < 0.3 else text).encode()


def a_content(rng: random.Random) -> bytes:
    kind = rng.random()
    if kind < 0.8:
        return a_text(rng)
    return a_text(rng) + rng.choice((b"\xff\xfe latin \xe9\n", b"\0\1\2", rng.randbytes(300)))


def edited(rng: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    for _ in range(rng.choice((0, 1, 1, 3))):
        at, line = rng.randrange(len(lines) + 1), rng.choice(LINES).encode()
        end = b"\r" if b"\r\n" in content else b""
        choice = rng.random()
        if choice < 0.4 or not lines:
            lines.insert(at, line + end)
        elif choice < 0.7:
            del lines[min(at, len(lines) - 1)]
        else:
            lines[min(at, len(lines) - 1)] = line + end
    whole = b"\n".join(lines)
    turn = rng.random()
    if turn < 0.05:
        return whole.replace(b"\r\n", b"\n")
    return whole.replace(b"\n", b"\r\n") if turn < 0.1 else whole


def plain(files: dict[str, File]) -> Tree:
    """Return a tree of files, without those that stand where others need a folder."""
    above = {path[:at] for path in files for at, character in enumerate(path) if character == "/"}
    return tuple(files[path] for path in sorted(files) if path not in above)


def two_trees(rng: random.Random) -> tuple[Tree, Tree]:
    before = {
        path: File(path=path, content=a_content(rng), executable=rng.random() < 0.2)
        for path in {a_path(rng) for _ in range(rng.randrange(1, 7))}
    }
    after = dict(before)
    for path, file in before.items():
        turn = rng.random()
        if turn < 0.15:
            del after[path]
        elif turn < 0.75:
            after[path] = File(
                path=path,
                content=edited(rng, file.content),
                executable=file.executable != (rng.random() < 0.15),
            )
    for _ in range(rng.choice((0, 0, 1, 2))):
        path = a_path(rng)
        after.setdefault(path, File(path=path, content=a_content(rng), executable=rng.random() < 0.2))
    return plain(before), plain(after)


@pytest.mark.parametrize("seed", range(8))
def test_a_diff_read_and_applied_gives_the_second_tree(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        before, after = two_trees(rng)
        text = diff(before, after)
        assert json.loads(json.dumps(text)).encode() == text.encode()
        if before == after:
            assert text == ""
            continue
        patch = read_patch(text, before, OPEN)
        assert isinstance(patch, Patch), (patch, text)
        assert patch.text == text
        assert patch.repairs == ()
        assert apply(before, patch) == after


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [["-U1"], ["-M", "-C", "--find-copies-harder"], ["-U10", "--patience"]])
def test_what_git_writes_with_other_options_is_read(seed: int, options: list[str]) -> None:
    rng = random.Random(100 + seed)
    for _ in range(2):
        before, after = two_trees(rng)
        if before == after:
            continue
        with repository() as repo:
            repo.commit(before=before, after=after)
            command = ("diff-tree", "-r", "-p", "--binary", "--full-index", *options)
            written = repo.git(*command, "refs/heads/before", "refs/heads/after").decode("utf-8", "surrogateescape")
        patch = read_patch(written, before, OPEN)
        assert isinstance(patch, Patch), (patch, written)
        assert apply(before, patch) == after


def test_a_damaged_diff_is_refused_or_read_and_never_breaks() -> None:
    rng = random.Random(7)
    for _ in range(40):
        before, after = two_trees(rng)
        text = list(diff(before, after))
        for _ in range(rng.choice((1, 3, 30))):
            if text:
                text[rng.randrange(len(text))] = rng.choice(string.printable + "\0\u00e9\ud800")
        patch = read_patch("".join(text), before, OPEN)
        if isinstance(patch, Patch):
            apply(before, patch)


def test_text_that_is_not_utf_8_is_a_binary_change() -> None:
    before = (File(path="a", content=b"caf\xe9\n"), File(path="b", content=b"1\n"))
    after = (File(path="a", content=b"caf\xe9!\n"), File(path="b", content=b"2\n"))
    text = diff(before, after)
    assert "GIT binary patch" in text
    assert "-1\n+2\n" in text


def test_equal_trees_have_no_diff() -> None:
    tree = (File(path="a", content=b"1\n"),)
    assert diff(tree, tree) == ""


def test_attributes_of_the_tree_change_nothing() -> None:
    rules = File(path=".gitattributes", content=b"* -diff text eol=crlf filter=evil\n*.py ident merge=union\n")
    before = (rules, File(path="a.py", content=b"$Id$\r\n1\n"))
    after = (
        File(path=".gitattributes", content=rules.content + b"* binary\n"),
        File(path="a.py", content=b"$Id$\r\n2\n"),
    )
    text = diff(before, after)
    assert "-1\n+2\n" in text
    patch = read_patch(text, before, OPEN)
    assert isinstance(patch, Patch)
    assert apply(before, patch) == after


def test_a_delta_of_a_binary_file_is_read() -> None:
    old = random.Random(1).randbytes(3_000)
    before = (File(path="a", content=old),)
    after = (File(path="a", content=old[:1_000] + b"new" + old[1_200:] + old[:70]),)
    text = diff(before, after)
    assert "\ndelta " in text
    patch = read_patch(text, before, OPEN)
    assert isinstance(patch, Patch)
    assert apply(before, patch) == after
    limited = read_patch(text, before, PatchPolicy(most_binary_bytes=2_000))
    assert isinstance(limited, Refused)
    assert limited.status == "patch_rejected"
