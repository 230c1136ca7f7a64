from fractions import Fraction

import pytest

from archon.tasks.values import canonical_answer, rational


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18", 18),
        ("18.", 18),
        ("$18", 18),
        ("-$5", -5),
        ("1,234", 1234),
        ("1{,}234", 1234),
        ("1,\\!234", 1234),
        ("\\$1,080.50", Fraction(2161, 2)),
        ("0.50", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("1/2", Fraction(1, 2)),
        ("\\frac{1}{2}", Fraction(1, 2)),
        ("\\dfrac12", Fraction(1, 2)),
        ("\\tfrac{41}2", Fraction(41, 2)),
        ("-\\frac{3}{4}", Fraction(-3, 4)),
        ("3\\frac{1}{2}", Fraction(7, 2)),
        ("-3\\frac{1}{2}", Fraction(-7, 2)),
        ("1 1/2", Fraction(3, 2)),
        ("50%", 50),
        ("50\\%", 50),
        ("45^\\circ", 45),
        ("18 dollars", 18),
        ("5\\text{ cm}^2", 5),
        ("5 km", 5),
        ("12\\text{ hours}", 12),
        ("x = 5", 5),
        ("2^{10}", 1024),
        ("2 \\cdot 3", 6),
        ("007", 7),
        ("1e3", 1000),
        ("\\frac{\\frac{1}{2}}{2}", Fraction(1, 4)),
        ("9^{9^{9^9}}", None),
        ("1/0", None),
        ("x", None),
        ("2x", None),
        ("", None),
        ("()", None),
        ("2(3)", None),
        ("__import__('os')", None),
        ("1,2", None),
        ("\\pi", None),
        ("1" * 500, None),
        ("NaN", None),
    ],
)
def test_exact_values(text, value):
    assert rational(text) == value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0.50", "\\frac12"),
        ("(1, 0.5)", "\\left(1,\\frac{1}{2}\\right)"),
        ("\\text{Evelyn}", "evelyn"),
        ("2\\sqrt3", "2\\sqrt{3}"),
        ("$7$", "7.0"),
        ("\\textbf{(B)}", "(B)"),
        ("x^2 + 1", "x^2+1"),
        ("[0, 1)", "[0,1)"),
    ],
)
def test_equal_answers_vote_together(one, other):
    assert canonical_answer(one) == canonical_answer(other)


@pytest.mark.parametrize(
    ("one", "other"), [("1", "2"), ("(1,2)", "[1,2)"), ("x", "X"[::-1] + "y"), ("\\sqrt{2}", "2"), ("-1", "1")]
)
def test_different_answers_do_not(one, other):
    assert canonical_answer(one) != canonical_answer(other)
