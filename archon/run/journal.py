"""The truth of a run: one SQLite file in write-ahead mode, written after every finished problem.

A unit of work is one problem solved by one pipeline. Its key is a hash of everything that its result depends on, and
of nothing else, so the order of problems does not matter and a resumed run finds what is done. `kill -9` at any moment
loses only units in flight, and their finished model calls are kept too, in the completion cache that shares the folder.
One process at a time holds a run folder; the lock ends with the process, however it ends.
"""

from __future__ import annotations

import fcntl
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from archon.errors import JournalError
from archon.report.records import Record, Run, RunInfo
from archon.run.codec import dumps, loads
from archon.types import Trace

SCHEMA = "1"
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS units (
    key TEXT PRIMARY KEY, problem_id TEXT NOT NULL, status TEXT NOT NULL, record BLOB NOT NULL, trace BLOB
);
"""


class Journal:
    """A run folder opened for writing by this process alone."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, making it if needed.

        Raises:
            JournalError: it cannot be written, another process holds it, or its file is not a journal.
        """
        self.folder = folder
        self.path = folder / "journal.sqlite"
        with ExitStack() as opened:
            self._lock = opened.enter_context(_locked(folder))
            with _explained(self.path):
                self._db = opened.enter_context(closing(sqlite3.connect(self.path, isolation_level=None)))
                self._db.execute("PRAGMA journal_mode=WAL")
                self._db.execute("PRAGMA synchronous=NORMAL")
                self._db.executescript(_TABLES)
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and give the folder free; calling it twice is fine."""
        self._opened.close()

    def begin(self, info: RunInfo) -> RunInfo:
        """Store what this run is, or check that a run begun before is the same one, and return its info.

        Raises:
            JournalError: the folder holds another run.
        """
        with _explained(self.path):
            row = self._db.execute("SELECT value FROM meta WHERE key = 'info'").fetchone()
            if row is None:
                meta = [("schema", SCHEMA), ("info", dumps(info).decode())]
                self._db.executemany("INSERT INTO meta VALUES (?, ?)", meta)
                return info
        earlier = _info(self.path, row[0])
        for field in ("task", "pipeline_hash", "seed"):
            was, now = getattr(earlier, field), getattr(info, field)
            if was != now:
                raise JournalError(
                    f"run folder {str(self.folder)!r} holds another run: its {field} is {was!r}, this one's {now!r}; "
                    "give another folder with --out, or repeat the first command to resume it"
                )
        return earlier

    def done(self) -> frozenset[str]:
        """Return the keys of finished units; one that ended in an error is not finished, and is tried again."""
        with _explained(self.path):
            rows = self._db.execute("SELECT key FROM units WHERE status != 'error'").fetchall()
        return frozenset(key for (key,) in rows)

    def put(self, key: str, record: Record, trace: Trace | None) -> None:
        """Store a unit's result; a unit stored twice keeps the newer result, and is still one unit.

        Raises:
            JournalError: the disk is full or the file is damaged; what was stored before is kept.
        """
        packed = None if trace is None else zlib.compress(dumps(trace), 6)
        row = (key, record.problem_id, record.status, dumps(record), packed)
        with _explained(self.path):
            self._db.execute("INSERT OR REPLACE INTO units VALUES (?, ?, ?, ?, ?)", row)

    def drop_damaged(self) -> tuple[str, ...]:
        """Delete the units that cannot be read, so that a resumed run does them again; return their keys."""
        damaged = tuple(key for key, blob in _units(self._db, self.path) if _record_or_none(blob) is None)
        with _explained(self.path):
            self._db.executemany("DELETE FROM units WHERE key = ?", [(key,) for key in damaged])
        return damaged


def read_run(folder: Path) -> Run:
    """Return a run folder's content, ordered by problem; it may be in use by another process.

    Raises:
        JournalError: there is no journal, or a row is damaged (the message says how to mend it).
    """
    path = folder / "journal.sqlite"
    with _reading(path) as db:
        with _explained(path):
            row = db.execute("SELECT value FROM meta WHERE key = 'info'").fetchone()
        if row is None:
            raise JournalError(f"{str(path)!r} holds no run: nothing was begun in it")
        info = _info(path, row[0])
        records = []
        for key, blob in _units(db, path):
            record = _record_or_none(blob)
            if record is None:
                raise JournalError(
                    f"row {key!r} of {str(path)!r} is damaged; every other row is kept: the run's own command "
                    "with --repair drops such rows and solves their problems again"
                )
            records.append(record)
    return Run(info=info, records=tuple(sorted(records, key=lambda record: record.problem_id)))


def read_trace(folder: Path, problem_id: str) -> Trace:
    """Return the trace of one problem of a run.

    Raises:
        JournalError: the run has no such problem, or its trace is damaged.
    """
    path = folder / "journal.sqlite"
    with _reading(path) as db, _explained(path):
        rows = db.execute("SELECT trace FROM units WHERE problem_id = ?", (problem_id,)).fetchall()
    for (packed,) in rows:
        if packed is not None:
            try:
                return loads(Trace, zlib.decompress(packed))
            except (ValueError, zlib.error) as error:
                raise JournalError(f"the trace of {problem_id!r} in {str(path)!r} is damaged: {error}") from error
    raise JournalError(f"{str(path)!r} has no trace of problem {problem_id!r}")


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.is_file():
        raise JournalError(f"{str(path.parent)!r} is not a run folder: it has no journal.sqlite")
    with _explained(path):
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        yield db
    finally:
        db.close()


def _units(db: sqlite3.Connection, path: Path) -> list[tuple[str, bytes]]:
    with _explained(path):
        return db.execute("SELECT key, record FROM units").fetchall()


def _record_or_none(blob: object) -> Record | None:
    with suppress(ValueError):
        if isinstance(blob, (bytes, str)):
            return loads(Record, blob)
    return None


def _info(path: Path, text: str) -> RunInfo:
    try:
        return loads(RunInfo, text)
    except ValueError as error:
        raise JournalError(f"the run info in {str(path)!r} cannot be read: {error}") from error


def _locked(folder: Path) -> IO[str]:
    """Return the folder's lock file, held until it is closed or this process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise JournalError(f"run folder {str(folder)!r} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise JournalError(f"run folder {str(folder)!r} is in use by another process") from error
    return lock


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise sqlite's errors as a JournalError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "full" in text:
            advice = "the disk is full: free some space and run the same command to resume; what was stored is kept"
        elif any(sign in text for sign in ("malformed", "not a database", "no such table", "no such column")):
            advice = "the file is damaged: move it away to begin again"
        else:
            advice = "check that the folder can be written"
        raise JournalError(f"{str(path)!r}: {text}; {advice}") from error
