"""Runs, made here, that look like real ones."""

from __future__ import annotations

from random import Random

from archon.report.records import LayerUse, Record, Run, RunInfo, Sample
from archon.types import Usage

HOSTILE = '<script>alert("1")</script>|`x`\n# [a](b) $1 \x1b[31m&amp;'


def info(system: str = "one-call", task: str = "humaneval", **changes: object) -> RunInfo:
    fields: dict[str, object] = {
        "system": system,
        "task": task,
        "pipeline_yaml": f"name: {system}\nlayers:\n  - generator: {{n: 8}}\n",
        "pipeline_hash": "sha256:0123456789ab",
        "seed": 7,
        "started_utc": "2026-01-02T03:04:05Z",
        "archon_version": "0.1.0",
        "machine": "x86-64, 2 cores, 24 GB",
        "sandbox": "docker: no network, 512 MB, 10 s",
        "parameters": (("generator", 494_032_768),),
    }
    return RunInfo(**(fields | changes))  # type: ignore[arg-type]


def usage(
    calls: int = 1, prompt: int | None = 100, out: int | None = 200, usd: float | None = 0.001, s: float = 2.0
) -> Usage:
    return Usage(calls=calls, prompt_tokens=prompt, completion_tokens=out, cost_usd=usd, critical_s=s, attempts=calls)


def record(problem_id: str, correct: bool | None, system: str = "one-call", **changes: object) -> Record:
    fields: dict[str, object] = {
        "system": system,
        "task": "humaneval",
        "problem_id": problem_id,
        "status": "answered",
        "correct": correct,
        "usage": usage(),
    }
    return Record(**(fields | changes))  # type: ignore[arg-type]


def made_run(system: str = "pipeline", problems: int = 40, n: int = 8, seed: int = 1, lift: float = 0.25) -> Run:
    """A run whose samples, scores, layers and outcomes look like a real one."""
    rng = Random(seed)
    records = []
    for place in range(problems):
        easy = rng.betavariate(0.6, 0.8)
        samples = tuple(
            Sample(
                correct=None if rng.random() < 0.002 else (right := rng.random() < easy),
                answer=str(int(right)) if right else str(rng.randint(2, 4)),
                score=round(0.3 * right + 0.7 * rng.random(), 1),
                completion_tokens=150,
            )
            for _ in range(n)
        )
        solved = rng.random() < min(1.0, easy + lift)
        layers = (
            LayerUse(
                layer="generator",
                kind="generator",
                usage=usage(n, 150 * n, 200 * n, 0.0, 3 + rng.random()),
                parses=(("ok", n),),
            ),
            LayerUse(
                layer="critic",
                kind="critic",
                usage=usage(1, 1500, 300, 0.0, 2 + rng.random()),
                parses=(("ok", 1),) if place % 7 else (("truncated", 1),),
                not_judged=int(place % 7 == 0),
            ),
            LayerUse(
                layer="verifier",
                kind="verifier",
                usage=usage(2, 900, 250, 0.0, 1 + rng.random()),
                parses=(("ok", 1), ("repaired", 1)),
            ),
        )
        records.append(
            record(
                f"HumanEval/{place}",
                solved,
                system,
                difficulty=1 + place % 3,
                samples=samples,
                usage=sum((layer.usage for layer in layers), Usage()),
                layers=layers,
                wall_s=9.0,
                notes=("all_rejected: best_effort",) if place % 11 == 0 else (),
            )
        )
    return Run(info=info(system), records=tuple(records))
