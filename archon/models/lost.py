"""Requests that failed: what they took, and what becomes of the completions that they were to give.

A failed request is one `ModelError`, however many completions it was to give. Where each of them needs an answer of its
own, what the request took is on the first one alone, as the prompt's tokens are in a request that succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from archon.errors import ModelError
from archon.models.protocol import FREE, Completion, Model, Price
from archon.types import Usage

Answer = Completion | ModelError
"""One completion asked for: what came, or why it did not."""


def one_each(error: ModelError, n: int) -> list[ModelError]:
    """Return an error for each of a failed request's n completions."""
    return [error, *[error.with_spent()] * (n - 1)]


def completions_from(answers: Sequence[Answer], model: Model) -> tuple[Completion, ...]:
    """Return the answers with each error as a lost completion.

    Raises:
        ModelError: all of them are errors: the first, with what they took together.
    """
    errors = [answer for answer in answers if isinstance(answer, ModelError)]
    if len(errors) == len(answers):
        raise errors[0].with_spent(
            attempts=sum(error.attempts for error in errors),
            wait_s=sum(error.wait_s for error in errors),
            may_be_billed=any(error.may_be_billed for error in errors),
        )
    return tuple(answer if isinstance(answer, Completion) else _lost(answer, model) for answer in answers)


def usage_of(error: ModelError, *, calls: int, price: Price | None) -> Usage:
    """Return what a failed request took: no tokens, or tokens that are not known where it may have been billed."""
    usage = Usage(calls=calls, attempts=error.attempts, wait_s=error.wait_s)
    return without_counts(usage, price) if error.may_be_billed else usage


def without_counts(usage: Usage, price: Price | None) -> Usage:
    """Return the usage of a request whose tokens nobody reported; at a price of nothing they still cost nothing."""
    return replace(
        usage,
        prompt_tokens=None,
        completion_tokens=None,
        reasoning_tokens=None,
        cached_prompt_tokens=None,
        cost_usd=0.0 if price == FREE else None,
    )


def _lost(error: ModelError, model: Model) -> Completion:
    return Completion(text="", model=model.name, usage=usage_of(error, calls=1, price=model.price), error=str(error))
