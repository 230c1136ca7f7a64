"""The headline table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from archon.report.format import labels, printable
from archon.report.grids import SYSTEMS_NOTE, Grid, systems
from archon.report.records import Run
from archon.report.summary import summarise


def table(runs: Sequence[Run], *, width: int | None = None, seed: int = 0) -> str:
    """Return one line per run: system, n, accuracy [interval], pass@k, calls, tokens, dollars, critical path.

    Args:
        runs: in the order to be shown.
        width: of the terminal; None makes the table as wide as it needs to be.
        seed: of the bootstrap.
    """
    named = list(zip(labels(runs), (summarise(run, seed=seed) for run in runs), strict=True))
    return f"{draw(systems(named), width)}{SYSTEMS_NOTE}\n"


def draw(grid: Grid, width: int | None = None) -> str:
    """Return a grid as text with aligned columns; cells wrap where the width asks for it."""
    # Imported here: only a terminal needs it, and reports are also made in workers.
    from io import StringIO

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, width=width or 10_000, force_terminal=False, color_system=None)
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    for place, column in enumerate(grid.columns):
        drawn.add_column(Text(printable(column)), justify="left" if place == 0 else "right", overflow="fold")
    for row in grid.rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    console.print(drawn)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines() if line.strip()) + "\n"
