"""Every case of the corpus on every engine of this machine: its verdict, and the machine around the sandbox.

`python -m benchmarks.adversary [--quick] [--json PATH] [--engine NAME] [--jobs N] [--slack S]`. A verdict is right
when it is the stated one; a case that an engine cannot contain is named with the reason. Then a thousand jobs, every
fifth of them hostile, and a look at what is left. `--quick` takes every eighth case and sixteen jobs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from archon.errors import NoSandbox
from archon.sandbox import Sandbox, open_sandbox
from archon.sandbox.auto import ENGINES
from benchmarks.adversary.attack import Finding, attack, uncontained
from benchmarks.adversary.cases import CASES
from benchmarks.adversary.endurance import Endured, endure, flood
from benchmarks.adversary.scenarios import SCENARIOS
from benchmarks.adversary.surroundings import MOST_GROWN_MB
from benchmarks.adversary.written import TEXTS, read_and_run
from benchmarks.bars import Bar, arguments, publish

Row = dict[str, Any]


def main() -> None:
    """Run from the command line."""
    parser = arguments(__doc__)
    parser.add_argument("--engine", choices=ENGINES, action="append", help="this engine only")
    parser.add_argument("--jobs", type=int, help="how many jobs come after the cases; 1000, with --quick 16")
    parser.add_argument("--slack", type=float, default=5.0, help="seconds beyond its deadline that a case may take")
    given = parser.parse_args()
    jobs = given.jobs or (16 if given.quick else 1000)
    bars: list[Bar] = []
    rows: list[Row] = []
    for engine in given.engine or ENGINES:
        more_bars, more_rows = asyncio.run(measure(engine, jobs, given.slack, quick=given.quick))
        bars += more_bars
        rows += more_rows
    publish(bars, rows, given.json)


async def measure(engine: str, jobs: int, slack_s: float, *, quick: bool) -> tuple[list[Bar], list[Row]]:
    """Return one engine's bars and rows; none where it is not to be had here."""
    try:
        sandbox = await open_sandbox(engine)
    except NoSandbox as error:
        print(f"left out: {error}")
        return [], []
    print(f"{engine}: {'; '.join(sandbox.enforces)}")
    rows: list[Row] = []
    findings: list[Finding] = []
    try:
        for case in CASES[::8] if quick else CASES:
            reason = uncontained(sandbox, case)
            if reason is not None:
                rows.append(_show(case.number, case.title, engine, "not contained", (reason,), ok=True))
                continue
            finding = await attack(sandbox, case, slack_s=slack_s)
            findings.append(finding)
            said = ", ".join(f"{level} {word}" for level, word in finding.verdicts)
            notes = (*finding.problems, *(f"{level}: {note}" for level, note in case.notes.items()))
            row = _show(case.number, case.title, engine, said, notes, ok=not finding.problems)
            rows.append(row | {"wall_s": finding.wall_s, "grown_mb": finding.grown_mb})
        rows += await _others(sandbox, quick=quick)
        grown_mb = max(await flood(sandbox, 4 if quick else 24), *(finding.grown_mb for finding in findings))
        endured = await endure(sandbox, jobs)
    finally:
        await sandbox.close()
    rows.append({"number": "endurance", "engine": engine, **{name: getattr(endured, name) for name in _ENDURED}})
    return _bars(engine, rows, findings, grown_mb, endured), rows


_ENDURED = ("jobs", "wrong", "false_passes", "left", "wall_s")


async def _others(sandbox: Sandbox, *, quick: bool) -> list[Row]:
    """Run what is not one program: tests that models wrote, and scenarios of several jobs."""
    rows = []
    for text in TEXTS:
        kept, dropped, word = await read_and_run(sandbox, text)
        ok = (kept, dropped, word) == (text.kept, text.dropped, text.verdict)
        said = f"{word}, {kept} kept, {dropped} dropped"
        rows.append(_show(text.number, text.title, sandbox.engine, said, (), ok=ok))
    for scenario in () if quick else SCENARIOS:
        reason = scenario.uncontained.get(sandbox.engine)
        if reason is not None:
            rows.append(_show(scenario.number, scenario.title, sandbox.engine, "not contained", (reason,), ok=True))
            continue
        wrong = await scenario.play(sandbox.engine)
        said = "wrong" if wrong else "as stated"
        rows.append(
            _show(scenario.number, scenario.title, sandbox.engine, said, (wrong,) if wrong else (), ok=not wrong)
        )
    return rows


def _show(number: str, title: str, engine: str, said: str, notes: tuple[str, ...], *, ok: bool) -> Row:
    print(f"{'     ' if ok else 'MISS '}{number:>4} {engine:<10} {said:<28} {title}", flush=True)
    for note in notes:
        print(f"{'':<22}{note}", flush=True)
    return {"number": number, "title": title, "engine": engine, "verdicts": said, "notes": notes, "ok": ok}


def _bars(engine: str, rows: list[Row], findings: list[Finding], grown_mb: float, endured: Endured) -> list[Bar]:
    tried = [row for row in rows if row.get("verdicts") not in (None, "not contained")]
    right = sum(row["ok"] for row in tried)
    passes = sum(len(finding.false_passes) for finding in findings) + endured.false_passes
    known = sum(len(case.known_limits) for case in CASES if any(case.number == one.number for one in findings))
    return [
        Bar(
            name=f"{engine}: cases as stated, the machine left as it was",
            asked="all",
            seen=f"{right} of {len(tried)}",
            ok=right == len(tried),
        ),
        Bar(
            name=f"{engine}: false passes (level C's {known} documented limits apart)",
            asked="0",
            seen=str(passes),
            ok=passes == 0,
        ),
        Bar(
            name=f"{engine}: containers, processes, groups, mounts left after {endured.jobs} jobs",
            asked="0",
            seen=f"{len(endured.left)}" + (f": {endured.left[0]}" if endured.left else ""),
            ok=not endured.left,
        ),
        Bar(
            name=f"{engine}: verdicts of these jobs that were not the stated ones",
            asked="0",
            seen=str(endured.wrong),
            ok=endured.wrong == 0,
        ),
        Bar(
            name=f"{engine}: this process's growth under floods of output",
            asked=f"< {MOST_GROWN_MB} MB",
            seen=f"{grown_mb:.1f} MB",
            ok=grown_mb < MOST_GROWN_MB,
        ),
    ]


if __name__ == "__main__":
    main()
