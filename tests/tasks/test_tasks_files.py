import json

import pytest

from archon.errors import TaskError
from archon.tasks.files import task_file
from archon.tasks.load import load_tasks

CODE = {
    "id": "c",
    "kind": "code",
    "prompt": "Write f.",
    "entry_point": "f",
    "tests": ["assert f(1) == 2", "f((1,)) == {3}"],
    "difficulty": 2,
}
MATHS = {"id": "m", "kind": "maths", "prompt": "1/4 + 1/2?", "answer": "3/4"}
TEXT = {"id": "t", "kind": "text", "prompt": "Capital of France?", "answer": "Paris"}


def write(path, *rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_a_good_file(tmp_path):
    tasks = load_tasks(write(tmp_path / "mine.jsonl", CODE, MATHS, TEXT))
    assert tasks.name == "mine"
    assert [p.kind for p in tasks.problems] == ["code", "maths", "text"]
    assert tasks.problems[0].difficulty == 2
    assert tasks.problems[1].difficulty is None
    calls = tasks.grader.graders["code"].keys["c"].calls
    assert [(test.args, test.expected) for test in calls] == [("(1,)", "2"), ("((1,),)", "{3}")]


async def test_its_answers_are_graded(tmp_path):
    tasks = load_tasks(write(tmp_path / "mine.jsonl", MATHS, TEXT))
    maths, text = tasks.problems
    assert (await tasks.grader.grade(maths, "So \\boxed{0.75}", None)).passed is True
    assert (await tasks.grader.grade(maths, "So 0.7", None)).passed is False
    assert (await tasks.grader.grade(text, "Let me think.\nThe answer is Paris.", None)).passed is True
    assert (await tasks.grader.grade(text, "Not paris but Lyon", None)).passed is False
    assert tasks.grader.normalise(text, "x\n**Paris**") == "paris"


def test_yaml(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "- id: m\n  kind: maths\n  prompt: 2 + 2?\n  answer: 4\n- {id: t, kind: text, prompt: Say hi, answer: hi}\n"
    )
    assert [problem.id for problem in task_file(path).problems] == ["m", "t"]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (MATHS | {"anwser": 1}, "unknown key 'anwser'; did you mean 'answer'?"),
        (MATHS | {"kind": "math"}, "kind 'math'; did you mean 'maths'?"),
        (MATHS | {"kind": ["maths"]}, "kind ['maths']"),
        (MATHS | {"id": "c"}, "the id 'c' is there twice"),
        (MATHS | {"id": 3}, "id 3 is not a text"),
        (MATHS | {"prompt": "  "}, "prompt '  ' is not a text"),
        (MATHS | {"prompt": "a\ud800"}, "half a character"),
        (MATHS | {"answer": True}, "answer True is not a text or a number"),
        (MATHS | {"answer": None}, "answer None"),
        (MATHS | {"difficulty": 0}, "difficulty 0 is not a whole number from 1"),
        (MATHS | {"tests": []}, "unknown key 'tests'"),
        ({"id": "x", "kind": "code", "prompt": "p"}, "no 'entry_point'; a code problem has"),
        (CODE | {"id": "d", "tests": []}, "tests [] is not a list with at least one"),
        (CODE | {"id": "d", "tests": "assert f(1) == 2"}, "is not a list"),
        (CODE | {"id": "d", "tests": ["g(1) == 2"]}, "it calls 'g'"),
        (CODE | {"id": "d", "tests": ["f(x) == 2"]}, "test 1 'f(x) == 2': not a Python literal"),
        (CODE | {"id": "d", "entry_point": "f g"}, "entry_point 'f g' is not a Python name"),
        ([1], "is not a JSON object"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(tmp_path, row, says):
    path = write(tmp_path / "bad.jsonl", CODE, row)
    with pytest.raises(TaskError) as caught:
        task_file(path)
    message = str(caught.value)
    assert message.startswith("bad.jsonl line 2: ")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"id": 1', "line 1: not JSON"),
        (b'\n\n{"id": "\xff"}', "line 3: byte 8 is not UTF-8"),
        (b"", "no problems in it"),
        (b"[" * 100_000, "line 1: not JSON"),
    ],
)
def test_a_damaged_file(tmp_path, content, says):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)
    with pytest.raises(TaskError, match=r"bad\.jsonl") as caught:
        task_file(path)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"id: x", "not a list of problems"),
        (b"- 3", "line 1: '3' is not a mapping"),
        (b"- [", "not YAML"),
        (b"", "not a list"),
        (b"- id: a\n- id: \xff", "line 2: byte"),
        (b"- !!python/object:os.system {}", "not YAML"),
        (b"- {kind: x, {}: 1}", "not YAML"),
        (b"- {id: !!bool x}\n", "a tag"),
    ],
)
def test_a_damaged_yaml_file(tmp_path, content, says):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(TaskError) as caught:
        task_file(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith("bad.yaml")


def test_an_absent_file(tmp_path):
    with pytest.raises(TaskError, match="no task file"):
        load_tasks(tmp_path / "absent.jsonl")
    (tmp_path / "tasks.csv").write_text("")
    with pytest.raises(TaskError, match=r"not a task file; valid: \*\.jsonl"):
        load_tasks(tmp_path / "tasks.csv")
