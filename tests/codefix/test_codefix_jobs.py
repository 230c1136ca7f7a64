"""Jobs on disk: what is stored comes back, and states are read off what is true."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from archon.codefix.jobs import Jobs, Request, Result
from archon.codefix.types import File
from archon.errors import RunError

TREE = (
    File(path="app.py", content=b"x = 1\r\n"),
    File(path="bin/run", content=b"#!/bin/sh\n", executable=True),
    File(path="naïve/ü.txt", content=b"\xff\x00"),
)
ASKED = Request(
    id="",
    repository="/somewhere",
    submitted_utc="2026-01-02T03:04:05+00:00",
    statement="It is wrong.",
    test_command=("pytest", "-q"),
    pipeline_yaml="name: p\npipeline:\n- generator: {model: m, n: 2}\n",
    rounds=2,
    repeats=1,
    seed=3,
    test_seconds=60.0,
    budget_tokens=1000,
    links=("link",),
)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(folder=tmp_path / "jobs")


def test_a_job_comes_back_as_it_was_submitted(jobs: Jobs):
    stored = jobs.submit(ASKED, TREE)
    assert jobs.request(stored.id) == stored
    instance = jobs.instance(stored.id)
    assert instance.tree == TREE
    assert (instance.statement, instance.test_command) == ("It is wrong.", ("pytest", "-q"))
    assert [each.id for each in jobs] == [stored.id]


def test_states_are_read_off(jobs: Jobs):
    identity = jobs.submit(ASKED, TREE).id
    assert jobs.state(identity) == "waiting"
    with (jobs.home(identity) / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert jobs.state(identity) == "running"
        assert jobs.cancel(identity) == "running"  # until whoever runs it lets go
    assert jobs.state(identity) == "cancelled"
    jobs.revive(identity)
    assert jobs.state(identity) == "waiting"
    jobs.finish(identity, Result(status="pass", fixed=True, calls=2, tokens=10))
    assert jobs.state(identity) == "done"
    assert jobs.result(identity) == Result(status="pass", fixed=True, calls=2, tokens=10)
    assert jobs.cancel(identity) == "done"


def test_an_unknown_job_gets_the_nearest_and_paths_are_no_ids(jobs: Jobs):
    identity = jobs.submit(ASKED, TREE).id
    with pytest.raises(RunError, match=f"did you mean '{identity}'"):
        jobs.request(identity[:-1] + "x")
    with pytest.raises(RunError, match="no job '../x'"):
        jobs.home("../x")


def test_a_half_written_job_is_none_and_a_damaged_one_is_named(jobs: Jobs):
    (jobs.folder / "half").mkdir(parents=True)
    assert list(jobs) == []
    identity = jobs.submit(ASKED, TREE).id
    (jobs.home(identity) / "request.json").write_text("{")
    with pytest.raises(RunError, match="is damaged"):
        jobs.request(identity)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot store a job"):
        Jobs(folder=tmp_path / "file").submit(ASKED, TREE)
