"""The report on verifiers, against numbers worked by hand."""

from __future__ import annotations

import pytest

from archon.codefix.baseline import Baseline, Expectation
from archon.codefix.grade import Grade
from archon.codefix.types import TestRun
from archon.codefix.verifier_report import markdown, verifier_report

RAN = TestRun(outcomes=(), status="finished")


def before(name, *, flaky=(), apart=True, repeats=3):
    graded = Expectation(fail_to_pass=("t.py::f",), pass_to_pass=("t.py::p",), flaky=flaky)
    visible = Expectation(pass_to_pass=("t.py::p",)) if apart else graded
    return Baseline(instance_id=name, visible=visible, graded=graded, repeats=repeats, run=RAN)


def made(name, status, visible=None, flaky=(), repeats=1):
    return Grade(instance_id=name, status=status, visible_passed=visible, flaky=flaky, repeats=repeats)


GRADES = (
    *(made("p1", "pass", True), made("p1", "fail", True), made("p1", "fail", False), made("p1", "tampered", True)),
    *(made("p2", "fail", True), made("p2", "infra_error", None)),
    *(made("p3", "pass", True), made("p3", "flaky", None, flaky=("t.py::x",))),
    *(made("p4", "pass", True), made("p4", "fail", False)),
)
BASELINES = (before("p1"), before("p2"), before("p3"), before("p4", flaky=("t.py::q",)), before("p5"))


def test_by_hand():
    report = verifier_report(GRADES, BASELINES)
    every, steady = report.every, report.steady
    assert (every.problems, every.problems_solved, every.attempts, every.attempts_solved) == (5, 3, 10, 3)
    assert (every.problem_rate, every.attempt_rate, every.attempts_unknown) == (0.6, 0.3, 1)
    # p3 flipped after a patch and p4 before any: left are p1 (4 attempts, 1 solved), p2 (2, 0) and p5 (none).
    assert report.flaky == ("p3", "p4")
    assert (steady.problems, steady.problems_solved, steady.attempts, steady.attempts_solved) == (3, 1, 6, 1)
    assert steady.problem_rate == pytest.approx(1 / 3)
    # Visible passes: p1 three (of them two wrong), p2 one (wrong), p3 one, p4 one.
    assert (report.visible_passes, report.false_positives, report.false_positive_rate) == (6, 3, 0.5)
    assert [one.false_positives for one in report.problems] == [2, 1, 0, 0, 0]
    assert [one.tampered for one in report.problems] == [1, 0, 0, 0, 0]


def test_where_nothing_was_held_out_no_false_positive_can_be_known():
    report = verifier_report([made("p", "fail", False), made("p", "pass", True)], [before("p", apart=False)])
    assert (report.visible_passes, report.false_positive_rate) == (0, None)
    assert "false positives are not known" in markdown(report)


def test_attempts_without_a_baseline_count_as_well():
    report = verifier_report([made("p", "pass", True)], [])
    assert (report.every.problems, report.every.problems_solved, report.visible_passes) == (1, 1, 0)


def test_of_nothing():
    report = verifier_report([], [])
    assert (report.every.problem_rate, report.every.attempt_rate, report.problems) == (None, None, ())
    assert "not known" in markdown(report)


def test_two_baselines_of_one_problem_are_refused():
    with pytest.raises(ValueError, match="two baselines of 'p'"):
        verifier_report([], [before("p"), before("p")])


def test_reruns():
    assert not verifier_report([made("p", "pass")], [before("p", repeats=1)]).reruns
    assert verifier_report([made("p", "pass", repeats=2)], [before("p", repeats=1)]).reruns
    assert verifier_report([made("p", "pass")], [before("p", repeats=2)]).reruns


def test_markdown():
    assert markdown(verifier_report(GRADES, BASELINES)) == (
        "## How far the tests can be trusted\n\n"
        "- 2 of 5 problems (40.0 %) have tests that flip from run to run.\n"
        "- 3 of 6 patches (50.0 %) that pass the visible tests fail the held-out ones.\n\n"
        "| problems | solved | solved in % | attempts | solved | solved in % | not judged |\n"
        "|---|---:|---:|---:|---:|---:|---:|\n"
        "| all: 5 | 3 | 60.0 % | 10 | 3 | 30.0 % | 1 |\n"
        "| without flaky tests: 3 | 1 | 33.3 % | 6 | 1 | 16.7 % | 1 |\n\n"
        "| problem | attempts | solved | pass visible tests only | tampered | flaky tests |\n"
        "|---|---:|---:|---:|---:|---|\n"
        "| `p1` | 4 | 1 | 2 | 1 | – |\n"
        "| `p2` | 2 | 0 | 1 | 0 | – |\n"
        "| `p3` | 2 | 1 | 0 | 0 | `t.py::x` |\n"
        "| `p4` | 2 | 1 | 0 | 0 | `t.py::q` |\n"
    )


def test_a_single_run_says_so():
    assert "could not be found" in markdown(verifier_report([made("p", "pass")], [before("p", repeats=1)]))


def test_names_cannot_leave_their_cell():
    text = markdown(verifier_report([made("a|b`c\n\x1b", "flaky", flaky=("x|y",))], []))
    assert "| `a\\|b'c\\n\\x1b` |" in text
    assert "`x\\|y`" in text
