"""The coverage plot as a PNG, for places that show no HTML."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from archon.report.figures import COLOURS, CURVE_COLOURS, k_ticks, thinned
from archon.report.format import NAMES, percent, printable
from archon.report.grids import Named
from archon.report.sampling import OWN_ANSWER, Sampling

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_png(named: Named, path: Path) -> None:
    """Draw coverage and selectors, one panel per system with several samples; the others are lines across each."""
    # Imported here: loading matplotlib takes a second. Its Figure draws with Agg and touches no global state.
    from matplotlib.figure import Figure

    panels = [(name, summary.sampling) for name, summary in named if summary.sampling and summary.sampling.k > 1]
    lines = [(name, summary.accuracy) for name, summary in named if name not in dict(panels) and summary.accuracy]
    columns = min(3, max(1, len(panels)))
    rows = -(-max(1, len(panels)) // columns)
    figure = Figure(figsize=(6.4 * columns, 4.4 * rows), dpi=150, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[max(1, len(panels)) :]:
        axis.set_visible(False)
    for place, axis in enumerate(axes[: max(1, len(panels))]):
        _frame(axis)
        if panels:
            axis.set_title(_plain(panels[place][0]), fontsize=11)
            _draw(axis, panels[place][1])
        for number, (name, accuracy) in enumerate(lines):
            label = f"{_plain(name)}: {percent(accuracy.value)}"
            axis.axhline(accuracy.value, color=COLOURS[-1 - number % 4], linestyle=":", label=label)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=8, loc="lower right")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a box is drawn for letters the font lacks
        figure.savefig(path, metadata={"Software": None})


def _frame(axis: Axes) -> None:
    from matplotlib.ticker import PercentFormatter

    axis.set(ylim=(0, 1.02), xlabel="samples per problem, k", ylabel="problems solved", xscale="log")
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_xticks([])
    axis.minorticks_off()
    axis.grid(color="#e7eaee", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)


def _draw(axis: Axes, sampling: Sampling) -> None:
    for curve in map(thinned, (sampling.coverage, *sampling.selectors)):
        colour = CURVE_COLOURS[curve.name]
        axis.fill_between(curve.ks, curve.low, curve.high, color=colour, alpha=0.1, linewidth=0)
        marker = "o" if len(curve.ks) <= 64 else None
        axis.plot(curve.ks, curve.mean, color=colour, marker=marker, markersize=3, label=NAMES[curve.name])
    ticks = k_ticks(sampling.coverage.ks[-1])
    axis.set_xticks(ticks, [f"{k:,}" for k in ticks], minor=False)
    for gap in sampling.gaps:
        if gap.selector == OWN_ANSWER:
            axis.plot(
                [gap.k], [gap.precision], "*", color=CURVE_COLOURS[OWN_ANSWER], markersize=10, label=NAMES[OWN_ANSWER]
            )


def _plain(text: str) -> str:
    """Return the text without control characters, and with `$` escaped: matplotlib reads it as mathematics."""
    return printable(text).replace("$", r"\$")
