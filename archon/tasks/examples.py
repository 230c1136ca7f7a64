"""Find the examples that a programming problem states, as structured tests.

Understood shapes, each with literal arguments and a literal result:

    >>> f(1, 2)            f([1, 2]) == 3        f(5) ➞ 6     (also => ==> -> → = # => # returns)
    3                      assert f(2) == 4      f(5) returns 6

    For n = 5 the output should be 6       Input: lst = [1, 2], k = 3
                                           Output: 4

An example must be read whole or not at all: a wrong test would reject right programs. So a result that is followed by
anything but a remark is left out, and so is a call that is part of a larger expression.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import islice

from archon.tasks.calls import Call, call, distinct, literal, unit_test
from archon.tasks.source import parse_source, stub_in
from archon.types import Problem, UnitTest

_MAX_TEXT_CHARS = 50_000
_MAX_RESULT_LINES = 12
_MAX_CALLS = 200
_MAX_CALL_CHARS = 5_000
_ARROW = re.compile(
    r"[ \t]*`?[ \t]*(?:#[ \t]*)?(?:==>|=>|==|=|-+>|➞|→|⇒|➜|#|(?:should |would |will |must )?"
    r"(?:returns?|gives?|equals?|is|be|evaluates to|produces?|yields?|outputs?)\b)[ \t]*(?:returns?\b)?[ \t]*:?",
)
_STANDS_ALONE = re.compile(
    r"^\s*(?:[-*•]|\d+[.)])?\s*$|(?:^|[\s`:;,(])(?:assert|for|and|so|e\.g\.|example|call|calling|then|if|that|the|[Ee]xamples?:?)\s*`?\s*$|[:;,.`]\s*`?$|^\s*>>>\s*$"
)
_REMARK = re.compile(r"^[`'\"]?\s*(?:$|,\s*f?['\"]|[.;,]?\s*(?:$|#|//|--|—|\(|because\b|since\b|as\b|where\b))")
_FOR = re.compile(
    r"\b[Ff]or\s+(?=\w+\s*=)(?P<given>.+?)\bthe (?:output|result|answer) (?:should be|is|will be)\s+(?P<result>.+)$"
)
_INPUT = re.compile(r"^[ \t]*Input:?[ \t]*(?P<given>\S.*)\n[ \t]*Output:?[ \t]*(?P<result>\S.*)$", re.MULTILINE)
_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}


def stated_examples(problem: Problem) -> tuple[UnitTest, ...]:
    """Return the examples stated in a code problem, in order, each call once; () for a text that is too long.

    They are only as right as the statement: two problems of HumanEval (47 and 116) state wrong results.
    """
    text = problem.text
    if problem.entry_point is None or len(text) > _MAX_TEXT_CHARS:
        return ()
    stub = stub_in(text, problem.entry_point)
    found = [
        *_called(text, problem.entry_point),
        *_described(text, problem.entry_point, _parameters(stub, problem.entry_point)),
    ]
    return distinct([unit_test(made, result, "example") for made, result in found])


def _called(text: str, entry_point: str) -> Iterator[tuple[Call, object]]:
    # Beside `f(n) = 1 + f(n - 1)`, a line `f(1) = 3` defines a sequence and need not be what a call returns.
    recurrence = re.search(rf"(?<![\w.]){re.escape(entry_point)}\(\s*[a-zA-Z]\w*[^()]*\)\s*=[^=>]", text)
    for match in islice(re.finditer(rf"(?<![\w.]){re.escape(entry_point)}\s*\(", text), _MAX_CALLS):
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        end = _closing(text, match.end() - 1)
        if end is None or not _STANDS_ALONE.search(before) or before.rstrip().endswith("def"):
            continue
        try:
            made = call(text[match.start() : end].replace("\n", " "))
            if recurrence and re.match(r"\s*=[^=>]", text[end:]):
                continue
            yield made, _result(text[end:], doctest=before.strip() == ">>>")
        except ValueError:
            continue


def _closing(text: str, start: int) -> int | None:
    """Return the position after the bracket that closes the one at `start`, skipping strings."""
    depth, quote, at = 0, "", start
    while at < min(len(text), start + _MAX_CALL_CHARS):
        char = text[at]
        if quote:
            at += char == "\\"
            quote = "" if char == quote or char == "\n" else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None


def _result(rest: str, *, doctest: bool) -> object:
    """Return the value that follows a call.

    Raises:
        ValueError: no literal follows, or more than one.
    """
    line, _, below = rest.partition("\n")
    arrow = _ARROW.match(line)
    if arrow is None or (doctest and line.strip().startswith("#")):
        if not doctest or (line.strip() and not line.strip().startswith("#")):
            raise ValueError("nothing that introduces a result")
        return _read(below, doctest=True)
    if doctest and below.strip().startswith("False"):
        raise ValueError("a doctest that states an inequality")
    return _read(rest[arrow.end() :], doctest=False)


def _read(text: str, *, doctest: bool) -> object:
    """Return the literal that the text begins with; it goes over several lines only inside brackets.

    Raises:
        ValueError: there is none, or what follows it is not a remark.
    """
    lines = text.split("\n")[:_MAX_RESULT_LINES]
    first = lines[0].strip()
    if doctest:
        return _word_or_literal(_joined(lines).strip())
    if re.match(r"^\(\s*(['\"])[^,]*\1\s*\)", first):
        raise ValueError("one string in brackets: a tuple or a string")
    if "=" in first and not re.search(r"['\"\[({]", first):
        return _leading(first.rsplit("=", 1)[1].strip())  # 19 - 5 - 6 = 8
    return _leading(_joined(lines).strip())


def _joined(lines: list[str]) -> str:
    """Return the first line, with those below it that its open brackets need."""
    first = lines[0]
    opening = re.match(r"\s*[\[({]", first)
    if opening is None:
        return first
    whole = "\n".join(lines)
    end = _closing(whole, opening.end() - 1)
    if end is None:
        return first
    line_end = whole.find("\n", end)
    return whole if line_end < 0 else whole[:line_end]


def _leading(text: str) -> object:
    """Return the literal at the start of a text whose rest is a remark."""
    text = text.lstrip("`").strip()
    for end in _ends(text):
        if _REMARK.match(text[end:]):
            try:
                return _word_or_literal(text[:end])
            except ValueError:
                continue
    raise ValueError(f"no literal: {text[:80]!r}")


def _ends(text: str) -> Iterator[int]:
    """Yield where the literal may end: after a bracket pair, a string, or a token, the longest first."""
    if text[:1] in ("[", "(", "{"):
        end = _closing(text, 0)
        yield from () if end is None else (end,)
        return
    ends = list[int]()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text.split("\n")[0]).readline):
            if token.type not in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP) or len(ends) > 3:
                break
            if token.string not in "+-.":
                ends.append(token.end[1])
    except (tokenize.TokenError, SyntaxError, IndentationError):  # a remark with an apostrophe in it
        pass
    yield from reversed(ends)


def _word_or_literal(text: str) -> object:
    text = re.sub(r"(?<=\d)\.$", "", text.strip())  # the full stop of a sentence, not of a float
    value = literal(_WORDS.get(text.lower(), text))
    if isinstance(value, tuple) and not text.startswith("("):
        raise ValueError("a tuple without brackets: a value and a remark")
    return value


def _described(text: str, entry_point: str, parameters: tuple[str, ...] | None) -> Iterator[tuple[Call, object]]:
    if parameters is None:
        return
    matches = [match for line in text.splitlines() for match in _FOR.finditer(line)]
    for match in (*matches, *_INPUT.finditer(text)):
        try:
            args = _arguments(match["given"], parameters)
            yield Call(function=entry_point, args=args), _leading(match["result"].strip())
        except ValueError:
            continue


def _arguments(given: str, parameters: tuple[str, ...]) -> tuple[object, ...]:
    """Return the arguments of "lst = [1, 2], k = 3", "[1, 2], 3" or "num = 5, some words", by position.

    Raises:
        ValueError: it is none of these, or not one value for each parameter.
    """
    given = given.strip().rstrip(",")
    if re.match(r"\w+\s*=", given):
        try:
            named = call(f"f({given})")
        except ValueError:
            name, _, rest = given.partition("=")
            named = Call(function="f", args=(), kwargs=((name.strip(), _leading(re.sub(r",\s.*", "", rest.strip()))),))
        values = dict(named.kwargs)
        if named.args or set(values) != set(parameters):
            raise ValueError("other names than the parameters'")
        return tuple(values[name] for name in parameters)
    args = call(f"f({given})").args
    if len(args) != len(parameters):
        raise ValueError("not one value for each parameter")
    return args


def _parameters(stub: str | None, entry_point: str) -> tuple[str, ...] | None:
    tree = parse_source(stub or "")
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            plain = not (node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.defaults)
            return tuple(argument.arg for argument in node.args.posonlyargs + node.args.args) if plain else None
    return None
