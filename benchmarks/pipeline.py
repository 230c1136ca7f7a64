"""What a pipeline gains over one call, with a real local model: accuracy, tokens, seconds, FLOPs, paired intervals.

`python -m benchmarks.pipeline [--quick] [--json PATH] [--out FOLDER] [--parts humaneval,larger,gsm8k,judge]`

Parts, each resumable in its own run folder (the same command goes on where it was stopped):
  humaneval  all 164 HumanEval problems with Qwen2.5-Coder-0.5B: one call, majority, best-of-8 by executed tests, the
             full pipeline; pass@8 as the ceiling
  larger     one call of Qwen2.5-Coder-1.5B on the same problems, for FLOPs (2·N per token) against the small pipeline
  gsm8k      one call, majority and the full pipeline on rows of GSM8K
  judge      0.5B generates, 1.5B criticises, ranks and verifies, on the first HumanEval problems
One call is measured by pass@1 over the 8 samples, which is its expectation; sample 0 alone has the same mean and more
noise. All systems of a part share one completion cache, so they select among the same samples: differences are paired.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from archon import __version__
from archon.config import dump_pipeline, load_pipeline, pipeline_hash
from archon.report import table, write_report
from archon.report.cost import Weights, flops_of
from archon.report.intervals import bootstrap_mean
from archon.report.passk import pass_at_k
from archon.report.records import Record, Run, RunInfo
from archon.run.evaluate import EvalOptions, evaluate
from archon.run.journal import Journal
from archon.run.machine import describe_machine
from archon.run.progress import ProgressBar
from archon.run.remembering import RememberingGrader
from archon.run.runtime import Runtime
from archon.tasks import load_tasks
from archon.tasks.protocol import TaskSet
from benchmarks.bars import Bar, arguments, publish

CONFIGS = Path(__file__).parent.parent / "configs" / "pipelines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Systems on one problem set."""

    task: str
    systems: tuple[str, ...]
    """Names of files in configs/pipelines."""
    problems: int | None
    """The first so many; None: all."""
    quick: int


PARTS = {
    "humaneval": Part(
        task="humaneval", systems=("single", "majority", "best_of_8_tests", "archon"), problems=None, quick=2
    ),
    "larger": Part(task="humaneval", systems=("single_1.5b",), problems=None, quick=1),
    "gsm8k": Part(task="gsm8k", systems=("single", "majority", "archon"), problems=100, quick=2),
    "judge": Part(task="humaneval", systems=("judge_1.5b",), problems=40, quick=1),
}


