"""Runs a repository's tests on one tree, in one job, at trust level C: in the candidate's process, hardened.

What is tested is the candidate's code under the pristine tree's tests, settings and plugins (`runner_files.py`). The
results come over a descriptor of our own plugin's, to a process that the candidate cannot read; they must agree with
each other, with pytest's exit code, and with tests whose outcome is known beforehand (`_canaries.py`, `_results.py`).
So these do not pass: leaving early with any exit code, printing a summary, writing a results file, hooks in
`conftest.py` or plugins, shadowing the runner, changed settings, skipping, edited or rewritten tests, patched reports,
assertions or comparisons, an object that equals everything.

Not covered, because candidate and tests share one process: code that reads the expected values from the tests' source
or frames, and code written against this very runner that finds the plugin's word in memory and forges a whole
consistent set of results. Where tests are calls with values, `archon.sandbox.run_calls` covers these.
"""

from __future__ import annotations

import ast
import hashlib
import json
import secrets
from collections.abc import Sequence
from importlib import resources
from typing import Any

from archon.codefix._canaries import Canaries, make_canaries
from archon.codefix._results import read_run, readable
from archon.codefix.pytest_command import Selection, is_pytest, selection
from archon.codefix.pytest_settings import Settings, settings
from archon.codefix.runner_files import RUNNER_MODULES, Composed, compose, is_runner_file, top_modules
from archon.codefix.types import TestRun, Tree
from archon.errors import ConfigError
from archon.sandbox.protocol import Job, Limits, Sandbox

PYTEST = ("python3", "-m", "pytest", "-q")
SUITE_LIMITS = Limits(wall_s=300.0, memory_mb=1024, processes=64, output_bytes=4_000_000, disk_mb=128)
"""For a whole suite, unless the caller knows better."""
_REPO = "repo"
_BY_EXIT_CODE = 'cd "$1" && PYTHONPATH="$PWD:$PWD/src" && export PYTHONPATH && shift && exec "$@"'


async def run_tests(
    sandbox: Sandbox,
    tree: Tree,
    *,
    pristine: Tree,
    command: Sequence[str] = PYTEST,
    ids: Sequence[str] = (),
    held_out: Tree = (),
    limits: Limits = SUITE_LIMITS,
    by_exit_code: bool = False,
    own_conftest: bool = False,
) -> TestRun:
    """Run the tests of a repository on one tree, and return what they said.

    Args:
        sandbox: where they run.
        tree: the candidate's.
        pristine: the tree before the patch, from which tests, settings and plugins are taken.
        command: the repository's test command; it selects tests and is not itself run (see `pytest_command.py`).
        ids: exactly the tests to run, or whole files; what does not come is `missing`. Empty: what `command` selects.
        held_out: test files that are put in place last.
        limits: for the whole job.
        by_exit_code: allow a command other than pytest, and believe its exit code: any candidate can make it 0.
        own_conftest: let the candidate keep its `conftest.py`: for a second look, never for a verdict.

    Raises:
        ConfigError: a command that is not understood, or a repository that holds pytest itself.
        SandboxError: pytest cannot be used inside the sandbox, or the engine failed.
    """
    composed = compose(tree, pristine, held_out, own_conftest=own_conftest)
    if not is_pytest(command) and by_exit_code:
        return await _run_by_exit_code(sandbox, composed, command, limits)
    chosen = selection(command)
    if own := top_modules(file.path for file in pristine) & RUNNER_MODULES:
        raise ConfigError(f"a repository that holds {sorted(own)[0]!r}, a part of pytest, cannot be tested with pytest")
    canaries = make_canaries()
    word, nonce = secrets.token_hex(16), secrets.token_hex(16)
    job = _job(composed, pristine, chosen, tuple(ids), canaries, word, nonce, limits)
    return read_run(
        await sandbox.run(job),
        word=word,
        nonce=nonce,
        ids=ids,
        canaries=dict(canaries.expected),
        set_aside=composed.set_aside,
    )


