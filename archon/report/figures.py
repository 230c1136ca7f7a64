"""The interactive plots as plotly figures in plain dicts: no plotly object is needed to write them."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from archon.report.cost import Spend
from archon.report.coverage import Curve
from archon.report.format import NAMES
from archon.report.grids import Named
from archon.report.passk import log_spaced
from archon.report.sampling import OWN_ANSWER, Sampling
from archon.report.summary import Summary

Figure = dict[str, Any]

INK, GRID = "#24292f", "#e7eaee"
COLOURS = ("#0b6e99", "#d9730d", "#0f7b6c", "#9065b0", "#c14c8a", "#64473a", "#5a7d2a", "#787774")
"""Told apart by people with the common colour-vision deficiencies at this lightness, on white."""
CURVE_COLOURS = {
    "coverage": COLOURS[0],
    "best_of_n": COLOURS[1],
    "majority": COLOURS[2],
    "weighted_best_of_n": COLOURS[3],
    OWN_ANSWER: INK,
}


def thinned(curve: Curve) -> Curve:
    """Return a curve with at most some 150 points: no screen shows more of a smooth line."""
    if len(curve.ks) <= 64:
        return curve
    wanted = {curve.ks[index - 1] for index in log_spaced(len(curve.ks), 150).tolist()}
    return curve.thin(sorted(wanted))


def coverage_figure(sampling: Sampling) -> Figure:
    """Return coverage and selector curves of one system, with the gap at the headline k shaded and labelled."""
    coverage = thinned(sampling.coverage)
    selectors = [thinned(curve) for curve in sampling.selectors]
    best = max(selectors, key=lambda curve: curve.mean[-1], default=None)
    data = [*_gap_area(coverage, best)]
    data += [trace for curve in (coverage, *selectors) for trace in _curve(curve)]
    own = next((gap for gap in sampling.gaps if gap.selector == OWN_ANSWER), None)
    if own is not None:
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [sampling.k],
                "y": [own.precision],
                "name": NAMES[OWN_ANSWER],
                "marker": {"symbol": "star", "size": 14, "color": INK},
                "hovertemplate": "%{y:.1%}<extra>" + NAMES[OWN_ANSWER] + "</extra>",
            }
        )
    layout = _layout("samples per problem, k (log scale)", "problems solved")
    layout["xaxis"] |= {"type": "log", **_k_ticks(coverage.ks[-1])}
    layout["annotations"] = _gap_label(sampling, best)
    return {"data": data, "layout": layout}


def _curve(curve: Curve) -> list[Figure]:
    colour, ks = CURVE_COLOURS[curve.name], list(curve.ks)
    band = {
        "type": "scatter",
        "mode": "lines",
        "x": ks + ks[::-1],
        "y": [*curve.high, *curve.low[::-1]],
        "fill": "toself",
        "fillcolor": f"{colour}1a",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": curve.name,
    }
    line = {
        "type": "scatter",
        "mode": "lines+markers" if len(ks) <= 64 else "lines",
        "x": ks,
        "y": list(curve.mean),
        "name": NAMES[curve.name],
        "legendgroup": curve.name,
        "line": {"color": colour, "width": 2.5},
        "marker": {"size": 6, "color": colour},
        "customdata": [list(row) for row in zip(curve.low, curve.high, curve.problems, curve.undefined, strict=True)],
        "hovertemplate": "k = %{x}: %{y:.1%} [%{customdata[0]:.1%}, %{customdata[1]:.1%}]<br>"
        "over %{customdata[2]} problems, %{customdata[3]} with fewer samples left out"
        f"<extra>{NAMES[curve.name]}</extra>",
    }
    return [band, line]


def _gap_area(coverage: Curve, best: Curve | None) -> list[Figure]:
    if best is None:
        return []
    shared = [k for k in coverage.ks if k in set(best.ks)]
    top, bottom = coverage.thin(shared), best.thin(shared)
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [*shared, *shared[::-1]],
            "y": [*top.mean, *bottom.mean[::-1]],
            "fill": "toself",
            "fillcolor": "rgba(200, 200, 190, 0.35)",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "name": "solved by a sample, not selected",
        }
    ]


def _gap_label(sampling: Sampling, best: Curve | None) -> list[Figure]:
    gap = next((gap for gap in sampling.gaps if best is not None and gap.selector == best.name), None)
    if gap is None or sampling.k < 2:
        return []
    closed = "" if gap.share_closed is None else f"<br>{100 * gap.share_closed:.0f} % of the gap closed"
    return [
        {
            "x": 1,
            "y": (gap.coverage + gap.precision) / 2,
            "xref": "paper",
            "yref": "y",
            "xanchor": "left",
            "xshift": 10,
            "align": "left",
            "showarrow": False,
            "font": {"size": 12, "color": "#57606a"},
            "text": f"gap at k = {gap.k}:<br><b>{100 * gap.gap:.1f} points</b>{closed}",
        }
    ]


def cost_figure(named: Named) -> Figure | None:
    """Return accuracy against what it took, with buttons for the quantity; None when nothing is known of any."""
    shown = [(name, summary) for name, summary in named if summary.accuracy is not None]
    axes = [
        ("tokens per problem", [_per_problem(summary.cost.tokens) for _, summary in shown]),
        ("dollars per problem", [_per_problem(summary.cost.usd) for _, summary in shown]),
        ("critical-path seconds per problem", [_per_problem(summary.cost.critical_s) for _, summary in shown]),
        ("FLOPs per problem", [_per_problem(summary.cost.flops) for _, summary in shown]),
    ]
    axes = [(title, values) for title, values in axes if any(value is not None for value in values)]
    if not shown or not axes:
        return None
    data = [_point(place, name, summary, axes[0][1][place]) for place, (name, summary) in enumerate(shown)]
    layout = _layout(axes[0][0], "accuracy")
    layout["xaxis"] |= _axis_for(axes[0][1])
    layout["updatemenus"] = [
        {
            "type": "buttons",
            "direction": "right",
            "x": 0,
            "xanchor": "left",
            "y": 1.16,
            "yanchor": "top",
            "bgcolor": "#ffffff",
            "bordercolor": "#d0d7de",
            "font": {"size": 12},
            "buttons": [_button(title, values) for title, values in axes],
        }
    ]
    return {"data": data, "layout": layout}


def _point(place: int, name: str, summary: Summary, x: float | None) -> Figure:
    accuracy, label = summary.accuracy, html.escape(name)
    assert accuracy is not None
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x],
        "y": [accuracy.value],
        "name": label,
        "marker": {"size": 13, "color": COLOURS[place % len(COLOURS)]},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [accuracy.interval.high - accuracy.value],
            "arrayminus": [accuracy.value - accuracy.interval.low],
            "thickness": 1.5,
            "width": 6,
        },
        "hovertemplate": f"%{{y:.1%}} at %{{x:,.4~g}}<extra>{label}</extra>",
    }


def _button(title: str, values: Sequence[float | None]) -> Figure:
    layout = {f"xaxis.{key}": value for key, value in _axis_for(values).items()} | {"xaxis.title.text": title}
    return {
        "label": title.removesuffix(" per problem"),
        "method": "update",
        "args": [{"x": [[v] for v in values]}, layout],
    }


def _axis_for(values: Sequence[float | None]) -> Figure:
    """Return a log axis marked at 1, 2, 5, 10, … for quantities that span more than five times; else one from 0."""
    known = [value for value in values if value is not None]
    low, high = min(known), max(known)
    if low <= 0 or high <= 5 * low:
        return {"type": "linear", "autorange": True, "rangemode": "tozero", "tickmode": "auto"}
    low, high = low / 1.6, high * 1.6
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
    ticks = [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]
    return {
        "type": "log",
        "autorange": False,
        "range": [math.log10(low), math.log10(high)],
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [
            f"{tick:,.0f}" if 1 <= tick < 1e7 else f"{tick:.0e}" if tick >= 1e7 else f"{tick:g}" for tick in ticks
        ],
    }


def _per_problem(spend: Spend) -> float | None:
    return spend.per_problem


def levels_figure(named: Named) -> Figure | None:
    """Return accuracy by difficulty, a group of bars per level; None when no problem states one."""
    if not any(summary.levels for _, summary in named):
        return None
    data = []
    for place, (name, summary) in enumerate(named):
        levels = [(level, level.accuracy) for level in summary.levels if level.difficulty is not None]
        bars = [(level, accuracy) for level, accuracy in levels if accuracy is not None]
        data.append(
            {
                "type": "bar",
                "name": html.escape(name),
                "x": [f"level {level.difficulty}" for level, _ in bars],
                "y": [accuracy.value for _, accuracy in bars],
                "marker": {"color": COLOURS[place % len(COLOURS)]},
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": [accuracy.interval.high - accuracy.value for _, accuracy in bars],
                    "arrayminus": [accuracy.value - accuracy.interval.low for _, accuracy in bars],
                    "thickness": 1.2,
                    "width": 4,
                },
                "hovertemplate": f"%{{y:.1%}}<extra>{html.escape(name)}</extra>",
            }
        )
    layout = _layout("difficulty", "accuracy")
    layout["barmode"] = "group"
    return {"data": data, "layout": layout}


def _layout(x: str, y: str) -> Figure:
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": "#d0d7de", "ticks": "outside", "tickcolor": "#d0d7de"}
    return {
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "height": 440,
        "margin": {"l": 72, "r": 150, "t": 56, "b": 110},
        "legend": {"orientation": "h", "x": 0, "y": -0.24, "yanchor": "top"},
        "hovermode": "closest",
        "xaxis": axis | {"title": {"text": x, "standoff": 12}},
        "yaxis": axis | {"title": {"text": y, "standoff": 16}, "tickformat": ".0%", "range": [0, 1.02]},
    }


def k_ticks(largest: int) -> list[int]:
    """Return the k to mark on a log axis: powers of two up to 128, of ten beyond."""
    base = 2 if largest <= 128 else 10
    return [k for k in (base**power for power in range(20)) if k <= largest]


def _k_ticks(largest: int) -> Figure:
    ticks = k_ticks(largest)
    return {"tickmode": "array", "tickvals": ticks, "ticktext": [f"{k:,}" for k in ticks]}
