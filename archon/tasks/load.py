"""Get a problem set by its name or from a file, whole or a part of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from archon.errors import TaskError, nearest
from archon.tasks.data_folder import data_folder
from archon.tasks.files import SUFFIXES, task_file
from archon.tasks.humaneval import humaneval, humaneval_plus
from archon.tasks.maths_sets import gsm8k, math500
from archon.tasks.mbpp import mbpp, mbpp_plus
from archon.tasks.original_set import original, original_code, original_maths
from archon.tasks.protocol import TaskSet
from archon.types import Kind

_PUBLIC: Mapping[str, Callable[[Path | None], TaskSet]] = {
    "gsm8k": gsm8k,
    "humaneval": humaneval,
    "humanevalplus": humaneval_plus,
    "math500": math500,
    "mbpp": mbpp,
    "mbppplus": mbpp_plus,
}
_OWN: Mapping[str, Callable[[], TaskSet]] = {
    "original": original,
    "original-code": original_code,
    "original-maths": original_maths,
}
TASK_NAMES = tuple(sorted((*_PUBLIC, *_OWN)))
"""The sets that have a name."""


def load_tasks(
    name_or_path: str | Path,
    *,
    limit: int | None = None,
    every: int | None = None,
    seed: int = 0,
    kinds: Collection[Kind] | None = None,
    difficulties: Collection[int] | None = None,
) -> TaskSet:
    """Return a problem set, or the part of it that was asked for; the same arguments always give the same part.

    Args:
        name_or_path: one of `TASK_NAMES`, or a `.jsonl` or `.yaml` file of the user's own.
        limit: at most this many problems, drawn by `seed`; they keep their order.
        every: each n-th problem, the first one included; applied before `limit`.
        seed: which problems a `limit` draws.
        kinds: only problems of these kinds; applied first.
        difficulties: only problems of these levels; applied first.

    Raises:
        TaskError: no such set, a file that is missing or not valid, or nothing left of it.
    """
    for option, value in (("limit", limit), ("every", every)):
        if value is not None and value < 1:
            raise TaskError(f"{option} {value!r} is not 1 or more")
    tasks = _load(name_or_path)
    problems = tasks.problems
    if kinds is not None:
        for kind in kinds:
            if kind not in get_args(Kind):
                raise TaskError(f"kind {kind!r}; {nearest(str(kind), get_args(Kind))}")
        problems = tuple(problem for problem in problems if problem.kind in kinds)
    if difficulties is not None:
        levels = {problem.difficulty for problem in problems if problem.difficulty is not None}
        for level in difficulties:
            if level not in levels:
                known = ", ".join(map(str, sorted(levels))) or "none: this set has no levels"
                raise TaskError(f"{tasks.name}: no problem of difficulty {level!r}; valid: {known}")
        problems = tuple(problem for problem in problems if problem.difficulty in difficulties)
    problems = problems[:: every or 1]
    if limit is not None and limit < len(problems):
        drawn = random.Random(f"{tasks.name}/{seed}").sample(range(len(problems)), limit)
        problems = tuple(problems[index] for index in sorted(drawn))
    if not problems:
        raise TaskError(
            f"{tasks.name}: none of its {len(tasks.problems)} problems is of kind {', '.join(sorted(kinds or ()))}"
        )
    return replace(tasks, problems=problems)


def _load(name_or_path: str | Path) -> TaskSet:
    name = str(name_or_path)
    if name in _PUBLIC:
        return _PUBLIC[name](data_folder())
    if name in _OWN:
        return _OWN[name]()
    path = Path(name).expanduser()
    if path.suffix in SUFFIXES:
        return task_file(path)
    if path.exists():
        raise TaskError(f"{name!r} is not a task file; valid: {', '.join('*' + suffix for suffix in SUFFIXES)}")
    raise TaskError(f"no problem set {name!r}; {nearest(name, TASK_NAMES)}, or a file of your own (.jsonl, .yaml)")
