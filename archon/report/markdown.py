"""The report as Markdown."""

from __future__ import annotations

import re

from archon.report.content import WORDS, Content
from archon.report.format import printable
from archon.report.grids import (
    SYSTEMS_NOTE,
    Grid,
    comparisons,
    costs,
    gaps,
    ledger_grid,
    left_out,
    levels,
    outcomes,
    power_law,
    systems,
)
from archon.report.records import Run


def markdown(content: Content) -> str:
    """Return the report as one Markdown document."""
    named = content.named
    parts = [f"# {_text(content.title)}", "\n".join(f"- {_text(sentence)}" for sentence in content.findings)]
    parts += ["## Systems", _grid(systems(named)), SYSTEMS_NOTE]
    if content.compared:
        parts += [f"## Against {_text(named[0][0])}, problem by problem", _grid(comparisons(content.compared))]
        parts += [_text(left_out(*row)) for row in content.compared]
    for name, summary in named:
        sampling = summary.sampling
        if sampling is not None and sampling.k > 1:
            parts += [f"## Samples and selectors: {_text(name)}", _grid(gaps(sampling)), _text(power_law(sampling))]
    parts += ["## Cost per solved problem", _grid(costs(named))]
    if (by_level := levels(named)) is not None:
        parts += ["## Accuracy by difficulty", _grid(by_level)]
    parts += ["## Outcomes", _grid(outcomes(named))]
    for name, summary in named:
        if summary.layers:
            parts += [f"## Ledger by layer: {_text(name)}", _grid(ledger_grid(summary.layers))]
        noted = [("Notes", summary.notes), ("Errors", summary.errors)]
        for title, counts in ((title, counts) for title, counts in noted if counts):
            lines = "\n".join(f"- {_text(text)} × {number:,}" for text, number in counts)
            parts += [f"### {title}: {_text(name)}", lines]
    for (name, _), run in zip(named, content.runs, strict=True):
        parts += [f"## How to repeat: {_text(name)}", _repeat(run)]
    parts += ["## Words", "\n".join(f"- **{word}**: {meaning}" for word, meaning in WORDS)]
    return "\n\n".join(parts) + "\n"


def _repeat(run: Run) -> str:
    info = run.info
    facts = [
        f"task {info.task}, seed {info.seed}, started {info.started_utc}, Archon {info.archon_version}",
        f"machine: {info.machine}; sandbox: {info.sandbox or 'nothing was executed'}",
        f"pipeline {info.pipeline_hash}:",
    ]
    longest = max((len(run) for run in re.findall("`+", info.pipeline_yaml)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n\n".join([*map(_text, facts), f"{fence}yaml\n{info.pipeline_yaml.rstrip()}\n{fence}"])


def _grid(grid: Grid) -> str:
    rule = "|".join(["---", *["--:"] * (len(grid.columns) - 1)])
    return "\n".join([_line(grid.columns), f"|{rule}|", *map(_line, grid.rows)])


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(map(_text, cells)) + " |"


def _text(text: str) -> str:
    """Return the text with everything escaped that Markdown or the HTML in it would read as markup."""
    escaped = re.sub(r"([\\`*_\[\]|#~])", r"\\\1", printable(text.replace("\n", " ")))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
