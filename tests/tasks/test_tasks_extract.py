import time

import pytest

from archon.tasks.extract import extract_answer, extract_code

PROMPT = '''Complete the following Python function.

```python
from typing import List
import math


def helper(x: int) -> int:
    return x + 1


def target(xs: List[int]) -> int:
    """Say something. >>> target([1])"""
```'''
BODY = "    total = sum(xs)\n    return helper(total)"
FUNCTION = f"def target(xs: List[int]) -> int:\n{BODY}"


def run(code, *args, name="target"):
    namespace = {"__name__": "candidate"}
    exec(code, namespace)
    return namespace[name](*args)


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{FUNCTION}\n```",
        f"```\n{FUNCTION}\n```",
        f"~~~py\n{FUNCTION}\n~~~",
        f"Sure! Here it is:\n\n```python\n{FUNCTION}\n```\nIt works because `xs` is summed.",
        f"```python\n{FUNCTION}",  # cut off before the closing fence
        f"```python\n{FUNCTION}\n\nprint(target([1, 2]",  # cut off in what follows the function
        f"```python\ndef target(xs):\n    return 0\n```\nBetter:\n```python\n{FUNCTION}\n```",
        f"```python\n{FUNCTION}\n```\nUse it so:\n```python\nprint(target([1, 2]))\n```",
        f"```python\n{FUNCTION}\n```\nOutput:\n```text\n4\n```",
        f"First install:\n```bash\npip install x\n```\n```python\n{FUNCTION}\n```",
        f"1. Do this:\n   ```python\n   {FUNCTION.replace(chr(10), chr(10) + '   ')}\n   ```",
        FUNCTION,
        f"Here is the function:\n\n{FUNCTION}\n\nThe function sums the list and it's fast.",
        BODY,
        BODY.strip(),
        "total = sum(xs)\nreturn helper(total)",
        f"```python\n{BODY}\n```",
        f"{BODY}\n\nThis isn't code.",
        f"```python\n{FUNCTION}\n\nassert target([1]) == 99\nprint(target(5))\n```",
        f"```python\n{FUNCTION}\n\nif __name__ == '__main__':\n    raise SystemExit\n```",
        f"```python\nimport unittest\n{FUNCTION}\n\nunittest.main()\n```",
        f"```python\n{FUNCTION}\n\nxs = input()\nmain()\n```",
        f"```python\r\n{FUNCTION.replace(chr(10), chr(13) + chr(10))}\r\n```",
    ],
)
def test_every_shape_of_answer_gives_a_program_that_runs(text):
    assert run(extract_code(text, "target", PROMPT), [1, 2]) == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot do that.",
        "Hello",
        "```python\n```",
        "```text\nno\n```",
        "x" * 300_000,
        "```python\ndef other():\n    return 1\n```",
        "(" * 5000,
    ],
)
def test_what_is_not_a_program_gives_none(text):
    assert extract_code(text, "target", PROMPT) is None


def test_the_preamble_is_added_once_and_only_what_is_missing():
    code = extract_code(f"```python\nimport math\ndef helper(x):\n    return x + 10\n{FUNCTION}\n```", "target", PROMPT)
    assert code.count("import math") == 1
    assert code.count("def helper") == 1
    assert "from typing import List" in code
    assert run(code, [1]) == 11


def test_a_future_import_stays_first():
    code = extract_code(f"```python\nfrom __future__ import annotations\n{FUNCTION}\n```", "target", PROMPT)
    assert code.startswith("from __future__")
    assert run(code, [1]) == 2


def test_statements_that_the_function_needs_are_kept():
    table = "TABLE = [1, 2]\nfor i in range(3):\n    TABLE.append(i)"
    function = "def target(xs):\n    return TABLE[-1]"
    text = f"```python\nimport sys\nsys.setrecursionlimit(5000)\n{table}\n{function}\n```"
    assert run(extract_code(text, "target", PROMPT), [1]) == 2


def test_a_lambda_defines_the_function_too():
    assert run(extract_code("```python\ntarget = lambda xs: 7\n```", "target", PROMPT), []) == 7


def test_a_class_or_nothing_named_takes_the_last_program():
    assert "def b" in extract_code("```python\ndef a(): pass\n```\n```python\ndef b(): pass\n```", None, "")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so \\boxed{18}.", "18"),
        ("\\boxed{3} and then \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
        ("$\\boxed{ \\left( 3, \\frac{\\pi}{2} \\right) }$", "\\left( 3, \\frac{\\pi}{2} \\right)"),
        ("first \\boxed{4}, cut off \\boxed{5", "4"),
        ("\\boxed{} then \\fbox{6}", "6"),
        ("1 + 1\n#### 1,234", "1,234"),
        ("The answer is 18.", "18"),
        ("The answer is: $18", "$18"),
        ("The final answer is **$1,080.00** dollars.", "$1,080.00"),
        ("**Answer:** 42", "42"),
        ("The answer is 3 + 5 = 8.", "8"),
        ("The answer is $x^2 + 1$.", "x^2 + 1"),
        ("the answer is 5 apples. She had 9 before.", "5"),
        ("The answer is 2.5 because 5/2 is 2.5", "2.5"),
        ("She has 3 apples and 4 pears, so 7.", "7"),
        ("It is -3", "-3"),
        ("That makes 1/2", "1/2"),
        ("I do not know", None),
        ("", None),
    ],
)
def test_final_answers(text, answer):
    assert extract_answer(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{" * 20_000,
        " " * 150_000 + "x",
        "```python\n" + "def f():\n" * 10_000,
        "$" * 100_000,
        "(" * 100_000,
        "1," * 60_000,
    ],
    ids=["boxed", "spaces", "defs", "dollars", "brackets", "numbers"],
)
def test_hostile_texts_are_read_in_seconds(text):
    began = time.monotonic()
    extract_code(text, "target", PROMPT)
    extract_answer(text)
    assert time.monotonic() - began < 8  # each took minutes with a quadratic reader; a tenth of a second otherwise
