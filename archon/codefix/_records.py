"""Read the three shapes that SWE-bench files come in: JSON lines, a JSON list, a JSON object keyed by instance id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archon.errors import TaskError
from archon.tasks.data_folder import json_lines

Record = tuple[str, dict[str, Any]]
"""Where a row stands, for error messages, and the row."""


def records(path: Path) -> list[Record]:
    """Return the rows of a file; one that is keyed by id gets the key as its `instance_id`.

    Raises:
        TaskError: it cannot be read, or something in it is not an object; it names the file and the line or item.
    """
    whole = None if path.suffix == ".gz" else _whole(path)
    if isinstance(whole, list):
        return [_item(f"{path.name} item {number}", row) for number, row in enumerate(whole, 1)]
    if isinstance(whole, dict) and "instance_id" not in whole:
        return [_keyed(path, key, row) for key, row in whole.items()]
    return [(f"{path.name} line {number}", row) for number, row in json_lines(path)]


def _whole(path: Path) -> object:
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise TaskError(f"cannot read {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError:
        return None  # the reader of lines says which one
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("["):
            raise TaskError(f"{path.name}: begins like a JSON list and is none ({error})") from error
        return None


def _item(place: str, row: object) -> Record:
    if not isinstance(row, dict):
        raise TaskError(f'{place}: {str(row)[:40]!r} is not a JSON object like {{"instance_id": …}}')
    return place, row


def _keyed(path: Path, key: str, row: object) -> Record:
    place, checked = _item(f"{path.name} key {key!r}", row)
    if checked.get("instance_id", key) != key:
        raise TaskError(f"{place}: its instance_id is {checked['instance_id']!r}; the two must be equal")
    return place, {**checked, "instance_id": key}


def text_field(place: str, row: dict[str, Any], key: str, *, needed: tuple[str, ...]) -> str:
    """Return a field that must be there and be a text."""
    if key not in row:
        raise TaskError(f"{place}: no {key!r}; a row needs {', '.join(needed)}")
    if not isinstance(row[key], str):
        raise TaskError(f"{place}: {key} {str(row[key])[:60]!r} is not a text")
    return str(row[key])
