"""Test programs in the candidate's own process: with a scripted engine, and on each real one."""

from __future__ import annotations

import pytest

from archon.sandbox.fake import ScriptedSandbox, finishing, raising
from archon.sandbox.program import run_program
from archon.sandbox.protocol import Limits, Outcome


def exited(stdout: bytes, exit_code: int = 0) -> Outcome:
    return Outcome(end="exited", exit_code=exit_code, stdout=stdout, stderr=b"", wall_s=0.5)


async def test_only_the_word_and_exit_code_zero_pass():
    def finished_with_another_code(job):
        good = finishing()(job)
        return exited(good.stdout, 1)

    script = [finishing(wall_s=0.5), finished_with_another_code, exited(b""), exited(b'{"finished": "guess"}\n')]
    engine = ScriptedSandbox(script)
    results = [await run_program(engine, "pass") for _ in script]
    assert [result.outcome for result in results] == ["passed", "error", "failed", "tampered"]
    assert results[0].wall_s == 0.5


@pytest.mark.parametrize("how", ["timeout", "oom", "output_limit", "infra_error"])
async def test_limits_keep_their_names(how):
    outcome = Outcome(end=how, exit_code=None, stdout=b"", stderr=b"", wall_s=1.0, detail="said")
    assert (await run_program(ScriptedSandbox([outcome]), "")).outcome == how


async def test_more_than_one_result_is_tampering():
    def twice(job):
        good = finishing()(job)
        return exited(b'{"raised": "KeyError"}\n' + good.stdout)

    assert (await run_program(ScriptedSandbox([twice]), "")).outcome == "tampered"


@pytest.mark.parametrize(
    ("frame", "word"),
    [
        ('"OSError", "errno": 28', "disk_limit"),
        ('"OSError", "errno": 27', "disk_limit"),
        ('"BlockingIOError", "errno": 11', "pids_limit"),
        ('"RuntimeError", "message": "can\'t start new thread"', "pids_limit"),
        ('"MemoryError"', "oom"),
        ('"OSError", "errno": 2', "error"),
        ('"OSError", "errno": [28]', "error"),
    ],
)
async def test_limits_that_a_program_meets_as_exceptions(frame, word):
    engine = ScriptedSandbox([exited(b'{"raised": ' + frame.encode() + b"}\n", 1)])
    assert (await run_program(engine, "")).outcome == word


async def test_exceptions_are_named():
    engine = ScriptedSandbox([raising("AssertionError", "no"), raising("KeyError", "\x1b[31m"), exited(b"[[[", 3)])
    results = [await run_program(engine, "") for _ in range(3)]
    assert [result.outcome for result in results] == ["failed", "error", "error"]
    assert results[0].detail == "AssertionError: no"
    assert results[1].detail.isprintable()
    assert "exit code 3" in results[2].detail


CANDIDATE = "def add(a, b):\n    return a + b\n"
CHECK = "\ndef check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(-1, 1) == 0\n\ncheck(add)\n"


async def test_a_right_program_passes(sandbox):
    result = await run_program(sandbox, CANDIDATE + CHECK)
    assert (result.outcome, result.detail) == ("passed", "")
    assert 0 < result.wall_s < 10


@pytest.mark.parametrize(
    ("candidate", "outcome", "detail"),
    [
        ("def add(a, b): return a - b", "failed", "AssertionError"),
        ("def add(a, b): return nothing", "error", "NameError"),
        ("def add(a, b): return add(a, b)", "error", "RecursionError"),
        ("def add(a, b:", "error", "SyntaxError"),
        ("def add(a, b):\n    import os; os._exit(0)", "failed", "exit code 0"),
        ("import os; os._exit(0)", "failed", "exit code 0"),
        ("def add(a, b):\n    raise SystemExit(0)", "failed", "SystemExit"),
        ("import atexit, os; atexit.register(lambda: os._exit(0))\ndef add(a, b): return 0", "failed", "Assertion"),
        ("def add(a, b):\n    print('{\"finished\": true}'); print('2 passed'); return 0", "failed", "Assertion"),
        ("import unittest\ndef add(a, b): raise unittest.SkipTest('later')", "error", "SkipTest"),
        ("import os, signal\ndef add(a, b): os.kill(os.getpid(), signal.SIGSEGV)", "error", "exit code"),
        ("import sys\nsys.stdin.read(); input()\ndef add(a, b): return a + b", "error", "EOFError"),
    ],
)
async def test_wrong_programs_do_not_pass(sandbox, candidate, outcome, detail):
    result = await run_program(sandbox, candidate + CHECK)
    assert (result.outcome, detail in result.detail) == (outcome, True), result


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [
        ("while True: pass", "timeout"),
        ("held = []\nwhile True: held.append(bytearray(b'x') * (4 << 20))", "oom"),
        ("while True: print('x' * 1000)", "output_limit"),
    ],
)
async def test_limits(sandbox, candidate, outcome):
    limits = Limits(wall_s=2.0, memory_mb=128, output_bytes=100_000)
    if outcome == "oom":
        limits = Limits(wall_s=20.0, memory_mb=128)
    assert (await run_program(sandbox, candidate + CHECK, limits)).outcome == outcome


async def test_numpy_is_in_the_docker_image(sandbox):
    # Importing numpy for the first time reads 20 MB, which takes a busy machine more than the usual ten seconds.
    limits = Limits(wall_s=90.0)
    result = await run_program(sandbox, "import numpy\nassert numpy.allclose([1.0], [1.0 + 1e-9])", limits)
    assert result.outcome == "passed" or sandbox.engine == "bubblewrap"


async def test_honest_programs_may_do_ordinary_things(sandbox):
    source = """
import subprocess, sys, tempfile, threading
thread = threading.Thread(target=lambda: None); thread.start(); thread.join()
with tempfile.NamedTemporaryFile() as file: file.write(b"x" * 100_000)
assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\\n"
print("log " * 100_000)
if __name__ == "__main__": sys.exit(1)
"""
    result = await run_program(sandbox, source)
    assert (result.outcome, result.detail) == ("passed", "")
