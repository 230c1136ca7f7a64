import asyncio

import pytest

from archon.errors import SandboxFailed
from archon.run.remembering import RememberingGrader
from archon.types import Problem, Verdict

PROBLEM = Problem(id="p", prompt="?")


class Slow:
    def __init__(self, *script: bool | Exception | None) -> None:
        self.script = list(script)

    async def grade(self, problem: Problem, text: str, sandbox: object) -> Verdict:
        await asyncio.sleep(0.01)
        outcome = self.script.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return Verdict(passed=outcome, by="slow")

    def normalise(self, problem: Problem, text: str) -> str | None:
        return text.lower()


async def test_a_text_is_graded_once_also_when_asked_at_the_same_moment() -> None:
    grader = RememberingGrader(Slow(True))
    verdicts = await asyncio.gather(*(grader.grade(PROBLEM, "a", None) for _ in range(5)))
    assert [verdict.passed for verdict in verdicts] == [True] * 5
    assert (await grader.grade(PROBLEM, "a", None)).passed is True
    assert grader.normalise(PROBLEM, "A") == "a"


async def test_other_texts_and_other_problems_are_graded_apart() -> None:
    grader = RememberingGrader(Slow(True, False, False))
    assert (await grader.grade(PROBLEM, "a", None)).passed is True
    assert (await grader.grade(PROBLEM, "b", None)).passed is False
    assert (await grader.grade(Problem(id="q", prompt="?"), "a", None)).passed is False


async def test_what_was_not_judged_or_failed_is_asked_again() -> None:
    grader = RememberingGrader(Slow(None, SandboxFailed("down"), True))
    assert (await grader.grade(PROBLEM, "a", None)).passed is None
    with pytest.raises(SandboxFailed):
        await grader.grade(PROBLEM, "a", None)
    assert (await grader.grade(PROBLEM, "a", None)).passed is True


async def test_cancelling_the_only_asker_ends_the_work() -> None:
    inner = Slow(True, True)
    grader = RememberingGrader(inner)
    asker = asyncio.ensure_future(grader.grade(PROBLEM, "a", None))
    await asyncio.sleep(0.001)
    asker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asker
    assert (await grader.grade(PROBLEM, "a", None)).passed is True
