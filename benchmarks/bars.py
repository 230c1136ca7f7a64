"""What every benchmark prints and writes: bars (asked, seen), rows of figures, and the machine.

A benchmark is `python -m benchmarks.NAME [--quick] [--json PATH]`; it exits 0 when it ran, whatever the figures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from archon.run.machine import describe_machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One claim: what was asked, what was seen."""

    name: str
    asked: str
    seen: str
    ok: bool


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the two arguments that every benchmark has."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a reduced run of under a minute that shows it works")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures to this file")
    return parser


def publish(bars: Sequence[Bar], rows: Sequence[Mapping[str, Any]], path: Path | None) -> None:
    """Print the bars and the machine, and write everything to a file when one is given."""
    for bar in bars:
        print(f"{'ok  ' if bar.ok else 'MISS'} {bar.name}: {bar.seen} (asked: {bar.asked})")
    print(f"     {describe_machine()}")
    if path is not None:
        result = {"bars": [asdict(bar) for bar in bars], "rows": list(rows), "machine": describe_machine()}
        path.write_text(json.dumps(result, indent=2, default=str) + "\n")
