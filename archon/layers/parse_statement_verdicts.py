"""Reads a judge's verdicts on numbered tests: by index, never by the order or by a part of a word."""

from __future__ import annotations

import re

from archon.layers.ask import Status

_EXACT = re.compile(r"^Test (\d{1,4}): \[(Passed|Failed)\]$")
_LOOSE = re.compile(
    r"^[ \t>*#-]*(?:unit\s*)?(?:test)?\s*#?(\d{1,4})\s*[\])*.:–-]+\s*\W*(passed|failed|pass|fail)\b(?P<rest>.*)$",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\b(?:pass(?:ed)?|fail(?:ed)?)\b", re.IGNORECASE)


def parse_statement_verdicts(text: str, count: int) -> tuple[tuple[bool | None, ...], Status]:
    """Return one verdict for each of `count` tests, None where the reply has none or contradicts itself.

    `ok`: `Test i: [Passed]` or `[Failed]` for every test once, in any order. `repaired`: other marks
    (`Unit Test #2: passed`, `2. Failed`), or tests missing. `failed`: no verdict could be read.
    """
    found: dict[int, set[bool]] = {}
    exact = True
    for line in filter(None, map(str.strip, text.splitlines())):
        strict = _EXACT.match(line)
        loose = strict or _LOOSE.match(line)
        exact &= strict is not None
        # `Test 1: Passed or Failed` echoes the form and says nothing.
        if loose is not None and (strict or not _BOTH.search(loose["rest"])):
            found.setdefault(int(loose[1]), set()).add(loose[2].lower().startswith("pass"))
    verdicts = tuple(_single(found.get(i, set())) for i in range(1, count + 1))
    if all(verdict is None for verdict in verdicts):
        return verdicts, "failed"
    whole = exact and None not in verdicts and len(found) == count
    return verdicts, "ok" if whole else "repaired"


def _single(values: set[bool]) -> bool | None:
    return next(iter(values)) if len(values) == 1 else None
