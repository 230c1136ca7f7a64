"""How far the tests themselves can be trusted: patches that they wrongly accept, and problems whose tests are flaky.

Source: Brown et al. 2024 (arXiv 2407.21787), on imperfect verifiers: solved rates are given with and without the
problems that have flaky tests, and wrong patches that the visible tests accept are counted. Differs: flaky tests are
found by reruns of both the pristine and the patched tree, a wrong patch is one that the held-out tests refuse, and a
patch with flaky tests is not counted as solved, where the paper takes the majority of eleven runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archon.codefix.baseline import Baseline
from archon.codefix.grade import Grade
from archon.report.format import percent, printable

_UNKNOWN = frozenset({"infra_error", "skipped_budget"})
_UNDECIDED = _UNKNOWN | {"flaky", "needs_review"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """How many problems and attempts are solved, of some problems."""

    problems: int
    problems_solved: int
    """With at least one resolved patch."""
    attempts: int
    attempts_solved: int
    attempts_unknown: int
    """Never judged (the engine failed, the budget was spent); they count as attempts and not as solved."""

    @property
    def problem_rate(self) -> float | None:
        """Return the part of problems that is solved; None of no problems."""
        return self.problems_solved / self.problems if self.problems else None

    @property
    def attempt_rate(self) -> float | None:
        """Return the part of attempts that is solved; None of no attempts."""
        return self.attempts_solved / self.attempts if self.attempts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemTrust:
    """What the reruns and the held-out tests say of one problem's tests."""

    instance_id: str
    attempts: int
    solved: int
    visible_passes: int
    """Attempts that pass the visible tests, and of which the held-out tests say yes or no."""
    false_positives: int
    """Those of them that the held-out tests refuse."""
    flaky_before: tuple[str, ...]
    """Tests that flipped on the pristine tree: quarantined."""
    flaky_after: tuple[str, ...]
    """Tests that flipped on a patched tree."""
    tampered: int
    """Attempts that touched their own results."""

    @property
    def flaky(self) -> bool:
        """Return whether any test of the problem flipped."""
        return bool(self.flaky_before or self.flaky_after)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierReport:
    """How far a set of problems' tests can be trusted."""

    problems: tuple[ProblemTrust, ...]
    """In the order of their ids."""
    every: Solved
    steady: Solved
    """Without the problems that have flaky tests."""
    reruns: bool
    """Whether anything ran more than once; if not, no test could have been found flaky."""

    @property
    def flaky(self) -> tuple[str, ...]:
        """Return the ids of problems that have flaky tests."""
        return tuple(problem.instance_id for problem in self.problems if problem.flaky)

    @property
    def visible_passes(self) -> int:
        """Return how many attempts pass the visible tests and are judged by others."""
        return sum(problem.visible_passes for problem in self.problems)

    @property
    def false_positives(self) -> int:
        """Return how many of those the held-out tests refuse."""
        return sum(problem.false_positives for problem in self.problems)

    @property
    def false_positive_rate(self) -> float | None:
        """Return the part of visibly passing attempts that is wrong; None when there are none."""
        return self.false_positives / self.visible_passes if self.visible_passes else None


def verifier_report(grades: Iterable[Grade], baselines: Iterable[Baseline]) -> VerifierReport:
    """Return how far the tests of some problems can be trusted.

    Args:
        grades: of every attempt, in any order; those of a problem without a baseline count as well.
        baselines: of the problems; one without an attempt counts as unsolved.

    Raises:
        ValueError: a problem has two baselines.
    """
    before: dict[str, Baseline] = {}
    for one in baselines:
        if one.instance_id in before:
            raise ValueError(f"two baselines of {one.instance_id!r}; valid: one each")
        before[one.instance_id] = one
    attempts: dict[str, list[Grade]] = {name: [] for name in before}
    for grade in grades:
        attempts.setdefault(grade.instance_id, []).append(grade)
    problems = tuple(_trust(name, attempts[name], before.get(name)) for name in sorted(attempts))
    kept = {problem.instance_id for problem in problems if not problem.flaky}
    many = any(one.repeats > 1 for one in before.values()) or any(
        g.repeats > 1 for one in attempts.values() for g in one
    )
    return VerifierReport(
        problems=problems,
        every=_solved(attempts.values()),
        steady=_solved(made for name, made in attempts.items() if name in kept),
        reruns=many,
    )


