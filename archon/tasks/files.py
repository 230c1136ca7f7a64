"""A user's own problems, from a `.jsonl` file (one object a line) or a `.yaml` file (a list of mappings).

    {"id": "add-1", "kind": "code", "prompt": "Write add(a, b) …", "entry_point": "add",
     "tests": ["assert add(1, 2) == 3", "assert add([1], [2]) == [1, 2]"], "difficulty": 1}
    {"id": "sum-1", "kind": "maths", "prompt": "What is 1/4 + 1/2?", "answer": "3/4"}
    {"id": "city-1", "kind": "text", "prompt": "The capital of France, in one word?", "answer": "Paris"}

A code problem has `entry_point` and `tests`, each `assert f(literals) == literal`; maths and text have `answer`.
`difficulty` is optional, 1 (easiest) upwards. Everything else is an error that names the file and the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from archon.errors import TaskError, nearest
from archon.tasks.calls import assertion, unit_test
from archon.tasks.data_folder import json_lines
from archon.tasks.grade_by_kind import GraderByKind
from archon.tasks.grade_code import CodeGrader, CodeKey
from archon.tasks.grade_maths import MathsGrader, TextGrader
from archon.tasks.protocol import TaskSet
from archon.types import Kind, Problem, UnitTest

SUFFIXES = (".jsonl", ".yaml", ".yml")
_KEYS: dict[str, tuple[str, ...]] = {
    "code": ("id", "kind", "prompt", "entry_point", "tests"),
    "maths": ("id", "kind", "prompt", "answer"),
    "text": ("id", "kind", "prompt", "answer"),
}


def task_file(path: Path) -> TaskSet:
    """Return the problems of a file.

    Raises:
        TaskError: it cannot be read or a problem in it is not valid; nothing of it is used then.
    """
    problems: dict[str, Problem] = {}
    code, answers = dict[str, CodeKey](), dict[str, str]()
    for place, row in _rows(path):
        problem = _problem(place, row)
        if problem.id in problems:
            raise TaskError(f"{place}: the id {problem.id!r} is there twice; each problem needs its own")
        problems[problem.id] = problem
        if problem.kind == "code":
            code[problem.id] = CodeKey(calls=_tests(place, row["tests"], problem.entry_point or ""))
        else:
            answers[problem.id] = _answer(place, row["answer"])
    if not problems:
        raise TaskError(f"{path.name}: no problems in it; {_shape('maths')}")
    grader = GraderByKind(
        graders={
            "code": CodeGrader(keys=code),
            "maths": MathsGrader(answers=answers),
            "text": TextGrader(answers=answers),
        }
    )
    return TaskSet(name=path.stem, problems=tuple(problems.values()), grader=grader)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise TaskError(f"no task file {str(path)!r}")
    if path.suffix == ".jsonl":
        yield from ((f"{path.name} line {number}", row) for number, row in json_lines(path))
        return
    try:
        loader = yaml.SafeLoader(path.read_bytes().decode("utf-8"))
        root = loader.get_single_node()
        if not isinstance(root, yaml.SequenceNode):
            raise TaskError(f"{path.name}: not a list of problems; begin each with `- id: …`")
        for node in root.value:
            row = loader.construct_object(node, deep=True)
            place = f"{path.name} line {node.start_mark.line + 1}"
            if not isinstance(row, dict):
                raise TaskError(f"{place}: {str(row)[:40]!r} is not a mapping; begin each problem with `- id: …`")
            yield place, row
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise TaskError(f"{path.name} line {line}: byte {error.start} is not UTF-8; save the file as UTF-8") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise TaskError(f"{path.name}: not YAML: {' '.join(str(error).split())}") from error
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # what PyYAML does to `!!bool x` and its like
        if isinstance(error, TaskError):
            raise
        raise TaskError(f"{path.name}: not YAML: a tag (`!!...`) or a value does not fit: {error}") from error


def _shape(kind: str) -> str:
    return f"a {kind} problem has {', '.join(_KEYS[kind])} and may have difficulty"


def _problem(place: str, row: dict[str, Any]) -> Problem:
    kind = _kind(place, row.get("kind"))
    valid = (*_KEYS[kind], "difficulty")
    for key in row:
        if key not in valid:
            raise TaskError(f"{place}: unknown key {key!r}; {nearest(str(key), valid)}")
    for key in _KEYS[kind]:
        if key not in row:
            raise TaskError(f"{place}: no {key!r}; {_shape(kind)}")
    difficulty = row.get("difficulty")
    if difficulty is not None and (not isinstance(difficulty, int) or isinstance(difficulty, bool) or difficulty < 1):
        raise TaskError(f"{place}: difficulty {difficulty!r} is not a whole number from 1 (easiest) upwards")
    entry_point = _text(place, row, "entry_point") if kind == "code" else None
    if entry_point is not None and not entry_point.isidentifier():
        raise TaskError(f"{place}: entry_point {entry_point!r} is not a Python name")
    return Problem(
        id=_text(place, row, "id"),
        prompt=_text(place, row, "prompt"),
        kind=kind,
        entry_point=entry_point,
        difficulty=difficulty,
    )


def _kind(place: str, given: object) -> Kind:
    if given == "code" or given == "maths" or given == "text":
        return given
    raise TaskError(f"{place}: kind {given!r}; {nearest(str(given), _KEYS)}")


def _text(place: str, row: dict[str, Any], key: str) -> str:
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise TaskError(f"{place}: {key} {value!r} is not a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise TaskError(f"{place}: {key} holds half a character ({value[error.start]!a}); write it in UTF-8") from error
    return value


def _answer(place: str, given: object) -> str:
    if isinstance(given, bool) or not isinstance(given, str | int | float) or not str(given).strip():
        raise TaskError(f"{place}: answer {given!r} is not a text or a number")
    return str(given)


def _tests(place: str, given: object, entry_point: str) -> tuple[UnitTest, ...]:
    if not isinstance(given, list) or not given:
        raise TaskError(f"{place}: tests {given!r} is not a list with at least one `assert {entry_point}(…) == …`")
    tests = list[UnitTest]()
    for number, text in enumerate(given, 1):
        try:
            made, expected = assertion(str(text))
            if made.function != entry_point:
                raise ValueError(f"it calls {made.function!r}")
        except ValueError as error:
            raise TaskError(
                f"{place}: test {number} {text!r}: {error}; write `assert {entry_point}(literals) == literal`"
            ) from error
        tests.append(unit_test(made, expected, "example"))
    return tuple(tests)
