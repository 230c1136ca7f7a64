"""`archon fix` without a model: what it refuses, and the life of a job that is not run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from archon.cli import main

SUITE = "from app import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"


def run(*words: str) -> int:
    """Return the exit code of a command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["archon", *words])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "app.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "test_app.py").write_text(SUITE)
    return folder


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "needs exactly one of"),
        (("--list", "--show", "x"), 2, "needs exactly one of"),
        (("REPOSITORY", "--test", "make test"), 2, "make"),
        (("REPOSITORY", "--test", ""), 2, "--test is empty"),
        (("REPOSITORY", "--test", "pytest 'x"), 2, "--test"),
        (("REPOSITORY", "--issue", "/nowhere.md"), 2, "--issue '/nowhere.md'"),
        (("REPOSITORY", "--n", "0"), 2, "--n"),
        (("/nowhere/at/all",), 2, "/nowhere/at/all"),
        (("--show", "20260101-000000-abcdef"), 6, "no job '20260101-000000-abcdef'"),
        (("--set", "humanevalfx"), 2, "did you mean 'humanevalfix'"),
    ],
)
def test_mistakes_get_one_line(
    words: tuple[str, ...], code: int, said: str, repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    given = [str(repository) if word == "REPOSITORY" else word for word in words]
    assert run("fix", *given, "--jobs", str(tmp_path / "jobs")) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not list((tmp_path / "jobs").glob("*"))


def test_a_job_is_submitted_listed_shown_and_cancelled(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    jobs = ("--jobs", str(tmp_path / "jobs"), "--json")
    before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    assert run("fix", str(repository), "--submit", "--n", "3", "--max-tokens", "500", *jobs) == 0
    identity = json.loads(capsys.readouterr().out)["id"]
    assert run("fix", "--list", *jobs) == 0
    assert json.loads(capsys.readouterr().out) == [{"id": identity, "state": "waiting", "repository": str(repository)}]
    assert run("fix", "--show", identity, *jobs) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["budget_tokens"], shown["state"], shown["result"]) == (500, "waiting", None)
    assert "n: 3" in shown["pipeline_yaml"]
    assert run("fix", "--cancel", identity, *jobs) == 0
    assert json.loads(capsys.readouterr().out) == {"id": identity, "state": "cancelled"}
    assert {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()} == before
