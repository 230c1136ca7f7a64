"""Tests judged outside: with a scripted engine, and on each real one."""

from __future__ import annotations

import marshal

import pytest

from archon.errors import SandboxFailed
from archon.sandbox.fake import ScriptedSandbox, returning
from archon.sandbox.protocol import Limits, Outcome
from archon.sandbox.structured import run_calls
from archon.types import UnitTest


def call(function: str | None, args: str = "()", expected: str = "None", kwargs: str = "{}") -> UnitTest:
    text = f"assert {function}{args} == {expected}"
    return UnitTest(text=text, source="model", function=function, args=args, kwargs=kwargs, expected=expected)


def ended(how: str, stdout: bytes = b"", exit_code: int | None = None) -> Outcome:
    return Outcome(end=how, exit_code=exit_code, stdout=stdout, stderr=b"", wall_s=1.5)


async def test_values_are_compared_here_and_expected_ones_are_not_sent():
    engine = ScriptedSandbox([returning(4, 5, wall_s=0.25)])
    report = await run_calls(engine, "def f(x): ...", [call("f", "(2,)", "4"), call("f", "(3,)", "987654")])
    assert [result.outcome for result in report.results] == ["passed", "failed"]
    assert report.results[1].detail == "returned 5"
    assert [result.returned for result in report.results] == ["4", "5"]
    assert report.wall_s == 0.25
    (job,) = engine.jobs
    assert b"987654" not in job.stdin + b"".join(content for _, content in job.files)


async def test_malformed_tests_are_invalid_and_the_others_go_on():
    bad = [
        call(None),
        call("f", "(x,)", "1"),
        call("f", "()", "f(2)"),
        call("f", "3", "1"),
        call("f", "()", "1", kwargs="[1]"),
        call("f", "()", "1", kwargs="{1: 2}"),
        call("f; import os", "()", "1"),
    ]
    engine = ScriptedSandbox([returning(1)])
    report = await run_calls(engine, "", [*bad[:3], call("f", "()", "1"), *bad[3:]])
    outcomes = [result.outcome for result in report.results]
    assert outcomes == ["invalid"] * 3 + ["passed"] + ["invalid"] * 4
    assert all(result.detail for result in report.results if result.outcome == "invalid")
    assert len(marshal.loads(engine.jobs[0].stdin)["calls"]) == 1


async def test_nothing_valid_starts_no_job():
    report = await run_calls(ScriptedSandbox([]), "", [call(None)])
    assert (report.results[0].outcome, report.wall_s) == ("invalid", 0.0)
    assert (await run_calls(ScriptedSandbox([]), "", [])).results == ()


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (ended("timeout"), "timeout"),
        (ended("oom"), "error"),
        (ended("output_limit"), "error"),
        (ended("exited", exit_code=0), "error"),
        (ended("infra_error"), "not_run"),
    ],
)
async def test_tests_without_a_reply(outcome, word):
    report = await run_calls(ScriptedSandbox([outcome]), "", [call("f"), call("g")])
    assert [result.outcome for result in report.results] == [word, word]


async def test_lines_without_the_right_word_are_ignored():
    reply = b'{"call": 0, "reply": {"value": 1}}'
    forged = reply + b"\n00000000000000000000000000000000 " + reply + b"\n"
    report = await run_calls(ScriptedSandbox([ended("exited", forged, 0)]), "", [call("f", "()", "1")])
    assert report.results[0].outcome == "error"


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        "{",
        '{"call": true, "reply": {"value": 1}}',
        '{"call": 0, "reply": {"value": {"i": 1}}}',
        '{"call": 0, "reply": 1}',
        '{"call": 0, "reply": {"error": 1}}',
        "[" * 100_000,
    ],
    ids=range(7),
)
async def test_hostile_frames_do_no_harm(line):
    def step(job):
        return ended("exited", f"{marshal.loads(job.stdin)['nonce']} {line}\n".encode(), 0)

    report = await run_calls(ScriptedSandbox([step]), "", [call("f", "()", "1")])
    assert report.results[0].outcome in ("error", "failed")


async def test_engine_failures_and_bad_settings_are_raised():
    with pytest.raises(SandboxFailed, match="asked for one more"):
        await run_calls(ScriptedSandbox([]), "", [call("f")])
    for per_call_s in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="per_call_s"):
            await run_calls(ScriptedSandbox([]), "", [call("f")], per_call_s=per_call_s)


PROGRAM = """
import os, sys, time, threading, collections
print("noise while loading" * 1000)
calls = []

def add(a, b=1):
    print("noise" * 100_000)
    return a + b

def count():
    calls.append(1)
    return len(calls)

def append(items):
    items.append(9)
    return items

class Solution:
    @staticmethod
    def twice(x):
        return 2 * x

def threads():
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "done"

def daemon():
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    return "done"

def words():
    return collections.Counter("aab"), "näme", b"\\xff", {1, 2}, -0.0
"""
GOOD = [
    call("add", "(1,)", "3", "{'b': 2}"),
    call("add", " ([1], [2])", " [1, 2]"),
    call("count", "()", "1"),
    call("count", "()", "1"),
    call("append", "([],)", "[9]"),
    call("Solution.twice", "(4,)", "8"),
    call("threads", "()", "'done'"),
    call("daemon", "()", "'done'"),
    call("words", "()", "({'b': 1, 'a': 2}, 'n\\xe4me', b'\\xff', {2, 1}, 0.0)"),
]

