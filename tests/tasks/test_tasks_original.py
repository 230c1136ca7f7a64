import ast
import gzip
import importlib.util
import json
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from archon.tasks.data_folder import data_folder
from archon.tasks.load import load_tasks

SOLUTIONS = Path(__file__).parent / "original_solutions"


def module(name):
    spec = importlib.util.spec_from_file_location(f"original_{name}", SOLUTIONS / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def same(value, expected):
    return type(value) is type(expected) and value == expected


CODE, MATHS = load_tasks("original-code"), load_tasks("original-maths")
KEYS = CODE.grader.graders["code"].keys
ANSWERS = MATHS.grader.graders["maths"].answers


def test_sizes_and_levels():
    assert Counter(problem.difficulty for problem in CODE.problems) == {1: 14, 2: 14, 3: 14}
    assert Counter(problem.difficulty for problem in MATHS.problems) == {1: 14, 2: 15, 3: 14}
    assert all(len(key.calls) >= 6 for key in KEYS.values())
    assert len(load_tasks("original").problems) == 85


@pytest.mark.parametrize("problem", CODE.problems, ids=lambda problem: problem.id)
def test_the_reference_passes_and_trivial_programs_fail(problem):
    calls = KEYS[problem.id].calls
    expected = [ast.literal_eval(test.expected) for test in calls]
    reference = getattr(module("code_reference"), problem.entry_point)
    for test, value in zip(calls, expected, strict=True):
        arguments = ast.literal_eval(test.args)
        assert same(reference(*arguments), value), test.text
        assert repr(arguments) == test.args, "the reference changes its arguments"
    for constant in (None, *expected):
        assert not all(same(constant, value) for value in expected)
    first = [ast.literal_eval(test.args)[0] for test in calls]
    assert not all(same(argument, value) for argument, value in zip(first, expected, strict=True)), (
        "returns its argument"
    )


@pytest.mark.parametrize("problem", MATHS.problems, ids=lambda problem: problem.id)
def test_every_answer_follows_from_its_derivation(problem):
    assert Fraction(module("maths_reference").DERIVATIONS[problem.id]()) == Fraction(ANSWERS[problem.id])


def test_no_derivation_is_left_over():
    assert set(module("maths_reference").DERIVATIONS) == set(ANSWERS)


def test_statements_are_asked_for_in_the_usual_words():
    assert "one ```python code block" in CODE.problems[0].prompt
    assert "\\boxed{}" in MATHS.problems[0].prompt


def eight_grams(text):
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[at : at + 8]) for at in range(len(words) - 7)}


PUBLIC = {
    "02_humaneval.jsonl": "prompt",
    "03_mbpp_sanitized.jsonl": "prompt",
    "01_gsm8k_test.jsonl.gz": "question",
    "01_gsm8k_train_2000.jsonl.gz": "question",
    "04_math500.jsonl.gz": "problem",
}


@pytest.mark.skipif(data_folder() is None, reason="needs the folder of public data sets")
def test_no_statement_shares_eight_words_in_a_row_with_a_public_one():
    public = set()
    for name, field in PUBLIC.items():
        path = data_folder() / name
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in content.splitlines():
            public |= eight_grams(json.loads(line)[field])
    folder = Path(load_tasks.__code__.co_filename).parent / "original"
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            statement = json.loads(line)["prompt"].split(">>>")[0]
            assert not eight_grams(statement) & public, statement
