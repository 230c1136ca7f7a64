r"""Exact values of final answers: the cheap half of judging maths, and the form in which answers vote.

`rational(r"\frac{1}{2}") == rational("0.50") == Fraction(1, 2)`; what is not a rational number keeps a cleaned LaTeX
text.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

_MAX_CHARS = 400
"""Longer answers are compared as text only: no rational answer needs more."""
_MAX_BITS = 4096
"""Larger numbers are not computed: `9^{9^9}` must not hang a grader."""

_DROPPED = (
    r"\left",
    r"\right",
    r"\displaystyle",
    r"\!",
    r"\,",
    r"\;",
    r"\:",
    r"\ ",
    r"\$",
    r"\%",
    "%",
    r"^\circ",
    r"^{\circ}",
    "°",
    "~",
)
_SPELLINGS = (
    (r"\dfrac", r"\frac"),
    (r"\tfrac", r"\frac"),
    (r"\cfrac", r"\frac"),
    ("−", "-"),
    ("–", "-"),
    ("{,}", ","),
    (r"\lbrace", r"\{"),
    (r"\rbrace", r"\}"),
)
_TEXT = re.compile(r"\\(?:text|mbox|textrm|mathrm|operatorname)\s*\{([^{}]*)\}(?:\^\{?\d\}?)?")
_BOLD = re.compile(r"\\(?:textbf|mathbf|textit|bf)\s*\{([^{}]*)\}")
_UNIT_WORDS = re.compile(
    r"(?<=[\d}.)])\s*(?:[a-zA-Z]{2,}\.?(?:\^\{?\d\}?)?|[mgsLhN](?:\^\{?\d\}?)?(?![a-zA-Z]))(?:\s+[a-zA-Z]+|/[a-zA-Z]+)*\s*$"
)
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def clean_latex(answer: str) -> str:
    """Return an answer without layout, units and the spellings that mean the same."""
    text = answer.strip().strip("$").strip()
    for old, new in _SPELLINGS:
        text = text.replace(old, new)
    for dropped in _DROPPED:
        text = re.sub(re.escape(dropped) + (r"(?![a-zA-Z])" if dropped[-1].isalpha() else ""), "", text)
    text = re.sub(r"^[$€£]\s*|(?<=^-)[$€£]", "", text.strip())
    text = _BOLD.sub(r"\1", text)
    unitless = _TEXT.sub("", text)
    text = unitless if re.search(r"\d|\\pi|\\sqrt", unitless) else _TEXT.sub(r"\1", text)
    text = re.sub(r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{", text)
    text = re.sub(r"\\frac\s*(\{[^{}]*\})\s*(\d)", r"\\frac\1{\2}", text)
    text = re.sub(r"\\sqrt\s*(\d)", r"\\sqrt{\1}", text)
    text = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    if not re.search(r"\\(?!frac)[a-zA-Z]", text):
        text = _UNIT_WORDS.sub("", text)
    mixed = re.fullmatch(r"(-?)(\d+)\s+(\d+)\s*/\s*(\d+)", text.strip())
    if mixed is not None:
        text = f"{mixed[1]}{mixed[2]}\\frac{{{mixed[3]}}}{{{mixed[4]}}}"
    return re.sub(r"\s+", "", text).rstrip(".,")


def rational(answer: str) -> Fraction | None:
    """Return the exact value of an answer that is a rational number, or None."""
    text = clean_latex(answer)
    if not text or len(text) > _MAX_CHARS:
        return None
    text = re.sub(r"^[a-zA-Z]+(?:_\{?\w+\}?)?=", "", text)
    text = text.rsplit("=", 1)[-1]
    text = re.sub(r"(?<=\d)\\frac\{(\d+)\}\{(\d+)\}", r"+\\frac{\1}{\2}", text)
    sign = -1 if text.startswith("-") and "+\\frac" in text else 1
    text = text[1:] if sign == -1 else text
    for _ in range(8):  # fractions inside fractions, innermost first
        text, changed = re.subn(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))", text)
        if not changed:
            break
    text = (
        text.replace(r"\cdot", "*")
        .replace(r"\times", "*")
        .replace(r"\div", "/")
        .replace("^", "**")
        .replace("{", "(")
        .replace("}", ")")
    )
    if not re.fullmatch(r"[\d.+\-*/() e]+", text) or re.search(r"\d\s*\(|\)\s*[\d(]", text):
        return None
    value = _evaluate(re.sub(r"(?<![\d.])0+(?=\d)", "", text))
    return None if value is None else sign * value


def _evaluate(text: str) -> Fraction | None:
    try:
        return _value(ast.parse(text, mode="eval").body, text)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError, OverflowError):
        return None


def _value(node: ast.expr, text: str) -> Fraction:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _bounded(Fraction((ast.get_source_segment(text, node) or "").strip()))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand, text)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, text), _value(node.right, text)
        if isinstance(node.op, ast.Pow):
            if right.denominator != 1 or abs(right) > 64:
                raise ValueError("an exponent that is not a small integer")
            return _bounded(left ** int(right))
        apply = _OPERATORS.get(type(node.op))
        if apply is not None:
            return _bounded(apply(left, right))
    raise ValueError("not arithmetic on numbers")


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise OverflowError("a number too large to compare exactly")
    return value


def canonical_answer(answer: str) -> str:
    """Return an answer in a form that is equal for equal answers, as far as can be told without algebra.

    Rational numbers become `n` or `n/d`; a tuple, list or interval has its parts brought to that form; other answers
    are cleaned LaTeX, words in lower case.
    """
    value = rational(answer)
    if value is not None:
        return str(value)
    text = clean_latex(answer)
    parts = re.fullmatch(r"([(\[]|\\\{)(.+)([)\]]|\\\})", text)
    if parts is not None and "," in parts[2] and not re.search(r"[(\[]", parts[2]):
        return parts[1] + ",".join(canonical_answer(part) for part in parts[2].split(",")) + parts[3]
    return text.lower() if text.isalpha() else text
