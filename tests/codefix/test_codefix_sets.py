import ast
import json
from pathlib import Path

import pytest

from archon.codefix import function_sets, sets
from archon.codefix.sets import SET_NAMES, load_instances
from archon.codefix.types import Instance
from archon.errors import TaskError
from archon.tasks.data_folder import data_folder, rows_of

DATA = data_folder()
needs_data = pytest.mark.skipif(DATA is None, reason="needs the folder of public data sets")
HELD_OUT_ID = "test_held_out.py::test_held_out"
PUBLIC = tuple(name for name in SET_NAMES if name != "original")
HUMANEVALFIX_ROW = {
    "task_id": "Python/7",
    "declaration": "def twice(n):\n",
    "prompt": 'def twice(n):\n    """Double n."""\n',
    "buggy_solution": "    return n\n",
    "test": "def check(twice):\n    assert twice(2) == 4\n    assert twice(0) == 0\n\ncheck(twice)",
    "example_test": "def check(twice):\n    assert twice(1) == 2\ncheck(twice)\n",
    "entry_point": "twice",
}


def texts(instance: Instance) -> dict[str, str]:
    return {file.path: file.content.decode() for file in (*instance.tree, *instance.held_out)}


def run(instance: Instance, solution: str) -> dict[str, bool]:
    """Run an instance's tests on a solution that is known and harmless, in this process."""
    import sys
    import types

    passed = {}
    module = types.ModuleType("solution")
    exec(solution, module.__dict__)
    sys.modules["solution"] = module
    try:
        for path, text in texts(instance).items():
            names: dict[str, object] = {}
            if path == "solution.py":
                continue
            exec(text, names)
            for name in [name for name in names if name.startswith("test")]:
                try:
                    names[name]()  # type: ignore[operator]
                    passed[f"{path}::{name}"] = True
                except AssertionError:
                    passed[f"{path}::{name}"] = False
    finally:
        del sys.modules["solution"]
    return passed


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(TaskError, match="no set of instances 'quixbug'; did you mean 'quixbugs'"):
        load_instances("quixbug")


def test_a_file_that_is_none(tmp_path: Path):
    with pytest.raises(TaskError, match="no file of instances"):
        load_instances(tmp_path / "none.jsonl")
    (tmp_path / "set.yaml").write_text("[]")
    with pytest.raises(TaskError, match=r"valid: \*\.json, \*\.jsonl"):
        load_instances(tmp_path / "set.yaml")


def test_a_part_is_the_same_every_time_and_in_order():
    ids = [instance.id for instance in load_instances("original")]
    part = [instance.id for instance in load_instances("original", limit=4, seed=1)]
    assert part == [instance.id for instance in load_instances("original", limit=4, seed=1)]
    assert part == sorted(part, key=ids.index)
    assert len(set(part)) == 4
    assert part != [instance.id for instance in load_instances("original", limit=4, seed=2)]
    with pytest.raises(TaskError, match="limit 0 is not 1 or more"):
        load_instances("original", limit=0)


