"""One word for a candidate, from hand-made reports."""

from __future__ import annotations

import pytest

from archon.sandbox.program import ProgramResult
from archon.sandbox.structured import CallReport, CallResult
from archon.sandbox.verdict import of_calls, of_program


def report(*outcomes, end="exited", met=(), cause=None):
    results = tuple(CallResult(outcome=one, cause=cause if one == "error" else None) for one in outcomes)
    return CallReport(results=results, wall_s=1.0, end=end, met=met)


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (report("passed", "passed"), "pass"),
        (report("passed", "invalid"), "pass"),
        (report(), "no_tests"),
        (report("invalid"), "no_tests"),
        (report("passed", "failed"), "fail"),
        (report("error", "failed"), "fail"),
        (report("passed", "error"), "error"),
        (report("error", cause="left"), "fail"),
        (report("error", cause="oom"), "oom"),
        (report("error", cause="disk_limit"), "disk_limit"),
        (report("error", cause="pids_limit"), "pids_limit"),
        (report("failed", met=("pids_limit",)), "pids_limit"),
        (report("passed", met=("pids_limit",)), "pass"),
        (report("passed", met=("oom",)), "fail"),
        (report("passed", met=("disk_limit",)), "disk_limit"),
        (report("failed", "timeout"), "timeout"),
        (report("error", end="output_limit"), "output_limit"),
        (report("error", end="oom"), "oom"),
        (report("timeout", end="timeout"), "timeout"),
        (report("not_run"), "infra_error"),
        (report("not_run", "failed"), "fail"),
        (report("passed", "not_run"), "infra_error"),
    ],
)
def test_words_of_calls(one, word):
    assert of_calls(one).word == word
    assert of_calls(one, one).word == word


def test_runs_that_differ_are_flaky():
    assert of_calls(report("passed", "failed"), report("failed", "passed")).word == "flaky"
    assert of_program(ProgramResult(outcome="passed"), ProgramResult(outcome="failed")).word == "flaky"


def test_what_was_met_is_said_beside_the_word():
    verdict = of_calls(report("passed", met=("pids_limit",)), report("passed", met=("pids_limit",)))
    assert (verdict.word, verdict.met) == ("pass", ("pids_limit",))


@pytest.mark.parametrize(
    ("outcome", "met", "word"),
    [
        ("passed", (), "pass"),
        ("passed", ("oom",), "fail"),
        ("passed", ("pids_limit",), "pass"),
        ("failed", (), "fail"),
        ("tampered", (), "tampered"),
        ("timeout", ("oom",), "timeout"),
        ("infra_error", (), "infra_error"),
    ],
)
def test_words_of_programs(outcome, met, word):
    assert of_program(ProgramResult(outcome=outcome, met=met)).word == word


def test_no_runs_are_no_tests():
    assert of_calls().word == "no_tests"
    assert of_program().word == "no_tests"