def _trust(name: str, grades: Sequence[Grade], before: Baseline | None) -> ProblemTrust:
    # Only where other tests than the visible ones grade can a visible pass be found wrong.
    apart = before is not None and before.visible != before.graded
    seen = [grade for grade in grades if apart and grade.visible_passed and grade.status not in _UNDECIDED]
    return ProblemTrust(
        instance_id=name,
        attempts=len(grades),
        solved=sum(grade.resolved for grade in grades),
        visible_passes=len(seen),
        false_positives=sum(not grade.resolved for grade in seen),
        flaky_before=() if before is None else before.flaky,
        flaky_after=tuple(dict.fromkeys(test for grade in grades for test in grade.flaky)),
        tampered=sum(grade.status == "tampered" for grade in grades),
    )


def _solved(problems: Iterable[Sequence[Grade]]) -> Solved:
    kept = list(problems)
    return Solved(
        problems=len(kept),
        problems_solved=sum(any(grade.resolved for grade in made) for made in kept),
        attempts=sum(len(made) for made in kept),
        attempts_solved=sum(grade.resolved for made in kept for grade in made),
        attempts_unknown=sum(grade.status in _UNKNOWN for made in kept for grade in made),
    )


def markdown(report: VerifierReport) -> str:
    """Return the report as a section of a Markdown document."""
    lines = ["## How far the tests can be trusted", "", *_sentences(report), ""]
    lines += ["| problems | solved | solved in % | attempts | solved | solved in % | not judged |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|"]
    lines += [_row("all", report.every), _row("without flaky tests", report.steady)]
    marked = [one for one in report.problems if one.flaky or one.false_positives or one.tampered]
    if marked:
        lines += ["", "| problem | attempts | solved | pass visible tests only | tampered | flaky tests |"]
        lines += ["|---|---:|---:|---:|---:|---|"]
        lines += [_problem(one) for one in marked]
    return "\n".join(lines) + "\n"


def _sentences(report: VerifierReport) -> list[str]:
    total, flaky = len(report.problems), len(report.flaky)
    if report.reruns:
        share = percent(flaky / total if total else None)
        said = [f"- {flaky} of {total} problems ({share}) have tests that flip from run to run."]
    else:
        said = ["- Every suite ran once, so flaky tests could not be found."]
    if report.visible_passes:
        part = f"{report.false_positives} of {report.visible_passes} patches ({percent(report.false_positive_rate)})"
        said += [f"- {part} that pass the visible tests fail the held-out ones."]
    else:
        said += ["- No patch was judged by tests other than the visible ones, so false positives are not known."]
    return said


def _row(name: str, of: Solved) -> str:
    problems = f"{of.problems_solved} | {percent(of.problem_rate)}"
    attempts = f"{of.attempts} | {of.attempts_solved} | {percent(of.attempt_rate)}"
    return f"| {name}: {of.problems} | {problems} | {attempts} | {of.attempts_unknown} |"


def _problem(one: ProblemTrust) -> str:
    flaky = ", ".join(_code(test) for test in dict.fromkeys(one.flaky_before + one.flaky_after)) or "–"
    counts = f"{one.attempts} | {one.solved} | {one.false_positives} | {one.tampered}"
    return f"| {_code(one.instance_id)} | {counts} | {flaky} |"


def _code(text: str) -> str:
    """Return a name that a candidate or a repository chose, as code that cannot leave its cell."""
    return "`" + printable(text).replace("`", "'").replace("|", "\\|") + "`"
