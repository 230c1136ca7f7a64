import asyncio
import os
import threading
import time

import pytest

from archon.tasks import maths_checker
from archon.tasks.maths_checker import MathsChecker


@pytest.fixture(scope="module")
def checker():
    checker = MathsChecker(limit_s=8.0)
    yield checker
    checker.close()


@pytest.mark.parametrize(
    ("gold", "answer", "equal"),
    [
        ("18", "18.00", True),
        ("18", "18.0000001", False),
        ("\\frac{1}{3}", "0.3333333", True),
        ("0.3", "0.4", False),
        ("2\\sqrt{3}", "\\sqrt{12}", True),
        ("x^2+2x+1", "(x+1)^2", True),
        ("\\frac{\\pi}{2}", "\\frac{\\pi}{3}", False),
        ("(1,2)", "(2,1)", False),
        ("\\text{Evelyn}", "Carla", False),
    ],
)
def test_compares(checker, gold, answer, equal):
    assert checker.compare(gold, answer).equal is equal


async def test_works_in_asyncio_and_in_other_threads(checker):
    pairs = [("2\\sqrt{3}", "\\sqrt{12}"), ("2\\sqrt{3}", "\\sqrt{13}")] * 4
    found = await asyncio.gather(*(asyncio.to_thread(checker.compare, *pair) for pair in pairs))
    assert [comparison.equal for comparison in found] == [True, False] * 4


def test_a_hanging_comparison_is_ended_and_the_next_one_works(tmp_path, monkeypatch):
    worker = tmp_path / "worker.py"
    flag = tmp_path / "hung"
    worker.write_text(
        "import pathlib, sys, time, json\n"
        "print('ready', flush=True)\n"
        f"flag = pathlib.Path({str(flag)!r})\n"
        "for line in sys.stdin:\n"
        "    if not flag.exists():\n"
        "        flag.touch(); time.sleep(600)\n"
        "    print(json.dumps({'equal': True}), flush=True)\n"
    )
    monkeypatch.setattr(maths_checker, "_WORKER", worker)
    checker = MathsChecker(limit_s=1.0)
    began = time.monotonic()
    hung = checker.compare("x", "y")
    assert hung.equal is False
    assert "within 1 s" in hung.how
    assert time.monotonic() - began < 10
    assert checker.compare("x", "y").equal is True
    checker.close()


def test_towers_of_powers_do_not_hang():
    checker = MathsChecker(limit_s=4.0)
    began = time.monotonic()
    assert checker.compare("x+1", "x^{9^{9^{9^{9}}}}+\\sqrt{2}").equal is False
    assert time.monotonic() - began < 30
    checker.close()


def test_a_worker_that_cannot_start_is_not_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(maths_checker, "_WORKER", tmp_path / "absent.py")
    assert MathsChecker().compare("x", "y").equal is None


def test_no_process_is_left_when_the_checker_is_forgotten():
    checker = MathsChecker()
    assert checker.compare("\\sqrt{8}", "2\\sqrt{2}").equal is True
    pid = checker._process.pid
    del checker
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_math_verify_refuses_threads_without_our_process():
    # The reason for the process: should this begin to pass in a thread, the worker could go.
    from math_verify import parse

    failures = []

    def target():
        try:
            parse("$1$")
        except ValueError as error:
            failures.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    assert len(failures) == 1
