"""Running a repository's suite: what is sent, and real suites of the usual layouts on every engine."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from archon.codefix.fake import reporting
from archon.codefix.repository_tests import run_tests
from archon.codefix.types import File
from archon.errors import ConfigError, SandboxError
from archon.sandbox import bubblewrap
from archon.sandbox.fake import ScriptedSandbox
from archon.sandbox.protocol import Limits, Outcome

LIMITS = Limits(wall_s=240.0, memory_mb=512, processes=32, output_bytes=2_000_000, disk_mb=64)
A, B = "tests/test_a.py::test_a", "tests/test_a.py::test_b"


def tree(files, executable=()):
    return tuple(
        File(path=path, content=text.encode(), executable=path in executable) for path, text in sorted(files.items())
    )


SMALL = tree({"a.py": "", "tests/test_a.py": "", "pytest.ini": "[pytest]\ntestpaths = tests\npythonpath = lib\n"})


def sent(sandbox):
    return json.loads(sandbox.jobs[-1].stdin)["worker"]


async def test_what_came_is_what_is_returned():
    sandbox = ScriptedSandbox([reporting({A: "passed", B: "failed"}, output="1 failed", wall_s=2.0)])
    run = await run_tests(sandbox, SMALL, pristine=SMALL)
    assert (run.status, run.outcomes) == ("finished", ((A, "passed"), (B, "failed")))
    assert (run.output, run.wall_s, run.trust, run.set_aside) == ("1 failed", 2.0, "C", ())
    assert (sent(sandbox)["places"], sent(sandbox)["python_path"]) == (["tests"], ["lib", "", "src"])


async def test_a_command_selects_and_ids_take_its_place():
    command = ("pytest", "-q", "-k", "a", "tests/test_a.py::test_a")
    sandbox = ScriptedSandbox([reporting({A: "passed"})] * 2)
    await run_tests(sandbox, SMALL, pristine=SMALL, command=command)
    assert (sent(sandbox)["places"], sent(sandbox)["prefixes"]) == (["tests/test_a.py"], [A])
    assert (sent(sandbox)["options"], sent(sandbox)["ids"]) == (["-k", "a"], [])
    run = await run_tests(sandbox, SMALL, pristine=SMALL, command=command, ids=(A, "gone.py::x"))
    assert (sent(sandbox)["places"], sent(sandbox)["options"]) == (["tests/test_a.py"], [])
    assert run.outcomes == ((A, "passed"), ("gone.py::x", "missing"))


async def test_names_and_secrets_are_new_every_time_and_files_are_guarded():
    sandbox = ScriptedSandbox([reporting({A: "passed"})] * 2)
    seen = []
    for _ in range(2):
        await run_tests(sandbox, SMALL, pristine=SMALL)
        worker = sent(sandbox)
        seen += [worker["word"], worker["home"], worker["canary_folder"], *worker["canary_files"]]
        assert set(worker["guard"]) == {
            "tests/test_a.py",
            *(f"../{worker['canary_folder']}/{name}" for name in worker["canary_files"]),
        }
    assert len(set(seen)) == len(seen) == 10
    assert json.loads(sandbox.jobs[0].stdin)["nonce"] not in json.dumps(sent(sandbox))


async def test_only_the_candidates_sources_are_suspected():
    candidate = tree({"a.py": "x = 1\n", "b.py": "", "notes.txt": "", "tests/test_a.py": "", "conftest.py": "evil"})
    sandbox = ScriptedSandbox([reporting({A: "passed"})])
    run = await run_tests(sandbox, candidate, pristine=SMALL)
    assert sent(sandbox)["changed"] == {"a.py": [], "b.py": []}
    assert run.set_aside == ("conftest.py", "pytest.ini")
    assert "repo/conftest.py" not in dict(sandbox.jobs[0].files)


async def test_classes_that_stay_as_they_were_are_not_suspected():
    wild = "class Wild:\n    def __eq__(self, other):\n        return True\n"
    pristine = tree({"a.py": f"{wild}\nclass Tame:\n    x = 1\n", "b.py": "class Wild(", "test_a.py": ""})
    candidate = tree({"a.py": f"# fixed\n{wild}\nclass Tame:\n    x = 2\n", "b.py": wild})
    sandbox = ScriptedSandbox([reporting({A: "passed"})])
    await run_tests(sandbox, candidate, pristine=pristine)
    assert sent(sandbox)["changed"] == {"a.py": ["Wild"], "b.py": []}


async def test_other_commands_only_when_asked_for_and_by_exit_code_alone():
    command = ("python3", "-m", "unittest")
    with pytest.raises(ConfigError, match="'python3 -m unittest' does not start pytest; valid: pytest"):
        await run_tests(ScriptedSandbox([]), SMALL, pristine=SMALL, command=command)
    script = [
        Outcome(end="exited", exit_code=0, stdout=b"", stderr=b"OK", wall_s=1.0),
        Outcome(end="exited", exit_code=3, stdout=b"", stderr=b"", wall_s=1.0),
        Outcome(end="timeout", exit_code=None, stdout=b"", stderr=b"", wall_s=1.0),
    ]
    sandbox = ScriptedSandbox(script)
    runs = [await run_tests(sandbox, SMALL, pristine=SMALL, command=command, by_exit_code=True) for _ in script]
    assert [run.outcomes for run in runs] == [
        (("python3 -m unittest", said),) for said in ("passed", "failed", "failed")
    ]
    assert [run.status for run in runs] == ["finished", "finished", "timeout"]
    assert all(run.detail.startswith("exit code only") and run.trust == "C" for run in runs)
    with pytest.raises(ConfigError, match="the test command is empty"):
        await run_tests(sandbox, SMALL, pristine=SMALL, command=(), by_exit_code=True)


async def test_a_repository_of_pytest_itself_is_refused():
    own = tree({"src/_pytest/config.py": "", "testing/test_config.py": ""})
    with pytest.raises(ConfigError, match="holds '_pytest', a part of pytest"):
        await run_tests(ScriptedSandbox([]), own, pristine=own)


LAYOUTS = {
    "src/deep/__init__.py": "VALUE = 1\n",
    "flat.py": "VALUE = 2\n",
    "lib/local.py": "VALUE = 3\n",
    "run.sh": "#!/bin/sh\n",
    "conftest.py": "import pytest\n\n@pytest.fixture(scope='module')\ndef four():\n    yield 4\n",
    "setup.cfg": (
        "[tool:pytest]\naddopts = --cov -n 8\npythonpath = lib\nmarkers = slow\npython_files = test_*.py check_*.py\n"
    ),
    "tests/__init__.py": "",
    "tests/helpers.py": "VALUE = 5\n",
    "tests/test_layout.py": """import os, subprocess, sys, unittest
