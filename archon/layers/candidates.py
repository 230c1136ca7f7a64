"""Completions as candidates, for the layers that write answers."""

from __future__ import annotations

from archon.layers.ask import Status
from archon.models.protocol import Completion
from archon.types import Candidate


def candidate_from(
    completion: Completion, name: str, *, temperature: float | None = None, parents: tuple[str, ...] = ()
) -> Candidate:
    """Return a completion as a candidate; one without text is lost. Hidden thinking stays outside."""
    error = completion.error
    if error is None and not completion.text.strip():
        error = f"the reply has no text (finish_reason={completion.finish_reason!r})"
    return Candidate(
        id=name,
        text=completion.text,
        model=completion.model,
        parents=parents,
        finish_reason=completion.finish_reason,
        temperature=temperature,
        completion_tokens=completion.usage.completion_tokens if completion.error is None else None,
        error=error,
    )


def read_status(candidate: Candidate) -> Status:
    """Return how a written candidate came back: ok, truncated, or call_failed."""
    if candidate.finish_reason == "length":
        return "truncated"
    return "ok" if candidate.error is None else "call_failed"
