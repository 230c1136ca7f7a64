"""What a job's frames amount to, and that nothing is believed that does not fit."""

from __future__ import annotations

import json

import pytest

from archon.codefix._results import read_run
from archon.errors import SandboxError
from archon.sandbox.protocol import Outcome

A, B = "tests/test_a.py::test_a", "tests/test_a.py::test_b"
CANARIES = {"test_wrong": "failed", "test_right": "passed"}


def honest(*tests, broken=(), end=None):
    frames = [{"ready": "9.0"}, {"collected": [name for name, _ in tests], "broken": list(broken)}]
    for name, said in tests:
        frames += [{"start": name}, {"test": name, "outcome": said, "forged": False, "liar": None}]
    frames += [{"test": name, "outcome": said, "forged": False, "liar": None} for name, said in CANARIES.items()]
    bad = any(said in ("failed", "error") for _, said in tests) or broken
    return [*frames, {"end": int(bool(bad)) if end is None else end}]


def told(frames, *, exit_code=None, changed=(), end="exited", junk=b"", last=True, tail=b""):
    lines = [b"W " + json.dumps({"n": at, **frame}).encode() for at, frame in enumerate(frames)]
    if last:
        code = next((frame["end"] for frame in frames if "end" in frame), 0) if exit_code is None else exit_code
        lines.append(b"N " + json.dumps({"exit": code, "changed": list(changed)}).encode())
    stdout = b"".join(b"\n" + line + b"\n" for line in lines) + junk + tail
    code = 0 if end == "exited" else None
    return Outcome(end=end, exit_code=code, stdout=stdout, stderr=b"out\xff\x1b[1m", wall_s=1.5)


def read(outcome, ids=()):
    return read_run(outcome, word="W", nonce="N", ids=ids, canaries=CANARIES, set_aside=("conftest.py",))


def test_an_honest_run():
    run = read(told(honest((A, "passed"), (B, "failed"))))
    assert run.status == "finished"
    assert run.outcomes == ((A, "passed"), (B, "failed"))
    assert run.passed == {A}
    assert (run.detail, run.wall_s, run.set_aside) == ("", 1.5, ("conftest.py",))
    assert run.output == "out��[1m"


def test_exactly_the_ids_that_were_asked_for():
    frames = honest((A, "passed"), (B, "skipped"))
    run = read(told(frames), ids=(B, "tests/test_a.py::test_c", A))
    assert run.outcomes == ((B, "skipped"), ("tests/test_a.py::test_c", "missing"), (A, "passed"))


def test_a_file_that_cannot_be_read_makes_its_tests_errors():
    frames = honest((A, "passed"), broken=["tests/test_b.py"])
    assert read(told(frames)).outcomes == ((A, "passed"), ("tests/test_b.py", "error"))
    run = read(told(frames), ids=("tests/test_b.py::test_x", "tests/test_bc.py::test_x"))
    assert [said for _, said in run.outcomes] == ["error", "missing"]


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ([(A, "passed"), (B, "passed")], "passed"),
        ([(A, "passed"), (B, "skipped")], "skipped"),
        ([(A, "skipped"), (B, "failed")], "failed"),
        ([], "missing"),
    ],
)
def test_a_whole_file_passes_when_all_of_it_does(tests, said):
    assert read(told(honest(*tests)), ids=("tests/test_a.py",)).outcomes == (("tests/test_a.py", said),)


def test_no_tests():
    assert read(told(honest())).status == "no_tests"
    assert read(told(honest()), ids=(A,)).status == "finished"


def edit(frames, at, **values):
    return [{**frame, **values} if index == at else frame for index, frame in enumerate(frames)]


