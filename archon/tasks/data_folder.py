"""Find and read the public data sets, which are not part of this project.

They are looked for in the folder that the environment variable ARCHON_DATA names, else in `shared/data` beside the
checkout. Nothing is downloaded: an error says which file is needed and where it is published.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archon.errors import TaskError

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One published file."""

    stem: str
    """The file's name without a leading `NN_` and without `.jsonl` or `.jsonl.gz`."""
    fields: tuple[str, ...]
    """What each row must have."""
    published: str
    """Where a person gets it."""


def data_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the folder of data sets, or None when there is none.

    Raises:
        TaskError: ARCHON_DATA names something that is not a folder.
    """
    named = environment.get("ARCHON_DATA")
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            raise TaskError(f"ARCHON_DATA is {named!r}, which is not a folder")
        return folder
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return beside if beside.is_dir() else None


def find(source: Source, folder: Path | None) -> Path | None:
    """Return the file of a source in a folder, or None."""
    pattern = re.compile(rf"(\d\d_)?{re.escape(source.stem)}\.jsonl(\.gz)?")
    names = [] if folder is None else sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))
    return names[0] if names else None


def rows_of(source: Source, folder: Path | None) -> tuple[Row, ...]:
    """Return every row of a source.

    Raises:
        TaskError: the file is missing or damaged; it names the file, the line and what would be valid.
    """
    path = find(source, folder)
    if path is None:
        where = "no folder of data sets (set ARCHON_DATA)" if folder is None else f"not in {str(folder)!r}"
        raise TaskError(
            f"{source.stem}.jsonl or {source.stem}.jsonl.gz is needed: {where}; published: {source.published}"
        )
    return tuple(_checked(path, number, row, source.fields) for number, row in json_lines(path))


def _checked(path: Path, number: int, row: Row, fields: Sequence[str]) -> Row:
    missing = [name for name in fields if name not in row]
    if missing:
        raise TaskError(f"{path.name} line {number}: no field {missing[0]!r}; a row has {', '.join(fields)}")
    return row


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a file of JSON lines, gzipped or not, with their line numbers; empty lines are skipped.

    Raises:
        TaskError: it cannot be read, or a line is not UTF-8 or not a JSON object.
    """
    try:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise TaskError(f"cannot read {str(path)!r}: {error}") from error
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield number, _object(path, number, line)


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise TaskError(
            f"{path.name} line {number}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise TaskError(f"{path.name} line {number}: not JSON ({error}); each line is one JSON object") from error
    if not isinstance(row, dict):
        raise TaskError(f'{path.name} line {number}: {line[:40]!r} is not a JSON object like {{"id": …}}')
    return row