import pytest
import deep, flat, local
from tests.helpers import VALUE

def test_imports(four):
    assert [deep.VALUE, flat.VALUE, local.VALUE, four, VALUE] == [1, 2, 3, 4, 5]

def test_a_process_of_its_own():
    done = subprocess.run([sys.executable, "-c", "import deep, flat, local"], capture_output=True, text=True)
    assert done.stderr == ""

def test_files_and_environment(tmp_path):
    (tmp_path / "x").write_text("x")
    assert os.stat("run.sh").st_mode & 0o111 and not os.stat("flat.py").st_mode & 0o111
    assert os.read(0, 1) == b""

@pytest.mark.slow
@pytest.mark.parametrize("x", [1, 2, pytest.param(3, marks=pytest.mark.xfail)])
def test_cases(x):
    assert x == 1

@pytest.mark.xfail(False, reason="not here")
def test_conditional():
    pass

@pytest.mark.xfail
def test_unexpected():
    pass

class TestOld(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(1, 1)
    def test_fails(self):
        self.assertEqual(1, 2)
    @unittest.skip("later")
    def test_skips(self):
        pass
    @unittest.expectedFailure
    def test_expected(self):
        self.fail()

@pytest.fixture
def broken():
    yield
    raise ValueError

def test_teardown(broken):
    pass

def test_forks():
    if os.fork() == 0:
        sys.exit(1)
    assert os.wait()[1] == 256
""",
    "more/check_more.py": "def test_more():\n    pass\n",
    "more/test_broken.py": "import not_there\n",
}
T = "tests/test_layout.py::"
EXPECTED = {
    "more/check_more.py::test_more": "passed",
    f"{T}test_imports": "passed",
    f"{T}test_a_process_of_its_own": "passed",
    f"{T}test_files_and_environment": "passed",
    f"{T}test_cases[1]": "passed",
    f"{T}test_cases[2]": "failed",
    f"{T}test_cases[3]": "skipped",
    f"{T}test_conditional": "passed",
    f"{T}test_unexpected": "skipped",
    f"{T}TestOld::test_passes": "passed",
    f"{T}TestOld::test_fails": "failed",
    f"{T}TestOld::test_skips": "skipped",
    f"{T}TestOld::test_expected": "skipped",
    f"{T}test_teardown": "error",
    f"{T}test_forks": "passed",
    "more/test_broken.py": "error",
}


@pytest.mark.slow
async def test_the_usual_layouts_and_outcomes(sandbox):
    files = tree(LAYOUTS, executable=("run.sh",))
    run = await run_tests(sandbox, files, pristine=files, limits=LIMITS)
    assert (run.status, run.detail) == ("finished", "")
    assert dict(run.outcomes) == EXPECTED
    assert "No module named 'not_there'" in run.output
    assert "assert 2 == 1" in run.output
    assert "test_cases[1]" not in run.output  # neither what passed nor our own tests fill the reader's page
    assert "9 passed" in run.output  # pytest counts a test whose teardown fails as passed and as an error


@pytest.mark.slow
async def test_a_selection_by_name_marker_and_id(sandbox):
    files = tree(LAYOUTS, executable=("run.sh",))
    command = ("pytest", "-x", "-m", "slow", "-k", "cases", "--deselect", f"{T}test_cases[3]", f"{T}test_cases", "more")
    run = await run_tests(sandbox, files, pristine=files, command=command, limits=LIMITS)
    assert run.status == "finished"
    assert dict(run.outcomes) == {
        f"{T}test_cases[1]": "passed",
        f"{T}test_cases[2]": "failed",
        "more/test_broken.py": "error",
    }


@pytest.mark.slow
async def test_a_test_that_hangs_leaves_what_was_known_before(sandbox):
    files = tree({"test_x.py": "import time\ndef test_a(): pass\ndef test_b(): time.sleep(999)\ndef test_c(): pass\n"})
    ids = tuple(f"test_x.py::test_{letter}" for letter in "abc")
    run = await run_tests(sandbox, files, pristine=files, ids=ids, limits=Limits(wall_s=30.0, memory_mb=512))
    assert run.status == "timeout"
    assert run.outcomes == tuple(zip(ids, ("passed", "error", "missing"), strict=True))


@pytest.mark.slow
async def test_what_breaks_at_the_very_end_is_the_last_tests_failure_and_no_tampering(sandbox):
    conftest = "import pytest\n\n@pytest.fixture(scope='session')\ndef s():\n    yield 1\n    raise ValueError\n"
    files = tree({"conftest.py": conftest, "test_x.py": "def test_a(s): pass\ndef test_b(): pass\n"})
    run = await run_tests(sandbox, files, pristine=files, limits=LIMITS)
    assert (run.status, run.detail) == ("finished", "")
    assert dict(run.outcomes) == {"test_x.py::test_a": "passed", "test_x.py::test_b": "error"}


@pytest.mark.slow
async def test_memory_that_runs_out_is_named(sandbox):
    files = tree(
        {"test_x.py": "def test_a():\n    x = [bytes(10**6) + bytes([i % 256]) * 10**6 for i in range(2000)]\n"}
    )
    limits = Limits(wall_s=240.0, memory_mb=128, disk_mb=16)
    run = await run_tests(sandbox, files, pristine=files, limits=limits)
    assert run.status == (
        "oom" if any("in total" in wall and "NOT" not in wall for wall in sandbox.enforces) else "error"
    )
    assert run.outcomes == (("test_x.py::test_a", "error"),)


@pytest.mark.slow
async def test_a_command_by_its_exit_code(sandbox):
    files = tree(
        {
            "src/a.py": "",
            "tests/__init__.py": "",
            "tests/test_a.py": "import a\nimport unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n",
        }
    )
    command = ("python3", "-m", "unittest", "-q")
    run = await run_tests(sandbox, files, pristine=files, command=command, by_exit_code=True, limits=LIMITS)
    assert run.outcomes == (("python3 -m unittest -q", "passed"),), run.output


@pytest.mark.bubblewrap
async def test_a_sandbox_without_pytest_is_said_to_be_so(monkeypatch):
    if shutil.which("bwrap") is None:
        pytest.skip("bwrap is not installed")
    if any(os.path.isdir(f"/usr/lib/python3/dist-packages/{name}") for name in ("pytest", "_pytest")):
        pytest.skip("this system has a pytest of its own")
    monkeypatch.setattr(bubblewrap, "_pytest_parts", list)
    bare = await bubblewrap.BubblewrapSandbox.start()
    try:
        with pytest.raises(SandboxError, match="No module named 'pytest'.*install it beside Archon"):
            await run_tests(bare, SMALL, pristine=SMALL, limits=LIMITS)
    finally:
        await bare.close()
