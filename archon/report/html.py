"""The report as one HTML file that works offline: plotly.js is in it once, and nothing is fetched.

Everything that comes from data is escaped: by the template's autoescape, in plot labels by `figures`, and in the plots'
JSON, where `<`, `>` and `&` are written as escapes so that no text can end the script. A content security policy in the
file makes the browser itself refuse any request.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files

from archon.report.content import WORDS, Content
from archon.report.figures import Figure, cost_figure, coverage_figure, levels_figure
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
from archon.report.records import Record

MOST_PROBLEMS = 1000
"""Problems in the table of single outcomes; the CSV has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the page: a heading, a sentence on how to read it, then plots and tables."""

    title: str
    lead: str = ""
    plots: tuple[str, ...] = ()
    """Ids of the plots' elements."""
    grids: tuple[tuple[str, Grid], ...] = ()
    """Tables with a caption each; an empty caption is left out."""
    lines: tuple[str, ...] = ()
    folded: bool = False


def html(content: Content) -> str:
    """Return the whole page; the same content gives the same bytes."""
    # Imported here: the page's libraries take a second to load, and most commands make no page.
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    plots: dict[str, Figure] = {}
    sections = _sections(content, plots)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("archon.report").joinpath("report.html.j2").read_text(encoding="utf-8"))
    return template.render(
        content=content,
        sections=sections,
        systems=systems(content.named),
        note=SYSTEMS_NOTE,
        repeats=list(zip((name for name, _ in content.named), (run.info for run in content.runs), strict=True)),
        words=WORDS,
        plotly=Markup(get_plotlyjs().replace("</script", "<\\/script")),  # noqa: S704 - the library's own code
        plots=Markup(script_json(plots)),  # noqa: S704 - escaped by script_json
    )


def script_json(value: object) -> str:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _sections(content: Content, plots: dict[str, Figure]) -> list[Section]:
    named = content.named

    def plot(figure: Figure | None) -> tuple[str, ...]:
        if figure is None:
            return ()
        plots[f"plot-{len(plots)}"] = figure
        return (f"plot-{len(plots) - 1}",)

    sections = []
    if content.compared:
        sections.append(_compared(content))
    sections.append(
        Section(
            title="Accuracy against what it took",
            lead="Up and to the left is better. Bars are 95 % intervals; the buttons change what is on the axis.",
            plots=plot(cost_figure(named)),
            grids=(("Per problem and per solved problem", costs(named)),),
        )
    )
    for name, summary in named:
        if summary.sampling is not None and summary.sampling.coverage.ks[-1] > 1:
            sampling = summary.sampling
            sections.append(
                Section(
                    title=f"Samples and selectors: {name}",
                    lead="Coverage is what a perfect selector would get from k samples; the grey area is what the best "
                    "selector here leaves on the table. Bands are 95 % intervals over problems.",
                    plots=plot(coverage_figure(sampling)),
                    grids=(("", gaps(sampling)),),
                    lines=(power_law(sampling),),
                )
            )
    by_level = levels(named)
    if by_level is not None:
        sections.append(Section(title="By difficulty", plots=plot(levels_figure(named)), grids=(("", by_level),)))
    sections.append(_ledgers(content))
    sections.append(_outcomes(content))
    sections.append(_problems(content))
    return sections


def _compared(content: Content) -> Section:
    return Section(
        title=f"Against {content.named[0][0]}, problem by problem",
        lead="Differences per problem over the problems that both systems have; intervals resample problems.",
        grids=(("", comparisons(content.compared)),),
        lines=tuple(left_out(*row) for row in content.compared),
    )


def _ledgers(content: Content) -> Section:
    return Section(
        title="Where the calls, tokens and seconds went",
        lead="One row per layer, summed over problems; seconds are per problem.",
        grids=tuple((name, ledger_grid(summary.layers)) for name, summary in content.named if summary.layers),
    )


def _outcomes(content: Content) -> Section:
    lines = [
        f"{name}: {kind} “{text}” on {number:,} problem{'s' if number > 1 else ''}"
        for name, summary in content.named
        for kind, counts in (("noted", summary.notes), ("error", summary.errors))
        for text, number in counts
    ]
    return Section(
        title="How solves ended, and what was not judged",
        lead="What was not judged is left out of the accuracy and counted here.",
        grids=(("", outcomes(content.named)),),
        lines=tuple(lines),
    )


def _problems(content: Content) -> Section:
    tables = [{(r.task, r.problem_id): r for r in run.records} for run in content.runs]
    keys = list(dict.fromkeys(key for table in tables for key in table))
    shown = keys[:MOST_PROBLEMS]
    with_task = len({task for task, _ in keys}) > 1
    rows = tuple(
        (f"{task}: {problem}" if with_task else problem, *(_mark(table.get((task, problem))) for table in tables))
        for task, problem in shown
    )
    more = (
        "" if len(keys) == len(shown) else f" The first {len(shown):,} of {len(keys):,} are shown; results.csv has all."
    )
    return Section(
        title="Every problem",
        lead="✓ right, ✗ wrong, ? not judged; in brackets the right ones among the judged samples." + more,
        grids=(("", Grid(columns=("problem", *(name for name, _ in content.named)), rows=rows)),),
        folded=True,
    )


def _mark(record: Record | None) -> str:
    if record is None:
        return ""
    mark = "?" if record.correct is None else "✓" if record.correct else "✗"
    ended = "" if record.status == "answered" else f" {record.status}"
    judged = [sample.correct for sample in record.samples if sample.correct is not None]
    return f"{mark}{ended}" + (f" ({sum(judged)}/{len(judged)})" if judged else "")
