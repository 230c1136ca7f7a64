from __future__ import annotations

from report_runs import HOSTILE, info, made_run, record, usage

from archon.report.format import count, flops, points, seconds, usd
from archon.report.intervals import Estimate, Interval
from archon.report.records import Run
from archon.report.table import table


def test_one_line_per_run_with_its_figures():
    one = Run(info=info("one"), records=(record("a", True, "one"), record("b", False, "one")))
    text = table([one, made_run("pipeline", problems=20)])
    header, _, first, second, note = text.splitlines()
    assert header.split()[:4] == ["system", "n", "accuracy", "[95"]
    assert "50.0 % [9.5, 90.5]" in first
    assert first.split()[-6:] == ["$0.001", "2.00", "s", "2.00", "s"][-6:] or "$0.001" in first
    assert "pass@8" in header
    assert "pipeline" in second
    assert "per problem" in note


def test_unknown_prints_as_not_known_and_never_as_zero():
    run = Run(info=info("one"), records=(record("a", None, "one", usage=usage(out=None, usd=None)),))
    line = table([run]).splitlines()[2]
    assert line.count("not known") == 2
    assert "not judged" in line
    assert "$0" not in line


def test_hostile_names_cannot_steer_the_terminal_or_the_markup():
    run = Run(info=info(HOSTILE), records=(record("a", True, HOSTILE),))
    text = table([run])
    assert "\x1b" not in text
    assert "\\x1b[31m" in text
    assert "[a](b)" in text


def test_a_narrow_terminal_wraps_and_loses_nothing():
    text = table([made_run("a-rather-long-system-name", problems=5)], width=60)
    assert max(map(len, text.splitlines()[:-1])) <= 60
    assert "…" not in text


def test_figures_are_written_the_same_everywhere():
    assert [count(x) for x in (None, 0, 3, 0.25, 12.5, 1690.4, 1e6)] == [
        "not known",
        "0",
        "3",
        "0.25",
        "12.5",
        "1,690",
        "1,000,000",
    ]
    assert [usd(x) for x in (None, 0, 0.00042, 12.3, -0.5)] == ["not known", "$0", "$0.00042", "$12.30", "-$0.5"]
    assert [seconds(x) for x in (None, 0.4, 12.34, 200, 7500)] == [
        "not known",
        "0.40 s",
        "12.3 s",
        "3 min 20 s",
        "2 h 5 min",
    ]
    assert [flops(x) for x in (None, 5, 3.4e12)] == ["not known", "5 FLOP", "3.4 TFLOP"]
    estimate = Estimate(value=0.151, interval=Interval(low=-0.0001, high=0.2), problems=3)
    assert points(estimate) == "+15.1 points [0.0, 20.0]"
