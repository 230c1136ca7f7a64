"""A progress bar for evaluations: problems done, accuracy so far, tokens per second, dollars, time left."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from archon.report.records import Record


class ProgressBar:
    """Shows an evaluation on a terminal's standard error; on anything else, a line every tenth of the way."""

    def __init__(self, title: str, *, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._title = title
        self._start_s = time.monotonic()
        self._tokens: int | None = 0
        self._usd: float | None = 0.0
        self._right = self._judged = self._done = self._total = 0
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=self._console, disable=not self._console.is_terminal)
        self._task = self._bar.add_task(title, total=None, facts="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._bar.stop()

    def start(self, total: int, done: int) -> None:
        """Show how many problems there are, and how many an earlier run has finished."""
        self._total, self._done = total, done
        self._bar.update(self._task, total=total, completed=done)
        if done:
            rest = "going on with the rest" if done < total else "nothing is left to do"
            line = f"{self._title}: {done} of {total} problems are done already; {rest}"
            self._console.print(line, markup=False, soft_wrap=True)

    def advance(self, record: Record) -> None:
        """Show that a problem is finished."""
        self._done += 1
        self._judged += record.correct is not None
        self._right += record.correct is True
        paid, usd = record.usage.paid_tokens, record.usage.paid_usd
        self._tokens = None if self._tokens is None or paid is None else self._tokens + paid
        self._usd = None if self._usd is None or usd is None else self._usd + usd
        self._bar.update(self._task, advance=1, facts=self.facts)
        if (
            not self._console.is_terminal
            and self._total
            and self._done * 10 // self._total > ((self._done - 1) * 10 // self._total)
        ):
            line = f"{self._title}: {self._done} of {self._total} problems, {self.facts}"
            self._console.print(line, markup=False, soft_wrap=True)

    @property
    def facts(self) -> str:
        """Return accuracy, tokens per second and dollars so far, in words."""
        elapsed_s = max(time.monotonic() - self._start_s, 1e-9)
        right = f"{self._right / self._judged:.0%} right" if self._judged else "none judged"
        speed = "tokens not known" if self._tokens is None else f"{self._tokens / elapsed_s:,.0f} tok/s"
        cost = "cost not known" if self._usd is None else f"${self._usd:.4f}"
        return f"{right} · {speed} · {cost}"
