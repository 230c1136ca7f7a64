import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from archon.errors import JournalError
from archon.report.records import Record, RunInfo
from archon.run.journal import Journal, read_run, read_trace
from archon.types import Candidate, Problem, Trace

INFO = RunInfo(
    system="s",
    task="t",
    pipeline_yaml="pipeline: []",
    pipeline_hash="h",
    seed=0,
    started_utc="2026-01-01T00:00:00+00:00",
    archon_version="0",
    machine="m",
)


def record(name: str, **changes: object) -> Record:
    return replace(Record(system="s", task="t", problem_id=name, status="answered", correct=True), **changes)


def test_what_is_put_is_read_back_in_order_of_problems(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(INFO)
        journal.put("k2", record("b"), None)
        journal.put("k1", record("a", correct=None), None)
        assert journal.done() == {"k1", "k2"}
    run = read_run(tmp_path)
    assert run.info == INFO
    assert run.records == (record("a", correct=None), record("b"))


def test_a_unit_put_twice_counts_once_and_keeps_the_newer_result(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(INFO)
        journal.put("k", record("a", correct=False), None)
        journal.put("k", record("a"), None)
    assert read_run(tmp_path).records == (record("a"),)


def test_an_error_is_kept_and_tried_again(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(INFO)
        journal.put("k", record("a", status="error", error="ModelUnavailable: down"), None)
        assert journal.done() == frozenset()
    assert read_run(tmp_path).records[0].error == "ModelUnavailable: down"


def test_the_trace_is_read_back(tmp_path: Path) -> None:
    trace = Trace(problem=Problem(id="a", prompt="?"), candidates=(Candidate(id="g#0", text="42"),))
    with Journal(tmp_path) as journal:
        journal.begin(INFO)
        journal.put("k", record("a"), trace)
    assert read_trace(tmp_path, "a") == trace
    with pytest.raises(JournalError, match="has no trace of problem 'b'"):
        read_trace(tmp_path, "b")


@pytest.mark.parametrize(("field", "other"), [("task", "u"), ("pipeline_hash", "i"), ("seed", 1)])
def test_another_run_in_the_folder_is_refused(tmp_path: Path, field: str, other: object) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(INFO)
        with pytest.raises(JournalError, match=f"holds another run: its {field} is"):
            journal.begin(replace(INFO, **{field: other}))


def test_a_second_process_is_refused_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    hold = "import sys, time; from pathlib import Path; from archon.run.journal import Journal\n"
    hold += "journal = Journal(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(JournalError, match="in use by another process"):
            Journal(tmp_path)
        os.kill(holder.pid, signal.SIGKILL)
    Journal(tmp_path).close()


def test_a_damaged_row_is_named_and_repair_drops_it_alone(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(INFO)
        journal.put("k1", record("a"), None)
        journal.put("k2", record("b"), None)
    with closing(sqlite3.connect(tmp_path / "journal.sqlite", isolation_level=None)) as db:
        db.execute("UPDATE units SET record = ? WHERE key = 'k2'", (b"\xff{",))
    with pytest.raises(JournalError, match=r"row 'k2' of .* is damaged.*--repair"):
        read_run(tmp_path)
    with Journal(tmp_path) as journal:
        assert journal.drop_damaged() == ("k2",)
        assert journal.done() == {"k1"}
    assert read_run(tmp_path).records == (record("a"),)


def test_a_file_that_is_no_journal_gives_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_bytes(b"not a database, whatever its name says" * 100)
    with pytest.raises(JournalError, match="not a database; the file is damaged: move it away"):
        Journal(tmp_path)
    with pytest.raises(JournalError, match="not a database"):
        read_run(tmp_path)


def test_an_empty_file_or_one_of_another_program_is_not_blamed_on_the_folder(tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").touch()
    with pytest.raises(JournalError, match="no such table: meta; the file is damaged"):
        read_run(tmp_path)


def test_a_folder_without_a_run_gives_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="is not a run folder: it has no journal.sqlite"):
        read_run(tmp_path / "none")
    with pytest.raises(JournalError, match="cannot be written"):
        Journal(Path("/proc/none"))


def test_a_full_disk_keeps_what_was_stored(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.begin(INFO)
        journal.put("k1", record("a"), None)
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(JournalError, match="the disk is full: free some space and run the same command"):
            for index in range(200):
                journal.put(f"x{index}", record(f"x{index}", notes=("n" * 500,)), None)
    stored = {each.problem_id for each in read_run(tmp_path).records}
    assert "a" in stored
