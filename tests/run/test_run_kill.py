"""`kill -9` during an evaluation, then the same command: the same final table, at most the calls in flight repeated."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PROBLEMS = 24
CONCURRENCY = 4
SAMPLES = 3
KILLS = 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    log = tmp_path / "calls.log"
    log.touch()
    command = [sys.executable, str(Path(__file__).with_name("counting_server.py")), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1#m", log
        process.kill()


def write_inputs(folder: Path, model: str) -> list[str]:
    pipeline = folder / "pipeline.yaml"
    pipeline.write_text(
        f"name: p\npipeline:\n- generator: {{model: '{model}', n: {SAMPLES}, temperature: 0.7}}\n"
        "- critic\n- ranker: {top_k: 2}\n"
    )
    task = folder / "task.jsonl"
    rows = [
        {"id": f"q{i}", "kind": "maths", "prompt": f"What is {i} modulo 3?", "answer": str(i % 3)}
        for i in range(PROBLEMS)
    ]
    task.write_text("\n".join(map(json.dumps, rows)) + "\n")
    program = "from archon.cli import main; main()"
    return [
        *(sys.executable, "-c", program, "eval", str(pipeline), "--task", str(task)),
        *("--concurrency", str(CONCURRENCY), "--json"),
    ]


def outcome(stdout: bytes) -> list[tuple[object, ...]]:
    records = json.loads(stdout)["runs"][0]["records"]
    return [
        (r["problem_id"], r["status"], r["correct"], [s["correct"] for s in r["samples"]], r["usage"]["calls"])
        for r in records
    ]


@pytest.mark.slow
def test_twenty_kills_change_nothing_and_repeat_only_calls_in_flight(tmp_path: Path, server: tuple[str, Path]) -> None:
    model, log = server
    command = write_inputs(tmp_path, model)
    reference = subprocess.run([*command, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    needed = log.read_text().split()
    assert len(outcome(reference.stdout)) == PROBLEMS
    assert max(Counter(needed).values()) == 1

    kills, rounds, rng = 0, 0, random.Random(7)
    while kills < KILLS:
        rounds += 1
        log.write_text("")
        out = tmp_path / f"killed{rounds}"
        kills_here = 0
        while kills < KILLS:
            before = len(log.read_text().split())
            target = before + rng.randint(0, len(needed) // 6)
            process = subprocess.Popen([*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if kill_after(process, log, target):
                kills += 1
                kills_here += 1
                continue
            assert process.returncode == 0, process.stderr and process.stderr.read().decode()
            break
        final = subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
        assert outcome(final.stdout) == outcome(reference.stdout)
        calls = Counter(log.read_text().split())
        assert set(calls) == set(needed)
        repeated = sum(calls.values()) - len(calls)
        assert repeated <= kills_here * CONCURRENCY * SAMPLES, "more calls were repeated than were in flight"
    assert kills == KILLS


def kill_after(process: subprocess.Popen[bytes], log: Path, calls: int) -> bool:
    """Kill the process once the server has seen that many calls; say whether it was still running."""
    while process.poll() is None:
        if len(log.read_text().split()) > calls:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            return process.returncode == -signal.SIGKILL
        time.sleep(0.002)
    process.communicate()
    return False
