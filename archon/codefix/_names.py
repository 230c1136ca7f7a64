"""The file names in a patch's headers: git's quoting, the `a/` and `b/` in front, and where they disagree."""

from __future__ import annotations

import re
from collections.abc import Collection

from archon.codefix._refuse import rejected

_PREFIXED = re.compile(r"[abciow]/")
"""`a/` and `b/`, and what git writes instead under `diff.mnemonicPrefix`."""
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"')

Pair = tuple[str | None, str | None]
"""The old and the new name; None for `/dev/null`."""


def name(raw: bytes) -> str | None:
    """Return a name as a header line gives it, without quotes or a time after a tab; None for `/dev/null`."""
    quoted = _QUOTED.match(raw)
    plain = raw.split(b"\t", 1)[0].rstrip(b"\r")
    try:
        text = (plain if quoted is None else _ESCAPE.sub(_unescaped, quoted.group(1))).decode()
    except UnicodeDecodeError:
        raise rejected(f"the file name {raw!r} is not UTF-8") from None
    return None if text == "/dev/null" else text


def pair_of_git_line(rest: bytes) -> Pair | None:
    """Return the names after `diff --git`, still with `a/` and `b/`; None where spaces leave them open."""
    rest = rest.rstrip(b"\r")
    quoted = _QUOTED.match(rest)
    if quoted is not None:
        return name(quoted.group()), name(rest[quoted.end() :].lstrip(b" "))
    if rest.endswith(b'"') and b' "' in rest:
        old, new = rest.split(b' "', 1)
        return name(old), name(b'"' + new)
    middle = len(rest) // 2
    if rest[middle : middle + 1] == b" " and rest[:middle].split(b"/", 1)[-1] == rest[middle + 1 :].split(b"/", 1)[-1]:
        return name(rest[:middle]), name(rest[middle + 1 :])
    if rest.count(b" ") == 1:
        old, new = rest.split(b" ")
        return name(old), name(new)
    return None


def is_without_prefix(pair: Pair, known: Collection[str]) -> bool:
    """Return whether names were written without `a/` and `b/`; a folder of the tree may be called so."""
    if not all(_PREFIXED.match(each) for each in pair if each is not None):
        return True
    old = pair[0]
    return old is not None and old in known and old[2:] not in known


def without_prefix(pair: Pair) -> Pair:
    """Return names without the `a/` and `b/` in front."""
    old, new = (None if each is None else each[2:] for each in pair)
    return old, new


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match.group(1)
    if len(code) == 3:
        return bytes([int(code, 8) & 0xFF])
    return _ESCAPED.get(code, code)
