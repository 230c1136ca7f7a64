"""Get code-fix instances by a set's name or from a SWE-bench-shaped file, whole or a part of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from archon.codefix import function_sets
from archon.codefix.original_projects import SeededBug, original_bugs
from archon.codefix.swebench import instance_of, read_rows
from archon.codefix.types import Instance
from archon.errors import TaskError, nearest
from archon.tasks.data_folder import Source, data_folder, rows_of

SUFFIXES = (".json", ".jsonl", ".jsonl.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """Where a set's rows are, and how one of them becomes an instance; only those that are drawn do."""

    rows: Callable[[Path | None], Sequence[Any]]
    instance: Callable[[Any], Instance]


def _public(source: Source, instance: Callable[[Any], Instance]) -> _Set:
    return _Set(rows=partial(rows_of, source), instance=instance)


def _original(_: Path | None) -> tuple[SeededBug, ...]:
    return original_bugs()


def _instance_of_bug(bug: SeededBug) -> Instance:
    return bug.instance


_SETS: Mapping[str, _Set] = {
    "canitedit": _Set(rows=function_sets.canitedit_rows, instance=function_sets.canitedit),
    "humanevalfix": _public(function_sets.HUMANEVALFIX, function_sets.humanevalfix),
    "humanevalfix-docs": _public(function_sets.HUMANEVALFIX, function_sets.humanevalfix_docs),
    "ldb": _public(function_sets.LDB, function_sets.ldb),
    "original": _Set(rows=_original, instance=_instance_of_bug),
    "quixbugs": _Set(rows=function_sets.quixbugs_rows, instance=function_sets.quixbugs),
}
SET_NAMES = tuple(sorted(_SETS))
"""The sets that have a name; `original` ships with the package, the others are in the data folder."""


def load_instances(name_or_path: str | Path, *, limit: int | None = None, seed: int = 0) -> tuple[Instance, ...]:
    """Return the instances of a set, or some of them; the same arguments always give the same ones.

    Args:
        name_or_path: one of `SET_NAMES`, or a SWE-bench-shaped file (`swebench.py`).
        limit: at most this many, drawn by `seed`; they keep their order.
        seed: which ones a `limit` draws.

    Raises:
        TaskError: no such set, or a file, row or repository that is missing or not valid.
    """
    if limit is not None and limit < 1:
        raise TaskError(f"limit {limit!r} is not 1 or more")
    name = str(name_or_path)
    chosen = _SETS.get(name) or _of_file(name)
    rows = chosen.rows(data_folder())
    if limit is not None and limit < len(rows):
        drawn = random.Random(f"{Path(name).name}/{seed}").sample(range(len(rows)), limit)
        rows = [rows[index] for index in sorted(drawn)]
    return tuple(chosen.instance(row) for row in rows)


def _of_file(name: str) -> _Set:
    path = Path(name).expanduser()
    if not name.endswith(SUFFIXES):
        if path.exists():
            raise TaskError(f"{name!r} is not a file of instances; valid: {', '.join('*' + each for each in SUFFIXES)}")
        raise TaskError(f"no set of instances {name!r}; {nearest(name, SET_NAMES)}, or a SWE-bench-shaped file")
    if not path.is_file():
        raise TaskError(f"no file of instances {name!r}")

    def rows(_: Path | None) -> Sequence[Any]:
        return read_rows(path)

    return _Set(rows=rows, instance=instance_of)
