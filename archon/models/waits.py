"""Count waiting on the first completion of a request, where its prompt is counted too."""

from __future__ import annotations

from dataclasses import replace

from archon.models.protocol import Completion


def with_wait(completions: tuple[Completion, ...], *, wait_s: float, attempts: int = 0) -> tuple[Completion, ...]:
    """Return the completions with more seconds of waiting and more attempts on the first one."""
    first, *rest = completions
    usage = replace(first.usage, wait_s=first.usage.wait_s + wait_s, attempts=first.usage.attempts + attempts)
    return (replace(first, usage=usage), *rest)
