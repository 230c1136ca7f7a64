"""Public sets of single wrong functions as instances: HumanEvalFix, QuixBugs, LDB's failed seeds, CanItEdit.

Each instance has one `solution.py`. Where the set's protocol shows tests to a solver they are `test_solution.py`, a
pytest function for each assertion; the set's own test program is held out, as one test that runs it in the namespace
of the solution, which is what the sets do by writing one after the other. No ids are named: what must be mended is what
fails on the unpatched tree, the visible tests for a solver and the held-out one too for the grade.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from archon.codefix.types import File, Instance, Tree
from archon.tasks.data_folder import Row, Source, rows_of
from archon.tasks.source import parse_source, with_preamble

_OCTOPACK = "github.com/bigcode-project/octopack"
HUMANEVALFIX = Source(
    stem="humanevalfix_python",
    fields=("task_id", "declaration", "prompt", "buggy_solution", "test", "example_test", "entry_point"),
    published=f"{_OCTOPACK}, HumanEvalPack, python",
)
QUIXBUGS = Source(
    stem="quixbugs_python",
    fields=("name", "buggy_program", "docstring", "tests"),
    published=f"{_OCTOPACK}; the programs are github.com/jkoppel/QuixBugs",
)
QUIXBUGS_CASES = Source(
    stem="quixbugs_json_testcases",
    fields=("name", "cases"),
    published="github.com/jkoppel/QuixBugs, json_testcases",
)
LDB = Source(
    stem="codefix_ldb_failed_seeds",
    fields=("id", "dataset", "task_id", "entry_point", "prompt", "buggy_code", "visible_tests", "hidden_test"),
    published="made from the programs published in github.com/FloridSleeves/LLMDebugger",
)
CANITEDIT = Source(
    stem="canitedit_20",
    fields=("id", "before", "test", "instruction_descriptive"),
    published="github.com/bytedance/SandboxFusion; the set is github.com/nuprl/CanItEdit",
)

HELD_OUT = "test_held_out.py"
_MOST_JSON_CASES = 3
_LDB_IMPORTS = "from typing import *\nimport math\nfrom heapq import *\nimport itertools\nimport re\nimport typing\n"
"""What the set puts in front of every program; some of them need it."""

_LDB_BROKEN_VISIBLE = frozenset({"MBPP/367"})
"""Its visible test uses a name that only its hidden test defines."""


def humanevalfix(row: Row) -> Instance:
    """Return a row of HumanEvalFix in its main protocol, which shows the tests and no docstring."""
    return _instance(
        identity=_humanevalfix_id(row),
        solution=row["declaration"] + row["buggy_solution"],
        statement=f"Fix bugs in {row['entry_point']}.",
        visible=_check_as_tests(row["test"]),
        program=row["test"],
        entry_point=row["entry_point"],
    )


def humanevalfix_docs(row: Row) -> Instance:
    """Return a row of HumanEvalFix in its other protocol: the docstring is shown, with its examples, and no more."""
    return _instance(
        identity=_humanevalfix_id(row),
        solution=row["prompt"] + row["buggy_solution"],
        statement=f"Fix bugs in {row['entry_point']}.",
        visible=_check_as_tests(row["example_test"]),
        program=row["test"],
        entry_point=row["entry_point"],
    )


def _humanevalfix_id(row: Row) -> str:
    return f"humanevalfix-{str(row['task_id']).rpartition('/')[2]}"


def quixbugs_rows(folder: Path | None) -> tuple[Row, ...]:
    """Return the rows of QuixBugs, each with the JSON cases of its program; graph programs have none."""
    cases = {row["name"]: row["cases"] for row in rows_of(QUIXBUGS_CASES, folder)}
    return tuple({**row, "cases": cases.get(row["name"], [])} for row in rows_of(QUIXBUGS, folder))


def quixbugs(row: Row) -> Instance:
    """Return a row of QuixBugs: the docstring and a part of the program's tests are shown, all of them decide.

    QuixBugs gives a repair tool all tests. Showing the first three JSON cases (of a graph program, the first half of
    its test functions) leaves some by which a patch that only fits the tests is told from a repair.
    """
    tree = parse_source(row["tests"])
    body = [] if tree is None else tree.body
    visible = [node for node in body if isinstance(node, ast.Assert)][:_MOST_JSON_CASES]
    shown = _asserts_as_tests(visible) if row["cases"] else _half_of_functions(body)
    docstring = row["docstring"].strip().strip('"').strip()
    return _instance(
        identity=f"quixbugs-{row['name']}",
        solution=row["buggy_program"] + "\n",
        statement=f"Fix the bug in {row['name']}.\n\n{docstring}",
        visible=shown,
        program=row["tests"],
        entry_point=row["name"],
    )


def ldb(row: Row) -> Instance:
    """Return a wrong program that a model wrote, as LDB publishes it, with its visible and its hidden tests."""
    call = f"\n\ncheck({row['entry_point']})\n" if row["dataset"] == "humaneval" else ""
    dataset, model, _, number = str(row["id"]).split("/")
    visible = () if row["task_id"] in _LDB_BROKEN_VISIBLE else row["visible_tests"]
    code = with_preamble(row["buggy_code"], row["prompt"] + "    pass\n", row["entry_point"])
    return _instance(
        identity=f"ldb-{dataset}-{model}-{number}",
        solution=f"{_LDB_IMPORTS}\n\n{code.strip(chr(10))}\n",
        statement=f"{row['entry_point']} gives wrong results. It was written for this:\n\n{row['prompt'].strip()}",
        visible=_asserts_as_tests([node for text in visible for node in ast.parse(text).body]),
        program=row["hidden_test"] + call,
        entry_point=row["entry_point"],
    )


def canitedit_rows(folder: Path | None) -> tuple[Row, ...]:
    """Return the rows of CanItEdit, without those that need pandas, which no sandbox here has."""
    rows = rows_of(CANITEDIT, folder)
    return tuple(row for row in rows if "import pandas" not in row["before"] + row["test"])


def canitedit(row: Row) -> Instance:
    """Return a row of CanItEdit with its descriptive instruction; the set shows no tests."""
    return _instance(
        identity=f"canitedit-{row['id']}",
        solution=row["before"].rstrip("\n") + "\n",
        statement=row["instruction_descriptive"],
        visible="",
        program=row["test"],
        entry_point=None,
    )


def _instance(
    *, identity: str, solution: str, statement: str, visible: str, program: str, entry_point: str | None
) -> Instance:
    names = {"solution.py": solution, **({"test_solution.py": visible} if visible else {})}
    return Instance(
        id=identity,
        tree=_tree(names),
        statement=statement,
        held_out=_tree({HELD_OUT: _program_test(program)}),
        entry_point=entry_point,
    )


def _tree(texts: dict[str, str]) -> Tree:
    return tuple(File(path=path, content=texts[path].encode()) for path in sorted(texts))


def _program_test(program: str) -> str:
    return (
        f"import solution\n\nPROGRAM = {program!r}\n\n\n"
        'def test_held_out():\n    exec(compile(PROGRAM, "held_out_program", "exec"), dict(vars(solution)))\n'
    )


def _check_as_tests(program: str) -> str:
    """Return a `check` function and its call as tests: one for each assertion where there is nothing else in it."""
    tree = parse_source(program)
    functions = [] if tree is None else [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(functions) != 1 or functions[0].name != "check":
        return "" if tree is None or not functions else _whole_as_test(program)
    check = functions[0]
    parameter = check.args.args[0].arg if check.args.args else ""
    called = _called_with(tree, "check")
    asserts = [node for node in check.body if isinstance(node, ast.Assert)]
    if not any(isinstance(node, ast.Assert) for node in ast.walk(check)):
        return ""
    if len(asserts) != len(check.body) or parameter != called:
        return _whole_as_test(program)
    return _asserts_as_tests(asserts)


def _called_with(tree: ast.Module | None, name: str) -> str:
    for node in [] if tree is None else tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == name:
            return ast.unparse(node.value.args[0]) if node.value.args else ""
    return ""


def _asserts_as_tests(asserts: Sequence[ast.stmt]) -> str:
    if not asserts:
        return ""
    tests = [f"def test_{number}():\n    {ast.unparse(node)}\n" for number, node in enumerate(asserts, 1)]
    return "\n\n".join(["from solution import *\n", *tests])


def _whole_as_test(program: str) -> str:
    lines = ["from solution import *", "", "", program.strip("\n")]
    tree = ast.parse(program)
    last = tree.body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        kept = program.split("\n")[: last.lineno - 1]
        lines = ["from solution import *", "", "", "\n".join(kept).strip("\n"), "", ""]
        lines += ["def test_all():", f"    {ast.unparse(last)}"]
    return "\n".join(lines) + "\n"


def _half_of_functions(body: Sequence[ast.stmt]) -> str:
    """Return the first half of the test functions of a program, with whatever they need, and without their calls."""
    functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
    dropped = {node.name for node in functions[(len(functions) + 1) // 2 :]}
    kept = [
        ast.unparse(node)
        for node in body
        if not (isinstance(node, ast.FunctionDef) and node.name in dropped)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    ]
    return "\n\n\n".join(["from solution import *", *kept]) + "\n" if functions else ""
