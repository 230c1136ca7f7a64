"""Choosing among 100 real samples by generated tests: dual agreement, agreement on values, and passed tests.

`python -m benchmarks.codet [--quick] [--json PATH] [--problems N] [--cache PATH]`

Samples and tests are CodeGen-16B's own, as published with CodeT (164 HumanEval problems without their examples, 100
samples each; any one is right in 22.13 % of draws). Every distinct program runs on the distinct tests that were written
most often, at most 12 for a problem, in the sandbox; what it did is kept in a cache file, one line for each problem, so
a stopped run goes on where it was. A way of choosing that leaves several samples equal counts as their mean. Beside
all 100 samples stand draws of 8 samples and 8 tests, which is what a pipeline has.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from archon.layers.agreement import Observation
from archon.layers.discrimination import TRIVIAL, run_trivial
from archon.layers.parse_tests import parse_code_tests
from archon.report.intervals import Estimate, bootstrap_mean
from archon.sandbox import Sandbox, open_sandbox
from archon.tasks.data_folder import Source, data_folder, rows_of
from archon.types import UnitTest
from benchmarks.bars import Bar, arguments, publish
from benchmarks.codet_choosing import WAYS, Case, discriminating, drawn
from benchmarks.codet_execution import PER_CALL_S, outcomes_of

MOST_TESTS = 12
"""For each problem: about 8 s then, seen on two busy cores, so some twenty minutes for all."""
PER_REPLY = 5
"""Tests read from one reply, as the authors' program does by default."""
FEW, DRAWS = 8, 20
"""What a pipeline has to choose from: 8 samples and 8 tests."""
QUICK = 3
PUBLISHED = 0.2213
_SETTINGS = [MOST_TESTS, PER_REPLY, PER_CALL_S]
"""What the outcomes depend on: those of other settings are not taken from the cache."""
_WHERE = "github.com/microsoft/CodeT"
_SAMPLES = Source(
    stem="codet_humaneval_codegen16b_samples",
    fields=("task_id", "prompt", "entry_point", "completions", "sample_to_completion", "passed"),
    published=_WHERE,
)
_TESTS = Source(
    stem="codet_humaneval_codegen16b_generated_tests", fields=("task_id", "raw_test_samples"), published=_WHERE
)


