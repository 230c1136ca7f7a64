"""MBPP (sanitised) and MBPP+: write a Python function from one sentence.

The statement shows the first assertion, which gives the function's name and shape; the others stay hidden. (The
original paper shows all of them; with all of them shown there would be nothing left to verify.)

Source: Austin et al. 2021 (arXiv 2108.07732); MBPP+: Liu et al. 2023 (arXiv 2305.01210).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

from archon.errors import TaskError
from archon.tasks.data_folder import Row, Source, rows_of
from archon.tasks.grade_code import CodeGrader, CodeKey
from archon.tasks.numpy_stand_in import with_stand_in
from archon.tasks.prompts import write_function
from archon.tasks.protocol import TaskSet
from archon.tasks.source import parse_source
from archon.types import Problem

_FIELDS = ("task_id", "prompt", "code", "test_list", "test_imports")
MBPP = Source(
    stem="mbpp_sanitized",
    fields=_FIELDS,
    published="github.com/google-research/google-research, mbpp/sanitized-mbpp.json",
)
MBPP_PLUS = Source(stem="mbpp_plus", fields=(*_FIELDS, "test"), published="github.com/evalplus/mbppplus_release")

_TOO_HEAVY = frozenset({255, 599})
"""Their plus tests need more than 2 GB and more than 30 s: no fair limit passes the reference solutions."""


def mbpp(folder: Path | None) -> TaskSet:
    """Return the sanitised MBPP problems, judged by their assertions."""
    rows = rows_of(MBPP, folder)
    return _task_set("mbpp", [(row, "\n".join([*row["test_imports"], *row["test_list"]])) for row in rows])


def mbpp_plus(folder: Path | None) -> TaskSet:
    """Return MBPP+, judged by its test programs, without the two tasks that are too heavy for fair limits."""
    rows = [row for row in rows_of(MBPP_PLUS, folder) if row["task_id"] not in _TOO_HEAVY]
    return _task_set("mbppplus", [(row, with_stand_in(row["test"])) for row in rows])


def _task_set(name: str, rows: Iterable[tuple[Row, str]]) -> TaskSet:
    problems, keys = list[Problem](), dict[str, CodeKey]()
    for row, program in rows:
        entry_point = _entry_point(row)
        prompt = write_function(row["prompt"], entry_point, row["test_list"][0])
        problem = Problem(id=f"Mbpp/{row['task_id']}", prompt=prompt, kind="code", entry_point=entry_point)
        problems.append(problem)
        keys[problem.id] = CodeKey(program=program)
    return TaskSet(name=name, problems=tuple(problems), grader=CodeGrader(keys=keys))


def _entry_point(row: Row) -> str:
    """Return the function that the reference defines and the first assertion calls."""
    tree, test = parse_source(row["code"]), parse_source(row["test_list"][0])
    if tree is not None and test is not None:
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        called = [n.func.id for n in ast.walk(test) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
        for name in called:
            if name in defined:
                return name
    raise TaskError(f"MBPP task {row['task_id']!r}: its first assertion calls no function that its code defines")
