import gzip
import json

import pytest

from archon.tasks.data_folder import data_folder, find
from archon.tasks.grade_maths import MathsGrader
from archon.tasks.load import load_tasks
from archon.tasks.maths_checker import Comparison, MathsChecker
from archon.tasks.maths_sets import GSM8K, MATH500
from archon.types import Problem

PROBLEM = Problem(id="p", prompt="?", kind="maths")
needs_data = pytest.mark.skipif(data_folder() is None, reason="needs the folder of public data sets")


def rows(source):
    content = find(source, data_folder()).read_bytes()
    return [json.loads(line) for line in gzip.decompress(content).splitlines()]


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("The answer is 18.", True),
        ("so \\boxed{18}", True),
        ("so \\boxed{18.0}", True),
        ("#### $18", True),
        ("17 + 1 = 18 dollars", True),
        ("\\boxed{19}", False),
        ("no idea", False),
        ("", False),
    ],
)
async def test_final_answers(text, passed):
    verdict = await MathsGrader(answers={"p": "18"}).grade(PROBLEM, text, None)
    assert verdict.passed is passed
    assert verdict.score == float(passed)


async def test_a_worker_that_cannot_be_run_is_not_judged(monkeypatch):
    monkeypatch.setattr(MathsChecker, "compare", lambda self, gold, answer: Comparison(equal=None, how="gone"))
    verdict = await MathsGrader(answers={"p": "18"}).grade(PROBLEM, "18", None)
    assert verdict.passed is None
    assert verdict.score is None


def test_votes():
    grader = MathsGrader(answers={})
    assert grader.normalise(PROBLEM, "\\boxed{\\frac12}") == grader.normalise(PROBLEM, "The answer is 0.50.") == "1/2"
    assert grader.normalise(PROBLEM, "no idea") is None


@needs_data
async def test_every_gsm8k_reference_is_right_and_a_changed_one_is_wrong():
    tasks = load_tasks("gsm8k")
    for problem, row in zip(tasks.problems, rows(GSM8K), strict=True):
        assert (await tasks.grader.grade(problem, row["answer"], None)).passed is True, problem.id
        changed = f"The answer is {int(row['final']) + 1}."
        assert (await tasks.grader.grade(problem, changed, None)).passed is False, problem.id


@needs_data
async def test_every_math500_reference_is_right():
    tasks = load_tasks("math500")
    for problem, row in zip(tasks.problems, rows(MATH500), strict=True):
        assert (await tasks.grader.grade(problem, row["solution"], None)).passed is True, problem.id


@needs_data
@pytest.mark.slow
async def test_math500_answers_of_other_problems_are_wrong():
    tasks, given = load_tasks("math500"), rows(MATH500)
    for at, problem in enumerate(tasks.problems):
        other = given[(at + 1) % len(given)]["answer"]
        verdict = await tasks.grader.grade(problem, f"\\boxed{{{other}}}", None)
        assert verdict.passed is (other == given[at]["answer"]), (problem.id, other)