def main() -> None:
    """Run the problems that were asked for and print each way of choosing."""
    parser = arguments(__doc__)
    parser.add_argument("--problems", type=int, help="this many, spread evenly over the set")
    parser.add_argument("--cache", type=Path, default=Path("runs/benchmark-codet.jsonl"), help="what was run already")
    asked = parser.parse_args()
    rows = rows_of(_SAMPLES, data_folder())
    written = {row["task_id"]: row["raw_test_samples"] for row in rows_of(_TESTS, data_folder())}
    count = QUICK if asked.quick else min(asked.problems or len(rows), len(rows))
    chosen = [rows[i * len(rows) // count] for i in range(count)]
    cases = asyncio.run(run(chosen, written, asked.cache))
    bars, figures = report(cases)
    every = float(np.mean([bit == "1" for row in rows for bit in row["passed"]]))
    published = Bar(
        name="any one of the 16,400 samples",
        asked=f"{PUBLISHED:.2%}",
        seen=f"{every:.2%}",
        ok=round(every, 4) == PUBLISHED,
    )
    publish([published, *bars], figures, asked.json)


async def run(rows: Sequence[Mapping[str, Any]], written: Mapping[str, Sequence[str]], cache: Path) -> list[Case]:
    """Return the cases, running what the cache does not hold."""
    known = _read(cache)
    if all(row["task_id"] in known for row in rows):
        return [_case(row, known[row["task_id"]]) for row in rows]
    cache.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    sandbox = await open_sandbox("bubblewrap")
    try:
        with cache.open("a") as file:
            for done, row in enumerate(rows, 1):
                if row["task_id"] not in known:
                    known[row["task_id"]] = await _execute(sandbox, row, written[row["task_id"]])
                    file.write(json.dumps(known[row["task_id"]]) + "\n")
                    file.flush()
                    print(f"  {done} of {len(rows)} problems, {time.monotonic() - began:.0f} s", flush=True)
    finally:
        await sandbox.close()
    return [_case(row, known[row["task_id"]]) for row in rows]


def frequent_tests(replies: Sequence[str], entry_point: str) -> list[tuple[UnitTest, int]]:
    """Return the distinct tests of all replies that were written most often, with how often; ties as they came."""
    counts: Counter[UnitTest] = Counter()
    for reply in replies:  # each goes on after the word `assert`
        counts.update(parse_code_tests(f"assert {reply}", entry_point, PER_REPLY).tests)
    merged: dict[tuple[str, str, str], tuple[UnitTest, int]] = {}
    for test, count in counts.items():  # one test may be spelled in several ways
        key = (test.args, test.kwargs, test.expected)
        first, before = merged.get(key, (test, 0))
        merged[key] = (first, before + count)
    return sorted(merged.values(), key=lambda pair: -pair[1])[:MOST_TESTS]


async def _execute(sandbox: Sandbox, row: Mapping[str, Any], replies: Sequence[str]) -> dict[str, Any]:
    pairs = frequent_tests(replies, row["entry_point"])
    tests = [test for test, _ in pairs]
    programs = [row["prompt"] + completion for completion in row["completions"]]
    observed = await outcomes_of(sandbox, programs, row["entry_point"], tests)
    ran = await run_trivial(sandbox, tests, per_call_s=2.0) if tests else ()
    return {
        "task_id": row["task_id"],
        "settings": _SETTINGS,
        "tests": [[test.text, test.args, test.kwargs, test.expected, count] for test, count in pairs],
        "observed": [[[one.passed, one.value] for one in each] for each in observed],
        "trivial": [[[one.passed, one.value] for one in each.observations] for each in ran],
    }


def _read(cache: Path) -> dict[str, dict[str, Any]]:
    """Return what earlier runs with the same settings found; a line that was cut off is run again."""
    known = {}
    for line in cache.read_text().splitlines() if cache.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row["settings"] == _SETTINGS:
            known[row["task_id"]] = row
    return known


def _case(row: Mapping[str, Any], kept: Mapping[str, Any]) -> Case:
    def read(rows: Sequence[Sequence[tuple[bool | None, str | None]]]) -> list[tuple[Observation, ...]]:
        return [tuple(Observation(passed=passed, value=value) for passed, value in each) for each in rows]

    observed = read(kept["observed"])
    tests = tuple(
        UnitTest(text=text, source="model", function=row["entry_point"], args=args, kwargs=kwargs, expected=expected)
        for text, args, kwargs, expected, _ in kept["tests"]
    )
    return Case(
        tests=tests,
        written=tuple(count for *_, count in kept["tests"]),
        observed=tuple(observed[i] for i in row["sample_to_completion"]),
        trivial=tuple(read(kept["trivial"])) or ((),) * len(TRIVIAL),
        right=tuple(bit == "1" for bit in row["passed"]),
    )


def report(cases: Sequence[Case]) -> tuple[list[Bar], list[dict[str, Any]]]:
    """Print a row for each way of choosing, and return the bars and the rows; intervals are over the problems."""
    print(f"pass@1 of the chosen sample, n = {len(cases)} problems, 100 samples and at most {MOST_TESTS} tests each:")
    every_P = {name: [_mean(case.right, way(case)) for case in cases] for name, way in WAYS.items()}
    rows = _rows(every_P, samples=100, tests=MOST_TESTS)
    kept = sum(sum(discriminating(case)) for case in cases)
    print(f"  tests: {sum(len(case.tests) for case in cases)}, of which {kept} are kept as discriminating")
    print(f"the same of {FEW} of the samples and {FEW} of the tests, mean of {DRAWS} draws for each problem:")
    few_P = _of_few(cases)
    rows += _rows(few_P, samples=FEW, tests=FEW)
    pairs = [
        ("dual agreement", "any one"),
        ("agreement on values", "any one"),
        ("dual agreement", "passes"),
        ("agreement on values", "dual agreement"),
    ]
    bars = [_bar(f"100 samples: {name}", every_P[name], other, every_P[other]) for name, other in pairs]
    return [*bars, *(_bar(f"{FEW} samples: {name}", few_P[name], other, few_P[other]) for name, other in pairs)], rows


def _of_few(cases: Sequence[Case]) -> dict[str, list[float]]:
    right_P: dict[str, list[float]] = {name: [] for name in WAYS}
    for number, case in enumerate(cases):
        rng = np.random.default_rng(number)
        draws = [drawn(case, FEW, FEW, rng) for _ in range(DRAWS)]
        for name, way in WAYS.items():
            right_P[name].append(float(np.mean([_mean(draw.right, way(draw)) for draw in draws])))
    return right_P


def _rows(right_P: Mapping[str, Sequence[float]], *, samples: int, tests: int) -> list[dict[str, Any]]:
    """Print and return one row for each way."""
    rows = []
    for way, values in right_P.items():
        mean, gain = _estimate(values), _gain(values, right_P["any one"])
        print(f"  {way:<52}{_shown(mean):<24}{_points(gain)} over any one")
        rows.append(
            {"way": way, "problems": len(values), "samples": samples, "most_tests": tests}
            | {"pass@1": mean.value, "low": mean.interval.low, "high": mean.interval.high}
            | {"gain": gain.value, "gain_low": gain.interval.low, "gain_high": gain.interval.high}
        )
    return rows


def _bar(name: str, values: Sequence[float], other: str, others: Sequence[float]) -> Bar:
    gain = _gain(values, others)
    seen = f"{_points(gain)}, n = {len(values)}"
    return Bar(name=f"{name} over {other}", asked="interval above 0", seen=seen, ok=gain.interval.low > 0)


def _mean(right: Sequence[bool], chosen: Sequence[int]) -> float:
    return sum(right[i] for i in chosen) / len(chosen)


def _gain(values: Sequence[float], others: Sequence[float]) -> Estimate:
    return _estimate([value - other for value, other in zip(values, others, strict=True)])


def _estimate(values: Sequence[float]) -> Estimate:
    estimate = bootstrap_mean(values, 0)
    assert estimate is not None
    return estimate


def _shown(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} [{estimate.interval.low:.1%}, {estimate.interval.high:.1%}]"


def _points(gain: Estimate) -> str:
    low, high = gain.interval.low * 100, gain.interval.high * 100
    return f"{gain.value * 100:+.1f} points [{low:+.1f}, {high:+.1f}]"


if __name__ == "__main__":
    main()
