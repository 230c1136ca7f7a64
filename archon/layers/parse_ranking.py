"""Reads a ranker's reply into an order of all candidates, whatever the reply looks like."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from archon.layers.ask import Status

_ID = r"\[?\s*\d{1,4}(?:\s*[-–]\s*\d{1,4})?\s*\]?"
_ITEM = rf"(?:(?:candidate|answer|response)\s*)?{_ID}"
_CHAIN = re.compile(rf"{_ITEM}(?:\s*(?:>+|=|,|;|→|->)\s*{_ITEM})+", re.IGNORECASE)
_STRICT = re.compile(r"\[\d+\](?: > \[\d+\])*")
_RANGE = re.compile(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?")
_LABEL = re.compile(r"\b(?:answer|ranking|rank|order)\b[^:\n]{0,30}:", re.IGNORECASE)
_LINE = re.compile(r"^[ \t>*-]*(?:\d+[.)][ \t]*)?(?:(?:candidate|answer|response)[ \t]*)?\[(\d{1,4})\]", re.I | re.M)
_BARE_LINE = re.compile(
    r"^[ \t>*-]*(?:candidate|answer|response)?[ \t]*(\d{1,4})[ \t.]*$", re.IGNORECASE | re.MULTILINE
)
_BEST = re.compile(
    r"(?:\bbest\b|\bwinner\b)[^\[\n.]{0,30}\[(\d{1,4})\]|\[(\d{1,4})\]\s+is\s+(?:clearly\s+)?(?:the\s+)?best\b",
    re.IGNORECASE,
)


def parse_ranking(text: str, count: int) -> tuple[tuple[int, ...], Status]:
    """Return a permutation of 0 … count-1, best first, and how the reply read.

    `ok`: exactly `[a] > [b] > …` with every id once. `repaired`: the intent is plain, but ids were repeated (the first
    mention counts), missing (appended in the incoming order), out of range (left out), given as a range, a list, JSON,
    or within other text. `failed`: the incoming order.
    """
    stripped = text.strip()
    if _STRICT.fullmatch(stripped):
        ids = [int(number) for number in re.findall(r"\d+", stripped)]
        if sorted(ids) == list(range(1, count + 1)):
            return tuple(i - 1 for i in ids), "ok"
    for read in (_json, _chain, _lines, _single):
        order = _valid(read(stripped), count)
        if order:
            rest = tuple(i for i in range(count) if i not in order)
            return (*order, *rest), "repaired"
    return tuple(range(count)), "failed"


def _valid(ids: Iterable[int], count: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(i - 1 for i in ids if 1 <= i <= count))


def _json(text: str) -> list[int]:
    """Read a JSON list of ids, or an object that holds one."""
    match = re.search(r"\{[^{}]*\}|\[[^\[\]]*,[^\[\]]*\]", text)
    if match is None:
        return []
    try:
        value = json.loads(match[0])
    except ValueError:
        return []
    if isinstance(value, dict):
        value = next((item for item in value.values() if isinstance(item, list)), [])
    found = [re.fullmatch(r"\[?(\d{1,4})\]?", str(item).strip()) for item in value]
    return [int(one[1]) for one in found if one is not None] if all(found) else []


def _chain(text: str) -> list[int]:
    """Read `2 > 1, 3`: what stands after the last `Answer:` first, else the longest chain, the last of equals."""
    labels = list(_LABEL.finditer(text))
    regions = [text[labels[-1].end() :]] if labels else []
    for region in (*regions, text):
        chains = [_expanded(match[0]) for match in _CHAIN.finditer(region)]
        if chains:
            return max(reversed(chains), key=lambda ids: len(set(ids)))
        if region is not text and (alone := re.fullmatch(rf"\s*{_ITEM}[\s.]*", region, re.IGNORECASE)):
            return _expanded(alone[0])
    return []


def _expanded(chain: str) -> list[int]:
    """Return the ids of a chain, `3-5` as 3, 4, 5 and `5-3` as 5, 4, 3."""
    ids: list[int] = []
    for match in _RANGE.finditer(chain):
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        ids += range(first, last + 1) if first <= last else range(first, last - 1, -1)
    return ids


def _lines(text: str) -> list[int]:
    """Read a list with one id on each line."""
    bracketed = [int(match[1]) for match in _LINE.finditer(text)]
    bare = [int(match[1]) for match in _BARE_LINE.finditer(text)]
    return bracketed if len(bracketed) > 1 else bare if len(bare) > 1 else []


def _single(text: str) -> list[int]:
    """Read one id: alone, as a range, or said to be the best."""
    if re.fullmatch(rf"{_ITEM}[\s.]*", text, re.IGNORECASE):
        return _expanded(text)
    best = {int(match[1] or match[2]) for match in _BEST.finditer(text)}
    return list(best) if len(best) == 1 else []
