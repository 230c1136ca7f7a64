"""`kill -9` during a batch of code-fix jobs, then the same command: the same reports, nothing left behind."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

JOBS = 6
SAMPLES = 2
CONCURRENCY = 3
KILLS = 50
SUITE = """from app import add


def test_add():
    assert add(1, 2) == 3


def test_zero():
    assert add(0, 1) == 1
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.bubblewrap,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed"),
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    log = tmp_path / "calls.log"
    log.touch()
    command = [sys.executable, str(Path(__file__).with_name("fixing_server.py")), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1#m", log
        process.kill()


def command(folder: Path, model: str) -> list[str]:
    """Write a batch of small repositories and return the command that fixes them."""
    rows = []
    for number in range(JOBS):
        repository = folder / f"repository{number}"
        repository.mkdir()
        (repository / "app.py").write_text("def add(a, b):\n    return a - b\n")
        (repository / "test_app.py").write_text(SUITE)
        row = {
            "instance_id": f"job-{number}",
            "problem_statement": f"It is wrong in job-{number}.",
            "repo_path": repository.name,
        }
        rows.append({**row, "FAIL_TO_PASS": [], "PASS_TO_PASS": []})
    (folder / "batch.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    (folder / "p.yaml").write_text(f"name: p\npipeline:\n- generator: {{model: '{model}', n: {SAMPLES}}}\n")
    return [
        *(sys.executable, "-c", "from archon.cli import main; main()", "fix", "--set", str(folder / "batch.jsonl")),
        *("--pipeline", str(folder / "p.yaml"), "--rounds", "2", "--repeats", "1", "--sandbox", "bubblewrap"),
        *("--concurrency", str(CONCURRENCY), "--json"),
    ]


def reports(out: Path) -> dict[str, bytes]:
    """Return the files that users read, by name."""
    names = [out / "preds.jsonl", out / "p.batch.json", *sorted((out / "reports").rglob("*.json"))]
    return {str(path.relative_to(out)): path.read_bytes() for path in names}


def sandboxes() -> int:
    listed = subprocess.run(["ps", "-eo", "comm"], capture_output=True, text=True, check=True).stdout
    return listed.split().count("bwrap")


def test_fifty_kills_change_no_report_and_leave_nothing(tmp_path: Path, server: tuple[str, Path]):
    model, log = server
    words, before = command(tmp_path, model), sandboxes()
    began = time.monotonic()
    subprocess.run([*words, "--out", str(tmp_path / "whole")], check=True, capture_output=True)
    took, needed = time.monotonic() - began, len(log.read_text().split())
    whole = reports(tmp_path / "whole")
    assert json.loads(whole["p.batch.json"])["resolved_ids"] == ["job-0", "job-1", "job-3", "job-4"]

    kills, rounds, rng = 0, 0, random.Random(5)
    while kills < KILLS:
        rounds += 1
        out = tmp_path / f"killed{rounds}"
        log.write_text("")
        here = 0
        while kills < KILLS and killed_after([*words, "--out", str(out)], rng.uniform(0.1, took)):
            kills += 1
            here += 1
        subprocess.run([*words, "--out", str(out)], check=True, capture_output=True)
        assert reports(out) == whole
        repeated = len(log.read_text().split()) - needed
        assert repeated <= here * CONCURRENCY * SAMPLES, "more calls were repeated than were in flight"
    until = time.monotonic() + 10
    while sandboxes() > before and time.monotonic() < until:
        time.sleep(0.2)
    assert sandboxes() <= before


def killed_after(words: list[str], seconds: float) -> bool:
    """Run a command, kill it after some time, and say whether it was still running."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        return process.returncode == -signal.SIGKILL
    assert process.returncode == 0
    return False
