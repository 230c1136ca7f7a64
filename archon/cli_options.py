"""The options that several commands share, each with one name, one meaning and one check."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from archon.budget import Budget
from archon.errors import ConfigError, nearest
from archon.sandbox.auto import ENGINES

_INT64 = 2**63


def _engine(name: str | None) -> str | None:
    if name is not None and name not in ENGINES:
        raise ConfigError(f"--sandbox {name!r}: {nearest(name, ENGINES)}")
    return name


PipelineFile = Annotated[Path, typer.Argument(help="A pipeline as YAML, or one of Archon's published JSON files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Lenient = Annotated[bool, typer.Option(help="Accept keys that are not understood, and list them.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="Budget for each problem, in tokens.")]
MaxUsd = Annotated[float | None, typer.Option("--max-usd", help="Budget for each problem, in dollars.")]
MaxSeconds = Annotated[float | None, typer.Option("--max-seconds", help="Budget for each problem, in seconds.")]
MaxCalls = Annotated[int | None, typer.Option("--max-calls", help="Budget for each problem, in model calls.")]
Seed = Annotated[
    int, typer.Option(min=-_INT64, max=_INT64 - 1, help="The same seed asks a model for the same samples.")
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--sandbox",
        help="docker or bubblewrap; left out: the best one here.",
        callback=lambda name: _engine(name),
    ),
]


def narrowed(own: Budget | None, given: Budget) -> Budget:
    """Return the pipeline file's budget with the command line's limits in place of its own."""
    limits = {each.name: getattr(given, each.name) for each in fields(Budget)}
    return replace(own or Budget(), **{name: limit for name, limit in limits.items() if limit is not None})
