"""What models write instead of tests (section D): read by the parser of tests, and what is left run on a right program.

Nothing of such a text is ever evaluated outside the sandbox, and only calls with literal arguments and results get in.
"""

from __future__ import annotations

from dataclasses import dataclass

from archon.layers.parse_tests import parse_code_tests
from archon.sandbox import Limits, Sandbox, run_calls
from archon.sandbox.verdict import Word, of_calls

RIGHT = "def f(x): return 21 * x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A model's reply that should hold tests."""

    number: str
    title: str
    text: str
    kept: int
    dropped: int
    verdict: Word
    """Of the right program under the tests that were kept."""


TEXTS = (
    Text(number="57", title="no tests at all", text="Here are my tests:\n", kept=0, dropped=0, verdict="no_tests"),
    Text(number="58", title="only `assert True`", text="assert True\n", kept=0, dropped=1, verdict="no_tests"),
    Text(
        number="59",
        title="a syntax error beside a test",
        text="assert f(2) == 42\nassert f(3 == 63\n",
        kept=1,
        dropped=1,
        verdict="pass",
    ),
    Text(
        number="61",
        title="tests that exit, hang and fork",
        text="assert f(2) == 42\nassert f(__import__('os')._exit(0)) == 42\nassert f(sum(iter(int, 1))) == 0\n"
        "assert f(2) == [__import__('os').fork() for _ in range(9)]\n",
        kept=1,
        dropped=3,
        verdict="pass",
    ),
    Text(
        number="62",
        title="tests of the network and the clock",
        text="assert f(2) == 42\nassert f(__import__('time').time()) == 0\n"
        "assert f(len(__import__('urllib.request').request.urlopen('http://example.org').read())) == 0\n",
        kept=1,
        dropped=2,
        verdict="pass",
    ),
)


async def read_and_run(sandbox: Sandbox, text: Text) -> tuple[int, int, Word]:
    """Return how many tests were kept and dropped, and the right program's verdict under those kept."""
    parsed = parse_code_tests(text.text, "f", 8)
    report = await run_calls(sandbox, RIGHT, parsed.tests, Limits(wall_s=20.0))
    return len(parsed.tests), sum(count for _, count in parsed.dropped), of_calls(report).word