GOOD = honest((A, "passed"))


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (told(GOOD, junk=b'{"test": "x"}\n'), "did not write"),
        (told(GOOD, tail=b"no line end"), "did not write"),
        (told(GOOD, junk=b"W garbage\n"), "did not write"),
        (told(GOOD, junk=b"W" + b"[" * 9999 + b"\n"), "did not write"),
        (told(GOOD, junk=b'W {"n": 3, "end": 0}\n'), "out of order"),
        (told(GOOD, junk=b'W {"n": 7, "end": 0}\n'), "do not fit"),
        (told(GOOD, exit_code=1), "its process's is 1"),
        (told(honest((A, "passed"), end=1), exit_code=1), "exit code is 1 and its results say 0"),
        (told(honest((A, "failed"), end=0)), "exit code is 0 and its results say 1"),
        (told(GOOD, changed=["tests/test_a.py"]), "changed while the tests ran: tests/test_a.py"),
        (told([*GOOD[:2], {"changed": "tests/test_a.py"}, *GOOD[2:]]), "was changed before it was read"),
        (told(edit(GOOD, 3, forged=True)), "raised was reported as passed"),
        (told(edit(GOOD, 4, outcome="passed")), "must have 'failed' came out as 'passed'"),
        (told(edit(GOOD, 5, outcome="failed")), "must have 'passed' came out as 'failed'"),
        (told([*GOOD[:4], {"test": A, "outcome": "passed"}, *GOOD[4:]]), "do not fit"),
        (told([*GOOD[:2], *GOOD[3:]]), "do not fit"),
        (told([*GOOD[:4], {"start": A}, *GOOD[4:]]), "do not fit"),
        (told([*GOOD[:1], {"unusable": "x"}, *GOOD[1:]]), "do not fit"),
        (told([*GOOD[:3], {"test": A, "outcome": "wonderful"}, *GOOD[4:]]), "do not fit"),
        (told(edit(GOOD, 4, outcome="passed")[:5], end="timeout", last=False), "must have 'failed'"),
    ],
)
def test_tampering(outcome, why):
    run = read(outcome)
    assert run.status == "tampered"
    assert why in run.detail


@pytest.mark.parametrize("end", ["timeout", "oom", "output_limit"])
def test_at_a_limit_what_was_said_is_kept(end):
    run = read(told(honest((A, "passed"), (B, "passed"))[:5], end=end, last=False, tail=b'\nW {"n'), ids=(A, B, "x::y"))
    assert (run.status, run.outcomes) == (end, ((A, "passed"), (B, "error"), ("x::y", "missing")))


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (told(GOOD[:4], exit_code=0), "left with exit code 0 before they ended"),
        (told(GOOD[:1], exit_code=-11), "was ended by SIGSEGV"),
        (told(GOOD[:1], exit_code=-99), "was ended by signal 99"),
        (told(GOOD[:4], last=False), "the job ended with exit code 0 before its tests did"),
        (told([*GOOD[:-1], {"end": 4}]), "pytest could not run the tests (exit code 4)"),
        (told([*GOOD[:5], GOOD[-1]]), "were broken off"),
    ],
)
def test_a_run_that_does_not_reach_its_end(outcome, why):
    run = read(outcome, ids=(A, B))
    assert run.status == "error"
    assert why in run.detail
    assert dict(run.outcomes)[B] == "missing"


def test_a_killed_process_may_leave_half_a_frame():
    run = read(told(GOOD[:3], last=False, tail=b'\nW {"n": 3, "te\nN {"exit": -9, "changed": []}\n'))
    assert (run.status, run.outcomes) == ("error", ((A, "error"),))


def test_a_class_that_equals_everything_makes_passes_fail():
    run = read(told(edit(GOOD, 3, liar="calc.Any")))
    assert (run.status, run.outcomes) == ("finished", ((A, "failed"),))
    assert "calc.Any" in run.detail


def test_the_engines_own_failure():
    outcome = Outcome(end="infra_error", exit_code=None, stdout=b"junk", stderr=b"", wall_s=0.0, detail="gone")
    run = read(outcome, ids=(A,))
    assert (run.status, run.detail, run.outcomes) == ("infra_error", "gone", ((A, "missing"),))


def test_pytest_that_is_not_there_is_the_users_to_mend():
    with pytest.raises(SandboxError, match="No module named 'pytest'.*apt-get install python3-pytest"):
        read(told([{"unusable": "ModuleNotFoundError: No module named 'pytest'"}]))
