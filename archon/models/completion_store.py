"""Completions in one SQLite file, which several processes may share.

A row is one completion: `key` says what was asked (see `cached.key_of`), `sample` which of the samples it is. When two
processes ask for the same sample at once, the later answer is the one that is kept.
"""

from __future__ import annotations

import sqlite3
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path

import orjson

from archon.errors import JournalError
from archon.models.protocol import Completion
from archon.types import Usage

_VERSION = 1
_BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE completions (
    key BLOB NOT NULL, sample INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (key, sample)
) WITHOUT ROWID
"""
_USAGE = (
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cached_prompt_tokens",
    "cost_usd",
    "critical_s",
)


class CompletionStore:
    """A file of completions. It opens when first used, and again after `close`; threads may share it."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._full = False

    def get(self, key: bytes, start: int, n: int) -> dict[int, Completion]:
        """Return those of the samples `start` to `start + n - 1` that are stored, by index.

        A row that cannot be read is left out, with a warning.

        Raises:
            JournalError: the file is not a store of completions, or is damaged.
        """
        query = "SELECT sample, body FROM completions WHERE key = ? AND sample >= ? AND sample < ?"
        with self._lock:
            try:
                rows = self._open().execute(query, (key, start, start + n)).fetchall()
            except sqlite3.Error as error:
                raise self._damaged(error) from error
        found = {sample: self._read(sample, body) for sample, body in rows}
        return {sample: completion for sample, completion in found.items() if completion is not None}

    def put(self, key: bytes, completions: Mapping[int, Completion]) -> None:
        """Store completions by sample index, in one transaction.

        A store that cannot be written (a full disk, a read-only file) warns once and drops them: the answers are paid
        for, and stopping would lose them.
        """
        rows = [(key, sample, _body(completion)) for sample, completion in completions.items()]
        with self._lock:
            try:
                with self._open() as connection:
                    connection.executemany("INSERT OR REPLACE INTO completions VALUES (?, ?, ?)", rows)
            except sqlite3.OperationalError as error:
                if not self._full:
                    self._full = True
                    warnings.warn(
                        f"cache {str(self.path)!r}: {error}; answers are returned but not kept until that is mended",
                        RuntimeWarning,
                        stacklevel=2,
                    )
            except sqlite3.DatabaseError as error:
                raise self._damaged(error) from error
            else:
                self._full = False

    def close(self) -> None:
        """Close the file; calling it twice is fine."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalError(f"cache {str(self.path)!r} cannot be opened: {error}") from error
        connection = sqlite3.connect(self.path, timeout=_BUSY_S, check_same_thread=False)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode=WAL")
        # A power cut may lose the last commits, never the file; a killed process loses nothing.
        connection.execute("PRAGMA synchronous=NORMAL")
        if _version(connection) == _VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if (version := _version(connection)) == _VERSION:
                return
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version or tables:
                raise JournalError(
                    f"{str(self.path)!r} is not a cache of completions of version {_VERSION}; name another"
                )
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA user_version={_VERSION}")

    def _damaged(self, error: sqlite3.Error) -> JournalError:
        return JournalError(f"cache {str(self.path)!r} cannot be read: {error}; move it away to start a new one")

    def _read(self, sample: int, body: bytes) -> Completion | None:
        try:
            given = orjson.loads(body)
            usage = Usage(**{name: given["usage"][name] for name in _USAGE})
            texts = {name: given[name] for name in ("text", "finish_reason", "reasoning", "seed")}
            if not isinstance(texts["text"], str):
                raise TypeError("the text is missing")
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            warnings.warn(
                f"cache {str(self.path)!r}: sample {sample} cannot be read ({error!r}); it is asked for again",
                RuntimeWarning,
                stacklevel=3,
            )
            return None
        return Completion(model="", usage=usage, **texts)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _body(completion: Completion) -> bytes:
    usage = {name: getattr(completion.usage, name) for name in _USAGE}
    texts = {"text": completion.text, "finish_reason": completion.finish_reason, "reasoning": completion.reasoning}
    return orjson.dumps({**texts, "seed": completion.seed, "usage": usage})
