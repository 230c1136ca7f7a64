"""The summary of a run: every figure that the table, HTML, Markdown and PNG print, as one pure function of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from archon.report.compare import by_problem
from archon.report.cost import Cost, cost_of
from archon.report.intervals import Estimate, wilson
from archon.report.ledger import LedgerRow, count_parses, ledger
from archon.report.records import Record, Run, RunInfo
from archon.report.sampling import Sampling, sampling_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Accuracy at one difficulty."""

    difficulty: int | None
    """None: the problem set does not say."""
    accuracy: Estimate | None
    problems: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Every figure of one run."""

    info: RunInfo
    problems: int
    judged: int
    not_judged: int
    solved: int
    accuracy: Estimate | None
    """Over the judged problems, with Wilson's interval; None when nothing was judged."""
    statuses: tuple[tuple[str, int], ...]
    errors: tuple[tuple[str, int], ...]
    """First lines of the errors, commonest first."""
    notes: tuple[tuple[str, int], ...]
    """Decisions that traces noted, by the number of problems, commonest first."""
    parses: tuple[tuple[str, int], ...]
    verdicts_not_judged: int
    levels: tuple[Level, ...]
    """By difficulty; empty when no problem has one."""
    cost: Cost
    layers: tuple[LedgerRow, ...]
    sampling: Sampling | None

    @property
    def pass_at_k(self) -> tuple[int, Estimate] | None:
        """Return the headline k with coverage there; None without graded samples."""
        if self.sampling is None:
            return None
        return self.sampling.k, self.sampling.coverage.at(self.sampling.k)


def summarise(run: Run, *, seed: int = 0) -> Summary:
    """Return the summary of a run; the same run and seed give the same figures.

    Raises:
        RunError: a problem is recorded twice, or a record is of another system.
    """
    records = tuple(by_problem(run).values())
    judged = [record for record in records if record.correct is not None]
    uses = [use for record in records for use in record.layers]
    return Summary(
        info=run.info,
        problems=len(records),
        judged=len(judged),
        not_judged=len(records) - len(judged),
        solved=sum(record.correct is True for record in records),
        accuracy=_accuracy(records),
        statuses=_ranked(record.status for record in records),
        errors=_ranked(record.error.strip().partition("\n")[0] for record in records if record.error),
        notes=_ranked(note for record in records for note in dict.fromkeys(record.notes)),
        parses=count_parses(uses),
        verdicts_not_judged=sum(use.not_judged for use in uses),
        levels=_levels(records),
        cost=cost_of(records, run.info.parameters),
        layers=ledger(records),
        sampling=sampling_of(records, seed=seed),
    )


def _accuracy(records: Sequence[Record]) -> Estimate | None:
    outcomes = [record.correct for record in records if record.correct is not None]
    if not outcomes:
        return None
    solved = sum(outcomes)
    return Estimate(value=solved / len(outcomes), interval=wilson(solved, len(outcomes)), problems=len(outcomes))


def _levels(records: Sequence[Record]) -> tuple[Level, ...]:
    levels = {record.difficulty for record in records}
    if levels <= {None}:
        return ()
    order = sorted(levels, key=lambda level: (level is None, level or 0))
    groups = [(level, [record for record in records if record.difficulty == level]) for level in order]
    return tuple(Level(difficulty=level, accuracy=_accuracy(group), problems=len(group)) for level, group in groups)


def _ranked(words: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(Counter(words).items(), key=lambda item: (-item[1], item[0])))
