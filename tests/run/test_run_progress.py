import io

from rich.console import Console

from archon.report.records import Record
from archon.run.machine import describe_machine
from archon.run.progress import ProgressBar
from archon.types import Usage


def record(correct: bool | None, **usage: object) -> Record:
    return Record(
        system="s",
        task="t",
        problem_id="p",
        status="answered",
        correct=correct,
        usage=Usage(calls=1, **usage),  # type: ignore[arg-type]
    )


def test_a_line_for_every_tenth_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    with ProgressBar("one", console=Console(file=out, width=200)) as bar:
        bar.start(total=20, done=0)
        for index in range(20):
            bar.advance(record(index % 2 == 0, completion_tokens=5))
    lines = out.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("one: 2 of 20 problems, 50% right")
    assert lines[-1].startswith("one: 20 of 20 problems, 50% right")


def test_a_resumed_run_says_what_is_done_already() -> None:
    out = io.StringIO()
    with ProgressBar("one", console=Console(file=out, width=200)) as bar:
        bar.start(total=20, done=12)
    assert "12 of 20 problems are done already" in out.getvalue()


def test_a_title_is_shown_as_it_is_and_a_finished_run_has_no_rest() -> None:
    out = io.StringIO()
    with ProgressBar("[/x] on t", console=Console(file=out, width=10)) as bar:
        bar.start(total=1, done=1)
        bar.advance(record(True))
    lines = out.getvalue().splitlines()
    assert lines[0] == "[/x] on t: 1 of 1 problems are done already; nothing is left to do"
    assert lines[1].startswith("[/x] on t: 2 of 1")


def test_what_is_not_known_is_not_shown_as_zero() -> None:
    with ProgressBar("one", console=Console(file=io.StringIO())) as bar:
        bar.start(total=2, done=0)
        bar.advance(record(None, completion_tokens=None, cost_usd=None))
        assert bar.facts == "none judged · tokens not known · cost not known"


def test_cached_work_is_not_counted_as_speed_or_cost() -> None:
    with ProgressBar("one", console=Console(file=io.StringIO())) as bar:
        bar.start(total=2, done=0)
        bar.advance(record(True, completion_tokens=9, saved_tokens=9, cost_usd=1.0, saved_usd=1.0))
        assert bar.facts == "100% right · 0 tok/s · $0.0000"


def test_the_machine_is_described_without_its_name() -> None:
    import platform

    text = describe_machine()
    assert " cores, " in text
    assert "GiB" in text
    assert platform.node() not in text or platform.node() == ""
