"""Localisation on trees that are small enough to point by hand."""

from __future__ import annotations

import pytest

from archon.codefix.localise import is_test, localise
from archon.codefix.types import File, Tree


def tree(**files: str) -> Tree:
    named = {name.replace("__", "/") + ".py": text for name, text in files.items()}
    return tuple(File(path=path, content=named[path].encode()) for path in sorted(named))


CALENDAR = tree(
    shop__dates="def first_day(month):\n    return 1\n",
    shop__money="def rounded(cents):\n    return cents // 100\n\n\ndef total(items):\n    return sum(items)\n",
    tests__test_money="from shop.money import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
)


def paths(*args, **kwargs) -> list[str]:
    return [place.path for place in localise(*args, **kwargs)]


def test_a_small_tree_is_shown_whole_without_its_tests():
    assert paths(CALENDAR) == ["shop/dates.py", "shop/money.py"]
    assert all(place.whole and place.first_line == 1 for place in localise(CALENDAR))


def test_what_a_failing_test_calls_comes_first():
    assert paths(CALENDAR, failing=("tests/test_money.py::test_total",))[0] == "shop/money.py"
    # One symbol named by the test's body (2) and its module imported (2).
    assert localise(CALENDAR, failing=("tests/test_money.py::test_total",))[0].points == 4.0


def test_the_deepest_frame_outranks_the_others():
    output = (
        'File "/work/shop/money.py", line 6, in total\n'
        'File "/work/shop/dates.py", line 2, in first_day\n'
        'File "/usr/lib/python3/ast.py", line 1, in parse\n'
    )
    shown = localise(CALENDAR, test_output=output)
    assert [(place.path, place.points) for place in shown] == [("shop/dates.py", 8.0), ("shop/money.py", 3.0)]


def test_frames_are_read_as_pytest_prints_them_too():
    assert paths(CALENDAR, test_output="shop/money.py:2: ZeroDivisionError")[0] == "shop/money.py"


def test_a_path_or_symbol_in_the_statement_counts():
    assert paths(CALENDAR, statement="Rounding in shop/money.py is off")[0] == "shop/money.py"
    assert paths(CALENDAR, statement="`rounded` truncates")[0] == "shop/money.py"


def test_a_large_file_is_cut_to_the_definitions_with_evidence():
    filler = "".join(f"def unrelated_{i}():\n    return {i}\n\n\n" for i in range(200))
    big = tree(app__big=filler + "@cache\ndef wanted(x):\n    return x - 1\n\n\n" + filler.replace("unrelated", "more"))
    (place,) = localise(big, statement="wanted(1) is wrong", most_characters=2_000)
    assert place.text == "@cache\ndef wanted(x):\n    return x - 1\n"
    assert (place.first_line, place.whole) == (801, False)


def test_the_bound_holds():
    many = tree(**{f"app__m{i}": f"def helper_{i}():\n    '''{'x' * 400}'''\n" for i in range(50)})
    shown = localise(many, statement=" ".join(f"helper_{i}" for i in range(50)), most_characters=3_000)
    assert 0 < sum(len(place.text) for place in shown) <= 3_000


def test_a_file_that_does_not_parse_is_still_shown():
    broken = tree(app__bad="def f(:\n")
    assert paths(broken) == ["app/bad.py"]


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("tests/x.py", True),
        ("a/test_b.py", True),
        ("a/b_test.py", True),
        ("conftest.py", True),
        ("a/testing.py", False),
        ("contest.py", False),
        ("protest/a.py", False),
    ],
)
def test_which_files_are_tests(path: str, wanted: bool):
    assert is_test(path) is wanted
