"""Reads the replies that hold a single decision: a comparison's choice, and a verifier's verdict."""

from __future__ import annotations

import re

from archon.layers.ask import Status

_CHOICE = re.compile(r"\[(1|2|tie)\]", re.IGNORECASE)
_LOOSE_CHOICE = re.compile(
    r"\W*(?:(?:the\s+)?(?:answer|winner|best|better)\s*(?:is|:)\s*)?(?:candidate|answer)?\s*\[?(1|2|tie)\]?(?!\d)\b.{0,20}",
    re.IGNORECASE,
)
_VERDICT = re.compile(r"\[(correct|incorrect)\]", re.IGNORECASE)
_LOOSE_VERDICT = re.compile(r"\W*(?:verdict\s*:\s*\W*)?(correct|incorrect)\b\W*", re.IGNORECASE)


def parse_choice(text: str) -> tuple[int | None, Status]:
    """Return 1 or 2 for the better one, 0 for a tie, None when the reply cannot be read.

    `ok`: the reply is `[1]`, `[2]` or `[tie]` and nothing else. `repaired`: only one choice stands in brackets, or
    the reply is no more than a bare choice. Two different choices are no choice.
    """
    word, status = _decision(text, _CHOICE, _LOOSE_CHOICE)
    return (None if word is None else {"1": 1, "2": 2, "tie": 0}[word]), status


def parse_verdict(text: str) -> tuple[bool | None, Status]:
    """Return whether the verdict is `[Correct]`, or None when the reply cannot be read."""
    word, status = _decision(text, _VERDICT, _LOOSE_VERDICT)
    return (None if word is None else word == "correct"), status


def _decision(text: str, exact: re.Pattern[str], loose: re.Pattern[str]) -> tuple[str | None, Status]:
    stripped = text.strip()
    if match := exact.fullmatch(stripped):
        return match[1].lower(), "ok"
    found = {match[1].lower() for match in exact.finditer(stripped)}
    if len(found) == 1:
        return found.pop(), "repaired"
    if not found and (match := loose.fullmatch(stripped)):
        return match[1].lower(), "repaired"
    return None, "failed"
