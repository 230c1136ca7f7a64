"""One job from submission to its files, in a real sandbox with a scripted model."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from archon.codefix.fix import Cancelled, run_job
from archon.codefix.jobs import Jobs, Request
from archon.codefix.types import File
from archon.errors import ModelUnavailable
from archon.run.runtime import Runtime
from archon.testing import Reply, ScriptedModel

pytestmark = [
    pytest.mark.bubblewrap,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed"),
]

SUITE = b"from app import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
TREE = (
    File(path="app.py", content=b"def add(a, b):\n    return a - b\n"),
    File(path="test_app.py", content=SUITE),
)
ASKED = Request(
    id="",
    repository="/somewhere",
    submitted_utc="2026-01-02T03:04:05+00:00",
    statement="Adding is wrong.",
    test_command=("pytest", "-q"),
    pipeline_yaml="name: p\npipeline:\n- generator: {model: local/scripted, n: 1}\n",
    rounds=2,
    repeats=2,
    seed=0,
    test_seconds=60.0,
)
RIGHT = "```python\n# app.py\ndef add(a, b):\n    return a + b\n```"
WRONG = RIGHT.replace("a + b", "a * b")


class Scripts(Runtime):
    """A runtime whose one model is scripted."""

    scripted: ScriptedModel

    async def model(self, name: str) -> ScriptedModel:
        return self.scripted


async def run(jobs: Jobs, identity: str, *replies: Reply, latency_s: float = 0.0):
    async with Scripts(engine="bubblewrap") as runtime:
        runtime.scripted = ScriptedModel(replies, latency_s=latency_s)
        return await run_job(jobs, identity, runtime)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(folder=tmp_path)


async def test_a_fixed_job_leaves_a_patch_a_prediction_and_a_trace(jobs: Jobs):
    identity = jobs.submit(ASKED, TREE).id
    result = await run(jobs, identity, WRONG, RIGHT)
    assert (result.status, result.fixed, result.calls) == ("pass", True, 2)
    assert jobs.state(identity) == "done"
    home = jobs.home(identity)
    assert "+    return a + b\n" in (home / "fix.patch").read_text()
    (line,) = (home / "preds.jsonl").read_text().splitlines()
    assert json.loads(line)["instance_id"] == identity
    assert len(json.loads((home / "trace.json").read_text())["spans"]) == 4  # two rounds of two layers


async def test_a_job_without_a_fix_says_so_and_keeps_its_best_patch(jobs: Jobs):
    identity = jobs.submit(ASKED, TREE).id
    result = await run(jobs, identity, WRONG, "no code")
    assert (result.status, result.fixed) == ("fail", False)
    assert "a * b" in (jobs.home(identity) / "fix.patch").read_text()


async def test_a_model_that_is_down_does_not_end_a_job(jobs: Jobs):
    identity = jobs.submit(ASKED, TREE).id
    result = await run(jobs, identity, ModelUnavailable("down"))
    assert result.status == "error"
    assert "down" in result.detail
    assert jobs.state(identity) == "waiting"
    assert (await run(jobs, identity, RIGHT)).fixed
    assert jobs.state(identity) == "done"


async def test_a_job_that_is_cancelled_while_it_runs_stops_and_can_go_on(jobs: Jobs):
    identity = jobs.submit(ASKED, TREE).id
    work = asyncio.ensure_future(run(jobs, identity, RIGHT, latency_s=60.0))
    while jobs.state(identity) != "running":
        await asyncio.sleep(0.05)
    assert jobs.cancel(identity) == "running"
    with pytest.raises(Cancelled):
        await asyncio.wait_for(work, timeout=30)
    assert jobs.state(identity) == "cancelled"
    jobs.revive(identity)
    assert (await run(jobs, identity, RIGHT)).fixed
