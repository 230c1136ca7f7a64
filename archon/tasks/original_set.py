"""The project's own problems: 40 or more Python functions and 40 or more word problems in three levels.

They ship with the package, in the format of `files.py`, so that a first evaluation needs no download. Level 1 is meant
for small models to solve mostly, level 2 sometimes, level 3 rarely. A statement shows two or three of a function's
tests; the rest stay hidden.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from archon.tasks.files import task_file
from archon.tasks.grade_by_kind import GraderByKind
from archon.tasks.prompts import complete_function, solve
from archon.tasks.protocol import TaskSet
from archon.types import Problem

_FOLDER = Path(__file__).with_name("original")


def original_code() -> TaskSet:
    """Return the programming problems."""
    return _asked(task_file(_FOLDER / "code.jsonl"), "original-code")


def original_maths() -> TaskSet:
    """Return the word problems."""
    return _asked(task_file(_FOLDER / "maths.jsonl"), "original-maths")


def original() -> TaskSet:
    """Return both, the programming problems first."""
    code, maths = original_code(), original_maths()
    grader = GraderByKind(graders={"code": code.grader, "maths": maths.grader})
    return TaskSet(name="original", problems=(*code.problems, *maths.problems), grader=grader)


def _asked(tasks: TaskSet, name: str) -> TaskSet:
    return replace(tasks, name=name, problems=tuple(_ask(problem) for problem in tasks.problems))


def _ask(problem: Problem) -> Problem:
    ask = complete_function if problem.kind == "code" else solve
    return replace(problem, prompt=ask(problem.text))