def test_a_swebench_file_reads_only_the_repositories_that_are_drawn(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("x = 1\n")
    row = {"problem_statement": "", "FAIL_TO_PASS": [], "PASS_TO_PASS": []}
    rows = [{**row, "instance_id": f"a-{n}", "repo_path": "repo" if n == 0 else "gone"} for n in range(2)]
    (tmp_path / "set.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    drawn = [load_or_none(tmp_path / "set.jsonl", seed) for seed in range(8)]
    assert "a-0" in drawn
    assert None in drawn


def load_or_none(path: Path, seed: int) -> str | None:
    try:
        return load_instances(path, limit=1, seed=seed)[0].id
    except TaskError:
        return None


def test_humanevalfix_shows_its_tests_and_no_docstring():
    instance = function_sets.humanevalfix(HUMANEVALFIX_ROW)
    assert instance.id == "humanevalfix-7"
    assert instance.entry_point == "twice"
    assert (instance.fail_to_pass, instance.pass_to_pass) == ((), ())
    assert texts(instance)["solution.py"] == "def twice(n):\n    return n\n"
    assert run(instance, "def twice(n): return n") == {
        "test_solution.py::test_1": False,
        "test_solution.py::test_2": True,
        HELD_OUT_ID: False,
    }
    assert all(run(instance, "def twice(n): return 2 * n").values())


def test_humanevalfix_docs_shows_the_docstring_with_its_examples_only():
    instance = function_sets.humanevalfix_docs(HUMANEVALFIX_ROW)
    assert "Double n." in texts(instance)["solution.py"]
    assert "twice(2) == 4" not in texts(instance)["test_solution.py"]
    assert run(instance, "def twice(n): return 2") == {"test_solution.py::test_1": True, HELD_OUT_ID: False}


def test_a_check_with_a_loop_is_one_test_and_one_without_assertions_is_none():
    loop = "def check(twice):\n    for n in range(3):\n        assert twice(n) == 2 * n\ncheck(twice)\n"
    instance = function_sets.humanevalfix({**HUMANEVALFIX_ROW, "test": loop})
    assert run(instance, "def twice(n): return 2 * n") == {"test_solution.py::test_all": True, HELD_OUT_ID: True}
    none = function_sets.humanevalfix_docs({**HUMANEVALFIX_ROW, "example_test": "def check(f):\n    pass\n"})
    assert [file.path for file in none.tree] == ["solution.py"]


def test_quixbugs_shows_a_part_of_its_tests():
    asserts = "\n".join(f"assert f(*[{n}]) == {n}" for n in range(5))
    row = {"name": "f", "buggy_program": "def f(n): return 0", "docstring": '"""\nSame.\n"""', "tests": asserts}
    instance = function_sets.quixbugs({**row, "cases": [[[0], 0]]})
    assert instance.statement == "Fix the bug in f.\n\nSame."
    assert run(instance, "def f(n): return n if n < 3 else 0") == {
        "test_solution.py::test_1": True,
        "test_solution.py::test_2": True,
        "test_solution.py::test_3": True,
        HELD_OUT_ID: False,
    }
    functions = (
        "".join(f"def test{n}():\n    assert f({n}) == {n}\n\n" for n in (1, 2, 3)) + "test1()\ntest2()\ntest3()"
    )
    graph = function_sets.quixbugs({**row, "tests": functions, "cases": []})
    assert run(graph, "def f(n): return min(n, 2)") == {
        "test_solution.py::test1": True,
        "test_solution.py::test2": True,
        HELD_OUT_ID: False,
    }


def test_ldb_has_the_imports_and_helpers_of_its_prompt():
    row = {
        "id": "humaneval/m/HumanEval/3",
        "dataset": "humaneval",
        "task_id": "HumanEval/3",
        "entry_point": "f",
        "prompt": "def helper(n):\n    return n + 1\n\n\ndef f(n):\n    '''Add 2.'''\n",
        "buggy_code": "def f(n):\n    return helper(math.floor(n))\n",
        "visible_tests": ["assert f(1) == 3"],
        "hidden_test": "def check(candidate):\n    assert candidate(1) == 3\n",
    }
    instance = function_sets.ldb(row)
    solution = texts(instance)["solution.py"]
    assert instance.id == "ldb-humaneval-m-3"
    assert run(instance, solution) == {"test_solution.py::test_1": False, HELD_OUT_ID: False}
    assert all(run(instance, solution.replace("helper(math", "1 + helper(math")).values())


def test_canitedit_shows_no_tests():
    row = {"id": 4, "before": "a = 1", "test": "if True:\n    assert a == 2", "instruction_descriptive": "Make a 2."}
    instance = function_sets.canitedit(row)
    assert [file.path for file in instance.tree] == ["solution.py"]
    assert (instance.statement, instance.entry_point) == ("Make a 2.", None)
    assert run(instance, "a = 2") == {HELD_OUT_ID: True}


def test_a_set_that_is_missing_is_named_with_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ARCHON_DATA", str(tmp_path))
    with pytest.raises(TaskError, match=r"quixbugs_json_testcases\.jsonl .*published: github"):
        load_instances("quixbugs")


@needs_data
@pytest.mark.parametrize("name", PUBLIC)
def test_public_sets_load_and_hold_out_what_decides(name: str):
    instances = load_instances(name)
    assert len({instance.id for instance in instances}) == len(instances) > 0
    for instance in instances:
        assert all(ast.parse(text) for text in texts(instance).values())
        assert not {file.path for file in instance.tree} & {file.path for file in instance.held_out}
        assert [file.path for file in instance.held_out] == ["test_held_out.py"]
        assert instance.statement
        assert "/" not in instance.id


@needs_data
def test_the_json_cases_of_quixbugs_are_the_tests_that_its_programs_have():
    rows = [row for row in function_sets.quixbugs_rows(DATA) if row["cases"]]
    assert rows
    for row in rows:  # the heaviest case of knapsack is left out of its program
        assert 0 <= len(row["cases"]) - row["tests"].count("assert ") <= 1


@needs_data
def test_canitedit_leaves_out_what_needs_pandas():
    every = rows_of(function_sets.CANITEDIT, DATA)
    kept = function_sets.canitedit_rows(DATA)
    assert {row["id"] for row in every} - {row["id"] for row in kept} <= {15}


def test_names_are_sorted_and_documented():
    assert list(SET_NAMES) == sorted(sets._SETS)
    guide = (Path(__file__).parents[2] / "docs" / "codefix.md").read_text()
    assert all(f"`{name}`" in guide for name in SET_NAMES)
