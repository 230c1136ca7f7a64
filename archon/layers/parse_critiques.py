"""Reads a critic's reply: one section for each candidate, headed `[i]`."""

from __future__ import annotations

import re

from archon.layers.ask import Status

_HEAD = re.compile(
    r"^[ \t>*#-]*(?:(?P<word>critique|candidate|answer)[ \t]*)?"
    r"(?P<open>\[)?#?(?P<id>\d{1,4})(?P<close>\])?[ \t]*[*:.)-]*",
    re.IGNORECASE | re.MULTILINE,
)


def parse_critiques(text: str, count: int) -> tuple[tuple[str | None, ...], Status]:
    """Return one critique for each of `count` candidates, None where the reply has none.

    `ok`: every id once, headed `[i]`. `repaired`: another heading (`Candidate 2:`), some ids missing, or a single
    candidate's critique without a heading. A second section for the same id is added to the first.
    """
    sections, strict = _sections(text, count)
    if not sections:
        if count == 1 and text.strip():
            return (text.strip(),), "repaired"
        return (None,) * count, "failed"
    found = tuple("\n".join(sections[i]) if i in sections else None for i in range(1, count + 1))
    whole = strict and all(len(sections.get(i, ())) == 1 for i in range(1, count + 1))
    return found, "ok" if whole else "repaired"


def _sections(text: str, count: int) -> tuple[dict[int, list[str]], bool]:
    """Return the texts by id, and whether every heading had the form that was asked for."""
    heads = [match for match in _HEAD.finditer(text) if _is_head(match)]
    ends = [match.start() for match in heads[1:]] + [len(text)] * bool(heads)
    sections: dict[int, list[str]] = {}
    strict = True
    for match, end in zip(heads, ends, strict=True):
        body = text[match.end() : end].strip()
        index = int(match["id"])
        strict &= match["open"] is not None and match["word"] is None and 1 <= index <= count
        if 1 <= index <= count and body:
            sections.setdefault(index, []).append(body)
    return sections, strict


def _is_head(match: re.Match[str]) -> bool:
    """A bare number at the start of a line is a list item, not a heading: `[2]` or `Candidate 2` is one."""
    bracketed = match["open"] is not None and match["close"] is not None
    return bracketed or match["word"] is not None