def main() -> None:
    """Run the parts that were asked for and print their bars."""
    parser = arguments(__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark-pipeline"), help="the run folders' parent")
    parser.add_argument("--parts", default="humaneval,larger,gsm8k,judge", help="which parts, by comma")
    parser.add_argument("--problems", type=int, help="at most this many of each part's problems; the same for all")
    parser.add_argument("--sandbox", help="docker or bubblewrap; bubblewrap takes less of a small machine")
    asked = parser.parse_args()
    names = ["humaneval"] if asked.quick else asked.parts.split(",")
    out = asked.out / "quick" if asked.quick else asked.out
    runs: dict[str, list[Run]] = {}
    for name in names:
        part = PARTS[name]
        problems = part.quick if asked.quick else part.problems
        if asked.problems is not None:
            problems = min(asked.problems, problems or asked.problems)
        runs[name] = asyncio.run(measure(part, out / name, problems, out, asked.sandbox))
        write_report(runs[name], out / name)
        print(table(runs[name]))
    bars = [bar for name in names for bar in bars_of(name, runs)]
    publish(bars, [figures(run) for part_runs in runs.values() for run in part_runs], asked.json)


async def measure(part: Part, out: Path, problems: int | None, shared: Path, engine: str | None) -> list[Run]:
    """Evaluate each system of a part on the same problems, in the same runtime."""
    tasks = load_tasks(part.task, limit=problems)
    tasks = replace(tasks, grader=RememberingGrader(tasks.grader))
    async with Runtime(cache=shared / "completions.sqlite", engine=engine) as runtime:
        return [await evaluate_system(system, tasks, out / system, runtime) for system in part.systems]


async def evaluate_system(system: str, tasks: TaskSet, folder: Path, runtime: Runtime) -> Run:
    """Evaluate one configuration file, resuming what its folder has."""
    loaded = load_pipeline(CONFIGS / f"{system}.yaml")
    compiled = loaded.pipeline.compiled(loaded.name)
    info = RunInfo(
        system=loaded.name,
        task=tasks.name,
        pipeline_yaml=dump_pipeline(loaded.pipeline, name=loaded.name),
        pipeline_hash=pipeline_hash(compiled),
        seed=0,
        started_utc="",
        archon_version=__version__,
        machine=describe_machine(),
        parameters=await runtime.parameters(compiled),
    )
    with Journal(folder) as journal, ProgressBar(f"{loaded.name} on {tasks.name}") as bar:
        options = EvalOptions(concurrency=16)
        return await evaluate(
            compiled, tasks, journal=journal, info=info, runtime=runtime, options=options, progress=bar
        )


def pass_at_1_P(run: Run) -> list[float]:
    """Return each problem's share of right samples."""
    return [float(np.mean([sample.correct is True for sample in record.samples])) for record in run.records]


def coverage(run: Run, k: int) -> float:
    """Return mean pass@k over the problems."""
    return float(
        np.mean([pass_at_k(len(r.samples), sum(s.correct is True for s in r.samples), k) for r in run.records])
    )


def accuracy_P(run: Run) -> list[float]:
    """Return 1.0 for each problem whose final answer is right."""
    return [float(record.correct is True) for record in run.records]


def bars_of(part: str, runs: dict[str, list[Run]]) -> list[Bar]:
    """Return the bars that a part can show."""
    if part == "larger":
        return _larger_bars(runs)
    by_system = {run.info.system: run for run in runs[part]}
    sampled = next((run for run in by_system.values() if run.records and len(run.records[0].samples) > 1), None)
    if sampled is None:
        return []
    one, k = pass_at_1_P(sampled), max(len(record.samples) for record in sampled.records)
    ceiling = coverage(sampled, k)
    bars = []
    for name, run in by_system.items():
        if run is not sampled and len(run.records[0].samples) < 2:
            continue
        gains = [right - mean for right, mean in zip(accuracy_P(run), one, strict=True)]
        gain = bootstrap_mean(gains, 0)
        assert gain is not None
        gap = ceiling - float(np.mean(one))
        closed = gain.value / gap if gap > 0 else float("nan")
        seen = (
            f"{np.mean(one):.1%} → {np.mean(accuracy_P(run)):.1%}: {gain.value * 100:+.1f} points "
            f"[{gain.interval.low * 100:+.1f}, {gain.interval.high * 100:+.1f}], "
            f"{closed:.0%} of the gap to pass@{k} {ceiling:.1%}, n = {len(gains)}"
        )
        by_tests = part == "humaneval" and name == "best-of-8-tests"
        ok = gain.value >= 0.12 and gain.interval.low > 0 and closed >= 0.5 if by_tests else gain.interval.low > 0
        asked = ">= 12 points, interval above 0, half of the gap" if by_tests else "interval above 0"
        bars.append(Bar(name=f"{part}: {name} over one call", asked=asked, seen=seen, ok=bool(ok)))
    return bars


def _larger_bars(runs: dict[str, list[Run]]) -> list[Bar]:
    """Compare the small model's pipelines with one call of the larger model, in accuracy and FLOPs."""
    large = runs["larger"][0]
    bars = []
    for run in runs.get("humaneval", []):
        ids = {record.problem_id: record for record in large.records}
        pairs = [(record, ids[record.problem_id]) for record in run.records if record.problem_id in ids]
        difference = bootstrap_mean([float(a.correct is True) - float(b.correct is True) for a, b in pairs], 0)
        assert difference is not None
        ours = _flops([a for a, _ in pairs], run.info.parameters)
        theirs = _flops([b for _, b in pairs], large.info.parameters)
        seen = (
            f"{difference.value * 100:+.1f} points [{difference.interval.low * 100:+.1f}, "
            f"{difference.interval.high * 100:+.1f}], {ours:.2e} against {theirs:.2e} FLOPs a problem, n = {len(pairs)}"
        )
        bars.append(
            Bar(name=f"{run.info.system} against {large.info.system}", asked="both printed", seen=seen, ok=True)
        )
    return bars


def _flops(records: Sequence[Record], parameters: Weights) -> float:
    known = [flops for record in records if (flops := flops_of(record, parameters)) is not None]
    return float(np.mean(known)) if known else float("nan")


def figures(run: Run) -> dict[str, Any]:
    """Return a run's figures for the JSON file."""
    usage = [record.usage for record in run.records]
    return {
        "system": run.info.system,
        "task": run.info.task,
        "problems": len(run.records),
        "accuracy": float(np.mean(accuracy_P(run))),
        "pass@1": float(np.mean(pass_at_1_P(run))),
        "tokens_per_problem": float(np.mean([each.tokens or 0 for each in usage])),
        "calls_per_problem": float(np.mean([each.calls for each in usage])),
        "critical_s_p50": float(np.median([each.critical_s for each in usage])),
        "flops_per_problem": _flops(run.records, run.info.parameters),
        "info": asdict(run.info),
    }


if __name__ == "__main__":
    main()