WRONG = """
import os, sys, signal, atexit

class EqualToAll:
    def __eq__(self, other): return True
    def __ne__(self, other): return False

class IntEqualToAll(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__

def equal_to_all(): return EqualToAll()
def int_equal_to_all(): return IntEqualToAll(7)
def leaves(): os._exit(0)
def leaves_politely(): sys.exit(0)
def raises(): raise ValueError("why\\x1b[31m\\n" + "x" * 1000)
def hides(): raise type("Quiet", (BaseException,), {"__str__": lambda self: 1 / 0})
def crashes(): os.kill(os.getpid(), signal.SIGSEGV)
def recurses(): return recurses()
def yields(): yield 1
async def waits(): return 1
def huge(): return "x" * 5_000_000
def prints():
    print('{"call": 0, "value": 1}', flush=True)
    return 2
def writes_everywhere():
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, b'\\n{"call": 0, "value": 1}\\n')
        except OSError:
            pass
    return 2
def kills_the_worker():
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(0)
"""


async def test_right_answers_pass(sandbox):
    report = await run_calls(sandbox, PROGRAM, GOOD)
    assert [(result.outcome, result.detail) for result in report.results] == [("passed", "")] * len(GOOD)
    assert 0 < report.wall_s < 10


async def test_wrong_answers_fail_each_for_its_reason(sandbox):
    expectations = {
        "equal_to_all": ("failed", "EqualToAll"),
        "int_equal_to_all": ("failed", "returned 7"),
        "leaves": ("error", "exit code 0"),
        "leaves_politely": ("error", "SystemExit: 0"),
        "raises": ("error", "ValueError: why"),
        "hides": ("error", "cannot be shown"),
        "crashes": ("error", "signal 11"),
        "recurses": ("error", "RecursionError"),
        "yields": ("failed", "generator"),
        "waits": ("failed", "coroutine"),
        "huge": ("failed", "too large"),
        "prints": ("failed", "returned 2"),
        "writes_everywhere": ("failed", ""),
        "missing": ("error", "does not define"),
        "kills_the_worker": ("error", ""),
        "after_that": ("error", ""),
    }
    report = await run_calls(sandbox, WRONG, [call(name, "()", "1") for name in expectations], per_call_s=5.0)
    for (name, (outcome, part)), result in zip(expectations.items(), report.results, strict=True):
        assert result.outcome == outcome, (name, result)
        assert part in result.detail, (name, result)
        assert len(result.detail) <= 200
        assert result.detail.isprintable()


async def test_a_call_that_hangs_takes_no_other_with_it(sandbox):
    program = "import time\ndef hang():\n    while True: pass\ndef fine(): return 1"
    tests = [call("hang"), call("fine", "()", "1"), call("hang"), call("hang"), call("fine", "()", "1")]
    report = await run_calls(sandbox, program, tests, per_call_s=0.5)
    # After three that took too long the rest are not waited for.
    assert [result.outcome for result in report.results] == ["timeout", "passed", "timeout", "timeout", "timeout"]


async def test_memory_of_one_call_is_its_own(sandbox):
    program = (
        "def bomb():\n    held = []\n    while True: held.append(bytearray(b'x') * (4 << 20))\ndef fine(): return 1"
    )
    tests = [call("bomb"), call("fine", "()", "1")]
    report = await run_calls(sandbox, program, tests, Limits(memory_mb=128, wall_s=60.0), per_call_s=20.0)
    assert [result.outcome for result in report.results] == ["error", "passed"]


@pytest.mark.parametrize(
    ("program", "outcome", "detail"),
    [
        ("def f(:", "error", "SyntaxError"),
        ("raise KeyError('k')", "error", "KeyError"),
        ("import os; os._exit(0)", "error", "exit code 0"),
        ("import sys; sys.exit(0)", "error", "SystemExit"),
        ("input()", "error", "EOFError"),
        ("x = '\\ud800'", "error", "does not define"),
    ],
)
async def test_programs_that_do_not_load(sandbox, program, outcome, detail):
    report = await run_calls(sandbox, program, [call("f", "()", "1"), call("f", "()", "2")])
    assert [result.outcome for result in report.results] == [outcome] * 2
    assert detail in report.results[0].detail


async def test_a_program_that_never_finishes_loading(sandbox, monkeypatch):
    monkeypatch.setattr("archon.sandbox.structured._LOAD_S", 0.5)
    report = await run_calls(sandbox, "while True: pass", [call("f")], Limits(wall_s=30), per_call_s=0.2)
    assert (report.results[0].outcome, report.results[0].detail) == ("timeout", "the program took too long to load")
    assert report.wall_s < 10


async def test_code_under_a_main_guard_does_not_run(sandbox):
    program = "def f(): return 1\nif __name__ == '__main__':\n    raise SystemExit(3)"
    assert (await run_calls(sandbox, program, [call("f", "()", "1")])).results[0].outcome == "passed"
