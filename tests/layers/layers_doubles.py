"""Doubles for the tests of layers: a scripted judge by prompt, and a sandbox whose programs are this suite's own."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from archon.errors import SandboxFailed
from archon.models.protocol import Request
from archon.types import Candidate, Problem, Trace, text_of

CODE = Problem(
    id="p1",
    kind="code",
    entry_point="f",
    prompt="Complete this function.\n\n```python\ndef f(x):\n    '''Double x.\n\n    >>> f(2)\n    4\n    '''\n```",
)
PLAIN = Problem(id="p2", kind="code", entry_point="f", prompt="Write a Python function f that doubles its argument.")
TEXT = Problem(id="p3", prompt="Say hello.")
MATHS = Problem(id="p4", kind="maths", prompt="What is 2 + 3?")


def program(body: str) -> str:
    return f"```python\ndef f(x):\n    return {body}\n```"


@dataclass(frozen=True)
class Result:
    outcome: str
    detail: str = ""
    returned: str | None = None


@dataclass(frozen=True)
class Report:
    results: tuple[Result, ...]
    wall_s: float = 0.5


@dataclass
class HereSandbox:
    """Runs programs in this process: only those that these tests write themselves. Counts jobs."""

    engine: str = "here"
    programs: list[str] = field(default_factory=list)
    broken: tuple[str, ...] = ()
    """Parts of programs on which the engine fails."""

    async def run(self, job):
        raise AssertionError("the double judges through run_calls alone")

    async def close(self):
        pass


async def run_calls_here(sandbox, source, tests, *, per_call_s, **_):
    sandbox.programs.append(source)
    if any(part in source for part in sandbox.broken):
        raise SandboxFailed("the engine is down")
    space: dict = {}
    exec(source, space)
    return Report(results=tuple(_call(space, test) for test in tests))


def _call(space, test):
    args, kwargs = ast.literal_eval(test.args), ast.literal_eval(test.kwargs)
    try:
        value = space[test.function](*args, **kwargs)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return Result("error", detail=f"raised {type(error).__name__}")
    if value == ast.literal_eval(test.expected):
        return Result("passed")
    return Result("failed", detail="a wrong value", returned=repr(value))


def prompt_of(request: Request) -> str:
    return "\n".join(text_of(message.content) for message in request.messages)


def step_of(request: Request) -> str:
    """Return which prompt a request is, by its last turn."""
    last = text_of(request.messages[-1].content)
    marks = {
        "Judge every candidate answer": "critique",
        "from best to worst": "ranking",
        "Which candidate answer is better": "comparison",
        "one complete best answer": "fusion",
        "These are earlier answers": "revision",
        "Check step by step": "reasoning",
        "Given this check": "verdict",
        "Test it; do not write it": "code_tests",
        "short statements": "prose_tests",
        "For each test, say": "statement_verdicts",
    }
    return next((step for mark, step in marks.items() if mark in last), "generation")


def replies(**given: str | Callable[[Request, int], object]):
    """Return a script that answers each kind of prompt; `generation` and the like may be functions."""
    usual: dict = {
        "generation": lambda request, i: program("x * 2") if "def f" in prompt_of(request) else f"answer {i}",
        "critique": "[1] good\n[2] bad\n[3] bad\n[4] bad",
        "ranking": lambda request, i: " > ".join(
            f"[{k}]" for k in range(9, 0, -1) if f"<candidate {k}>" in prompt_of(request)
        ),
        "comparison": "[1]",
        "fusion": lambda request, i: f"fused {i}",
        "revision": "revised",
        "reasoning": "It looks right.",
        "verdict": "[Correct]",
        "code_tests": "assert f(3) == 6\nassert f(0) == 0\nassert f(-4) == -8",
        "prose_tests": "1. It greets.\n2. It is short.",
        "statement_verdicts": "Test 1: [Passed]\nTest 2: [Passed]",
    }
    usual |= given

    def script(request: Request, index: int):
        reply = usual[step_of(request)]
        return reply(request, index) if callable(reply) else reply

    return script


def trace_of(*texts: str, problem: Problem = TEXT, **more) -> Trace:
    candidates = tuple(Candidate(id=f"generator#{i}", text=text, model="m") for i, text in enumerate(texts))
    return Trace(problem=problem, candidates=candidates, **more)
