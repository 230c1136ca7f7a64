"""One row per solve as CSV and Parquet, for whoever wants to compute something else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from archon.report.records import Record, Run

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "system": "string",
    "task": "string",
    "problem_id": "string",
    "difficulty": "Int64",
    "status": "string",
    "correct": "boolean",
    "samples": "Int64",
    "samples_judged": "Int64",
    "samples_correct": "Int64",
    "calls": "Int64",
    "prompt_tokens": "Int64",
    "completion_tokens": "Int64",
    "reasoning_tokens": "Int64",
    "tokens": "Int64",
    "cost_usd": "Float64",
    "paid_usd": "Float64",
    "critical_s": "Float64",
    "wait_s": "Float64",
    "wall_s": "Float64",
    "parse_failures": "Int64",
    "verdicts_not_judged": "Int64",
    "notes": "string",
    "error": "string",
    "pipeline_hash": "string",
    "seed": "Int64",
}
"""Columns with pandas' nullable types: what is not known or not judged is missing, never 0 or False."""


def frame(runs: Sequence[Run]) -> pd.DataFrame:
    """Return one row per solve of every run, columns as `COLUMNS`."""
    import pandas as pd  # here: half a second that only an export needs

    rows = [_row(record) | {"pipeline_hash": run.info.pipeline_hash, "seed": run.info.seed}
            for run in runs for record in run.records]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def write_tables(runs: Sequence[Run], csv: Path, parquet: Path) -> None:
    """Write the rows to both files."""
    rows = frame(runs)
    rows.to_csv(csv, index=False, lineterminator="\n")
    rows.to_parquet(parquet, index=False)


def _row(record: Record) -> dict[str, object]:
    usage, judged = record.usage, [sample.correct for sample in record.samples if sample.correct is not None]
    failures = [n for use in record.layers for status, n in use.parses if status not in ("ok", "repaired")]
    return {
        "system": record.system,
        "task": record.task,
        "problem_id": record.problem_id,
        "difficulty": record.difficulty,
        "status": record.status,
        "correct": record.correct,
        "samples": len(record.samples),
        "samples_judged": len(judged),
        "samples_correct": sum(judged),
        "calls": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "tokens": usage.tokens,
        "cost_usd": usage.cost_usd,
        "paid_usd": usage.paid_usd,
        "critical_s": usage.critical_s,
        "wait_s": usage.wait_s,
        "wall_s": record.wall_s,
        "parse_failures": sum(failures),
        "verdicts_not_judged": sum(use.not_judged for use in record.layers),
        "notes": "; ".join(record.notes) or None,
        "error": record.error,
    }
