"""What a report says, before any output draws it: the same sections for HTML and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archon.errors import RunError
from archon.report.compare import Comparison, compare
from archon.report.findings import findings
from archon.report.format import labels
from archon.report.records import Run
from archon.report.summary import Summary, summarise

WORDS = (
    ("accuracy", "Share of the judged problems whose final answer is right, with Wilson's 95 % interval."),
    ("pass@k, coverage", "Chance that at least one of k samples is right: what a perfect selector would get."),
    ("majority vote", "The commonest final answer among k samples; ties share."),
    ("best-of-N by score", "The sample with the best score that can be had without the answer key; ties share."),
    ("score-weighted vote", "The final answer with the largest sum of scores."),
    ("gap", "Coverage less accuracy: solved by some sample, but not the one selected."),
    ("not judged", "No verdict could be reached. Left out of every accuracy and counted here; never taken as wrong."),
    ("not known", "An endpoint did not report it. Never taken as zero."),
    ("critical path", "Seconds on the longest chain of dependent calls and sandbox runs: the latency with enough "
     "servers, without waiting for rate limits."),
    ("difference, McNemar p", "Problem by problem on the problems both systems have; intervals resample problems."),
    ("FLOPs", "2·N per token, N the weights of the generator."),
)  # fmt: skip
"""Terms a reader meets, and what they mean here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Everything that a report shows."""

    title: str
    runs: tuple[Run, ...]
    named: tuple[tuple[str, Summary], ...]
    """Each run's summary under the name it goes by."""
    compared: tuple[tuple[str, str, Comparison], ...]
    """Every later run against the first one, where they share problems: (name, name of the first, comparison)."""
    findings: tuple[str, ...]


def content_of(runs: Sequence[Run], *, seed: int = 0) -> Content:
    """Gather what a report on these runs shows; the first run is the baseline of the others.

    Raises:
        RunError: there is no run, a run has no records, or one is damaged (see `summarise`).
    """
    if not runs:
        raise RunError("no runs to report on: give at least one")
    if empty := [run.info.system for run in runs if not run.records]:
        raise RunError(f"the run of {empty[0]!r} has no records yet: nothing to report on")
    named = tuple(zip(labels(runs), (summarise(run, seed=seed) for run in runs), strict=True))
    base, first = named[0][0], {(record.task, record.problem_id) for record in runs[0].records}
    compared = tuple(
        (name, base, compare(runs[0], run, seed=seed))
        for (name, _), run in zip(named[1:], runs[1:], strict=True)
        if any((record.task, record.problem_id) in first for record in run.records)
    )
    tasks = ", ".join(dict.fromkeys(run.info.task for run in runs))
    systems = named[0][0] if len(named) == 1 else f"{len(named)} systems"
    return Content(
        title=f"{tasks}: {systems}",
        runs=tuple(runs),
        named=named,
        compared=compared,
        findings=findings(named, compared),
    )
