"""Writes a report folder: HTML, Markdown, CSV, Parquet and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from archon.report.content import content_of
from archon.report.export import write_tables
from archon.report.html import html
from archon.report.markdown import markdown
from archon.report.png import write_png
from archon.report.records import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPaths:
    """Where the parts of a report are."""

    html: Path
    markdown: Path
    csv: Path
    parquet: Path
    png: Path


def write_report(runs: Sequence[Run], folder: Path, *, seed: int = 0) -> ReportPaths:
    """Write the report on some runs, side by side, into a folder; the first run is the baseline of the others.

    Args:
        runs: at least one, each with records.
        folder: made when it does not exist; files of the same names are replaced.
        seed: of every bootstrap: the same runs and seed give the same HTML, Markdown and CSV.

    Raises:
        RunError: there is nothing to report on, or a run is damaged.
        OSError: the folder cannot be written.
    """
    content = content_of(runs, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    paths = ReportPaths(
        html=folder / "report.html",
        markdown=folder / "report.md",
        csv=folder / "results.csv",
        parquet=folder / "results.parquet",
        png=folder / "coverage.png",
    )
    paths.html.write_text(html(content), encoding="utf-8")
    paths.markdown.write_text(markdown(content), encoding="utf-8")
    write_tables(runs, paths.csv, paths.parquet)
    write_png(content.named, paths.png)
    return paths