def _job(
    composed: Composed,
    pristine: Tree,
    chosen: Selection,
    ids: tuple[str, ...],
    canaries: Canaries,
    word: str,
    nonce: str,
    limits: Limits,
) -> Job:
    how = settings(pristine)
    home, nest = secrets.token_hex(8), secrets.token_hex(8)
    guarded = {
        file.path: file.content for file in composed.files if is_runner_file(file.path) and _is_source(file.path)
    }
    guarded |= {f"../{nest}/{name}": text.encode() for name, text in canaries.files}
    worker: dict[str, Any] = {
        "word": word,
        "tree": _REPO,
        "home": home,
        "canary_folder": nest,
        "canary_files": [name for name, _ in canaries.files],
        "ids": ids,
        "prefixes": chosen.prefixes,
        "places": _places(composed, chosen, how, ids),
        "options": () if ids else chosen.options,
        "import_mode": how.import_mode,
        "python_path": how.python_path,
        "guard": {path: hashlib.sha256(content).hexdigest() for path, content in guarded.items()},
        "changed": _changed(composed, pristine),
    }
    request = {
        "nonce": nonce,
        "executable": [file.path for file in composed.files if file.executable],
        "worker": worker,
    }
    files = [(f"{_REPO}/{file.path}", file.content) for file in composed.files]
    files += [(f"{nest}/{name}", text.encode()) for name, text in canaries.files]
    files += [(f"{home}/{name}.py", _program(name)) for name in ("supervisor", "worker")]
    files += [(f"{home}/pytest.ini", how.ini.encode())]
    return Job(
        argv=("python3", "-s", "-B", f"{home}/supervisor.py"),  # not -I, which would ignore the fixed hash seed
        files=tuple(files),
        stdin=json.dumps(request).encode(),
        limits=limits,
    )


def _places(composed: Composed, chosen: Selection, how: Settings, ids: tuple[str, ...]) -> list[str]:
    """Return the files and folders that are given to pytest, which refuses to start when one is not there."""
    if not ids:
        return list(chosen.paths or [path or "." for path in how.test_paths] or ["."])
    there = {file.path for file in composed.files}
    # In the order of a whole run, because tests may depend on it.
    return sorted({name.partition("::")[0] for name in ids} & there)


def _changed(composed: Composed, pristine: Tree) -> dict[str, list[str]]:
    """Return the candidate's own sources, with the classes in them that the pristine tree has word for word.

    Those may have their reasons to equal everything, as the wildcards of a testing library do.
    """
    before = {file.path: file.content.decode("utf-8", "replace") for file in pristine}
    after = {file.path: file.content.decode("utf-8", "replace") for file in composed.files}
    return {path: _kept_classes(before.get(path, ""), after[path]) for path in composed.changed if _is_source(path)}


def _kept_classes(before: str, after: str) -> list[str]:
    try:
        found = [node for node in ast.walk(ast.parse(before)) if isinstance(node, ast.ClassDef)]
    except (SyntaxError, ValueError):
        return []
    return [node.name for node in found if (ast.get_source_segment(before, node) or "\0") in after]


def _is_source(path: str) -> bool:
    return path.endswith(".py")


def _program(name: str) -> bytes:
    return (resources.files("archon.codefix") / f"pytest_{name}.py.txt").read_bytes()


async def _run_by_exit_code(sandbox: Sandbox, composed: Composed, command: Sequence[str], limits: Limits) -> TestRun:
    if not command:
        raise ConfigError("the test command is empty; valid: pytest with paths and options, or another program")
    files = tuple((f"{_REPO}/{file.path}", file.content) for file in composed.files)
    job = Job(argv=("/bin/sh", "-c", _BY_EXIT_CODE, "sh", _REPO, *command), files=files, limits=limits)
    outcome = await sandbox.run(job)
    passed = outcome.end == "exited" and outcome.exit_code == 0
    why = f"ended with exit code {outcome.exit_code}" if outcome.end == "exited" else f"ended by {outcome.end}"
    return TestRun(
        outcomes=((" ".join(command), "passed" if passed else "failed"),),
        status="finished" if outcome.end == "exited" else outcome.end,
        output=readable(outcome.stdout + outcome.stderr),
        detail=f"exit code only: {why}",
        wall_s=outcome.wall_s,
        set_aside=composed.set_aside,
    )
