"""Code-fix jobs with a real local model: solved at 1, 2, 4, 8 samples and by the fix loop, with the tokens each took.

`python -m benchmarks.codefix [--set humanevalfix] [--limit 40] [--n 8] [--model NAME] [--quick] [--json PATH]`

Sampling draws n patches for each instance at once; solved at k is the unbiased pass@k over them, which is what a
perfect verifier could choose, and its tokens are the prompt's and k of n samples'. The loop draws two patches a round,
shows the best one with its real test output to the next round, and stops at the first that passes the visible tests. It
shares the first two samples with sampling, so the two are paired. Both are graded by the set's own tests. Each has its
run folder (`--out`) and is resumed by the same command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from archon.codefix.batch import Batch, FixOptions, fix_batch
from archon.codefix.repository_tests import SUITE_LIMITS
from archon.codefix.sets import load_instances
from archon.codefix.types import Instance
from archon.config import LoadedPipeline
from archon.layers.generator import Generator
from archon.report.intervals import bootstrap_mean
from archon.report.passk import pass_at_k
from archon.report.records import Record
from archon.run.progress import ProgressBar
from archon.run.runtime import Runtime
from benchmarks.bars import Bar, arguments, publish

_LOOP_SAMPLES = 2


def main() -> None:
    """Fix the set both ways and print what was solved at which cost."""
    parser = arguments(__doc__)
    parser.add_argument("--set", default="humanevalfix", dest="name", help="a set of `archon fix --set`")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--n", type=int, default=8, help="samples without a loop")
    parser.add_argument("--rounds", type=int, default=4, help="of the loop, two samples each")
    parser.add_argument("--model", default="local/qwen2.5-coder-0.5b")
    parser.add_argument("--sandbox", help="docker or bubblewrap; left out: the best one here")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark-codefix"))
    asked = parser.parse_args()
    if asked.quick:
        asked.limit, asked.n, asked.rounds = 2, 2, 2
    instances = load_instances(asked.name, limit=asked.limit)
    out = asked.out / ("quick" if asked.quick else asked.name)
    sampled = asyncio.run(_fixed(asked, instances, out, asked.n, 1))
    looped = asyncio.run(_fixed(asked, instances, out, min(_LOOP_SAMPLES, asked.n), asked.rounds))
    rows = [*_sampling_rows(sampled.run.records, asked.n), _loop_row(looped.run.records)]
    _print(rows, asked.model, asked.name, sampled.unusable)
    publish([_bar(sampled.run.records, looped.run.records, rows)], rows, asked.json)


async def _fixed(asked: Any, instances: Sequence[Instance], out: Path, n: int, rounds: int) -> Batch:  # noqa: ANN401
    name = f"n{n}-rounds{rounds}"
    generator = Generator(model=asked.model, n=n, temperature=0.8, max_tokens=768)
    loaded = LoadedPipeline(name=name, pipeline=generator)
    options = FixOptions(
        rounds=rounds, concurrency=asked.concurrency, repeats=1, limits=replace(SUITE_LIMITS, wall_s=30.0)
    )
    async with Runtime(cache=out / "completions.sqlite", engine=asked.sandbox) as runtime:
        with ProgressBar(f"{name} on {asked.name}") as bar:
            return await fix_batch(
                loaded,
                instances,
                name=asked.name,
                folder=out / name,
                runtime=runtime,
                options=options,
                progress=bar,
            )


def _sampling_rows(records: Sequence[Record], n: int) -> list[dict[str, Any]]:
    rows = []
    for k in (k for k in (1, 2, 4, 8, 16, 32) if k <= n):
        solved_P = [pass_at_k(len(r.samples), sum(s.correct is True for s in r.samples), k) for r in records]
        rows.append(_row(f"best of {k} samples (pass@{k})", solved_P, [_tokens_at(r, k) for r in records]))
    chosen = [float(record.correct is True) for record in records]
    rows.append(_row(f"chosen from {n} by visible tests", chosen, [record.usage.tokens for record in records]))
    return rows


def _loop_row(records: Sequence[Record]) -> dict[str, Any]:
    solved = [float(record.correct is True) for record in records]
    return _row("fix loop", solved, [record.usage.tokens for record in records])


def _tokens_at(record: Record, k: int) -> float | None:
    usage = record.usage
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return usage.prompt_tokens + usage.completion_tokens * k / max(1, len(record.samples))


def _row(name: str, solved_P: Sequence[float], tokens_P: Sequence[float | int | None]) -> dict[str, Any]:
    mean = bootstrap_mean(list(solved_P), 0)
    assert mean is not None
    known = [tokens for tokens in tokens_P if tokens is not None]
    return {
        "system": name,
        "n": len(solved_P),
        "solved": mean.value,
        "low": mean.interval.low,
        "high": mean.interval.high,
        "tokens": float(np.mean(known)) if len(known) == len(tokens_P) else None,
    }


def _bar(sampled: Sequence[Record], looped: Sequence[Record], rows: Sequence[dict[str, Any]]) -> Bar:
    """Does the loop solve at least what sampling covers, at half of its tokens?"""
    cover, loop = next(row for row in reversed(rows) if "pass@" in row["system"]), rows[-1]
    by_id = {record.problem_id: record for record in sampled}
    shared = [(by_id[record.problem_id], record) for record in looped if record.problem_id in by_id]
    gains = [float(b.correct is True) - float(any(s.correct for s in a.samples)) for a, b in shared]
    gain = bootstrap_mean(gains, 0)
    assert gain is not None
    share = None if not cover["tokens"] or loop["tokens"] is None else loop["tokens"] / cover["tokens"]
    tokens = "tokens not known" if share is None else f"{share:.0%} of its tokens"
    return Bar(
        name="fix loop against all samples' coverage",
        asked="at least as many solved, at most 50% of the tokens",
        seen=f"{loop['solved']:.1%} against {cover['solved']:.1%} ({gain.value * 100:+.1f} points "
        f"[{gain.interval.low * 100:+.1f}, {gain.interval.high * 100:+.1f}]), {tokens}",
        ok=bool(loop["solved"] >= cover["solved"] and share is not None and share <= 0.5),
    )


def _print(rows: Sequence[dict[str, Any]], model: str, name: str, unusable: Sequence[tuple[str, str]]) -> None:
    print(f"{name}, {model}")
    for row in rows:
        tokens = "tokens not known" if row["tokens"] is None else f"{row['tokens']:>8,.0f} tokens"
        solved = f"{row['solved']:>7.1%} [{row['low']:.1%}, {row['high']:.1%}]"
        print(f"  {row['system']:<36}{solved:<26}{tokens} an instance, n = {row['n']}")
    for identity, reason in unusable:
        print(f"  not used: {identity}: {reason}")


if __name__ == "__main__":
    main()
