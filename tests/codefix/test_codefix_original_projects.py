import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from archon.codefix.original_projects import Replacement, SeededBug, original_bugs, with_bug
from archon.codefix.types import File, Tree

BUGS = original_bugs()
PROJECTS = {bug.project: bug for bug in BUGS}
PLUGIN = """
import json

class Plugin:
    def __init__(self):
        self.outcomes = {}

    def pytest_runtest_logreport(self, report):
        if report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome
        elif report.when == "call":
            self.outcomes.setdefault(report.nodeid, "passed")

import pytest, sys
plugin = Plugin()
pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", *sys.argv[2:]], plugins=[plugin])
open(sys.argv[1], "w").write(json.dumps(plugin.outcomes))
"""


def outcomes(folder: Path, tree: Tree, *ids: str) -> dict[str, str]:
    """Run pytest on a tree, without plugins, and return the outcome of each test."""
    import json

    for file in tree:
        target = folder / "repo" / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
    subprocess.run(
        [sys.executable, "-B", "-c", PLUGIN, str(folder / "outcomes.json"), *ids],
        cwd=folder / "repo",
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        check=True,
    )
    return json.loads((folder / "outcomes.json").read_text())


def passed(seen: dict[str, str]) -> set[str]:
    return {name for name, outcome in seen.items() if outcome == "passed"}


def test_there_are_three_projects_with_graded_bugs():
    assert len(PROJECTS) >= 3
    assert len({bug.instance.id for bug in BUGS}) == len(BUGS)
    for project in PROJECTS:
        bugs = [bug for bug in BUGS if bug.project == project]
        assert 3 <= len(bugs) <= 5
        assert {bug.difficulty for bug in bugs} == {1, 2, 3}
        assert any(len({each.path for each in bug.replacements}) > 1 for bug in bugs)


def test_every_bug_is_reversible_and_its_words_do_not_give_it_away():
    for bug in BUGS:
        reverse = [Replacement(path=each.path, fixed=each.broken, broken=each.fixed) for each in bug.replacements]
        assert with_bug(bug.instance.tree, reverse) == bug.fixed
        assert bug.instance.tree != bug.fixed
        assert bug.instance.fail_to_pass
        assert not set(bug.instance.fail_to_pass) & set(bug.instance.pass_to_pass)
        assert not any(each.fixed.strip() in bug.instance.statement for each in bug.replacements)


def test_a_solver_does_not_see_the_held_out_tests():
    for bug in BUGS:
        seen = {file.path for file in bug.instance.tree}
        assert not seen & {file.path for file in bug.instance.held_out}
        assert all(path.split("::")[0].startswith("tests/") for path in bug.instance.fail_to_pass)


@pytest.mark.parametrize("bug", PROJECTS.values(), ids=list(PROJECTS))
def test_a_project_without_a_bug_passes_all_its_tests(bug: SeededBug, tmp_path: Path):
    seen = outcomes(tmp_path, (*bug.fixed, *bug.instance.held_out))
    assert set(seen.values()) == {"passed"}
    assert 4 <= sum(file.path.startswith(f"{bug.project}/") for file in bug.fixed) <= 10
    visible = [name for name in seen if "held_out" not in name]
    assert 15 <= len(visible) <= 35


@pytest.mark.parametrize("bug", BUGS, ids=[bug.instance.id for bug in BUGS])
def test_pinned_tests_are_what_pytest_says(bug: SeededBug, tmp_path: Path):
    seen = outcomes(tmp_path, (*bug.instance.tree, *bug.instance.held_out))
    fail, keep = set(bug.instance.fail_to_pass), set(bug.instance.pass_to_pass)
    assert passed(seen) == keep
    assert fail <= set(seen)
    unlisted = set(seen) - fail - keep
    if unlisted:  # they fail only after other tests have run
        first, *_ = sorted(unlisted)
        assert bug.kind == "state not reset"
        assert passed(outcomes(tmp_path, (*bug.instance.tree, *bug.instance.held_out), first)) == {first}


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug.kind == "change in two files"], ids=lambda b: b.instance.id)
def test_half_a_repair_is_not_enough(bug: SeededBug, tmp_path: Path):
    for number, left in enumerate(bug.replacements):
        half = with_bug(bug.fixed, [left])
        seen = outcomes(tmp_path / str(number), (*half, *bug.instance.held_out))
        assert not set(bug.instance.fail_to_pass) <= passed(seen)


def test_a_replacement_must_have_one_place():
    tree = (File(path="a.py", content=b"x x"),)
    with pytest.raises(AssertionError, match="exactly once"):
        with_bug(tree, [Replacement(path="a.py", fixed="x", broken="y")])


def test_the_projects_are_packaged():
    root = Path(__file__).parents[2]
    data = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["archon"]
    packaged = {path for pattern in data for path in (root / "archon").glob(pattern)}
    files = {path for path in (root / "archon" / "codefix" / "projects").rglob("*") if path.is_file()}
    assert files
    assert files <= packaged
    assert not [path for path in files if path.suffix not in (".txt", ".json", ".yaml")]
