"""The OpenAI chat format as pure functions: a `Request` to a JSON body, a reply to completions.

Endpoints report the tokens of all n choices as one total. With n = 1 that is the completion's own count; with more, the
total is shared out in proportion to the length of the texts and always adds up to it exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from archon.errors import AnswerLost
from archon.models.protocol import Completion, Price, Request
from archon.models.thinking import split_thinking
from archon.types import Content, Message, Usage

MISSING_CHOICE = "the endpoint gave fewer choices than asked for"


def body_of(
    request: Request, *, model: str, limit_key: str, efforts: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the JSON body; what is None in the request is left out.

    Args:
        request: What to ask.
        model: The model id that the endpoint knows.
        limit_key: `max_tokens`, or `max_completion_tokens` where an endpoint demands it.
        efforts: What to send for an effort in place of `reasoning_effort`.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        limit_key: request.max_tokens,
    }
    if request.n != 1:
        body["n"] = request.n
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop"] = request.stop
    if request.seed is not None:
        body["seed"] = request.seed
    if request.effort is not None:
        body.update(efforts.get(request.effort, {"reasoning_effort": request.effort}))
    return body


def _message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": content_of(message.content)}


def content_of(content: Content) -> str | list[dict[str, Any]]:
    """Return a message's content as the wire has it: a string, or text and image parts in their order."""
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = []
    for part in content:
        if isinstance(part, str):
            parts.append({"type": "text", "text": part})
        else:
            image = {"url": part.url} if part.detail is None else {"url": part.url, "detail": part.detail}
            parts.append({"type": "image_url", "image_url": image})
    return parts


def completions_of(
    reply: object, request: Request, *, name: str, price: Price | None, seconds: float, attempts: int, opened: bool
) -> tuple[Completion, ...]:
    """Return exactly `request.n` completions; a choice that is not there becomes one with an error.

    Args:
        reply: The decoded JSON answer.
        request: What was asked.
        name: The model's name for traces.
        price: Its price, or None.
        seconds: How long the request took.
        attempts: The requests that were sent for it.
        opened: The chat template opens the thinking.

    Raises:
        AnswerLost: the answer has no choices, or is not of the format at all.
    """
    given = reply if isinstance(reply, dict) else {}
    choices = _choices(given.get("choices"))[: request.n]
    texts = [_texts(choice["message"], opened) for choice in choices]
    usages = usages_of(given.get("usage"), texts, price=price, seconds=seconds, attempts=attempts)
    found = [
        Completion(
            text=text,
            model=name,
            finish_reason=choice.get("finish_reason"),
            reasoning=reasoning,
            usage=usage,
            seed=None if request.seed is None else request.seed + index,
        )
        for index, (choice, (text, reasoning), usage) in enumerate(zip(choices, texts, usages, strict=True))
    ]
    lost = Completion(text="", model=name, usage=Usage(calls=1), error=f"{MISSING_CHOICE}: {len(found)} of {request.n}")
    return (*found, *[lost] * (request.n - len(found)))


def _choices(choices: object) -> list[dict[str, Any]]:
    if not isinstance(choices, list) or not choices:
        raise AnswerLost("the endpoint answered HTTP 200 without any choices")
    for choice in choices:
        if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
            raise AnswerLost("the endpoint answered HTTP 200 with a choice that has no message")
    if len(choices) > 1:
        choices.sort(key=lambda choice: index if isinstance(index := choice.get("index"), int) else 0)
    return choices


def _texts(message: dict[str, Any], opened: bool) -> tuple[str, str | None]:
    """Return a message's answer and its thinking, from whichever fields the endpoint uses."""
    content = message.get("content")
    given = message.get("reasoning_content") or message.get("reasoning")
    thoughts = [given] if isinstance(given, str) else []
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        thoughts += [str(part.get("thinking")) for part in parts if part.get("type") == "thinking"]
        content = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    text, inline = split_thinking(content if isinstance(content, str) else "", opened=opened and not thoughts)
    if inline is not None:
        thoughts.append(inline)
    return text, "\n\n".join(thoughts) or None


def usages_of(
    usage: object, texts: Sequence[tuple[str, str | None]], *, price: Price | None, seconds: float, attempts: int
) -> list[Usage]:
    """Return each completion's share of what the endpoint reported; what it does not report is None.

    The prompt's tokens are on the first completion alone. Where thinking was seen but its tokens are not reported,
    they are taken as its share of the characters.
    """
    given = usage if isinstance(usage, dict) else {}
    prompt, completion = _count(given, "prompt_tokens"), _count(given, "completion_tokens")
    cached = _count(given.get("prompt_tokens_details"), "cached_tokens")
    reasoning = _count(given.get("completion_tokens_details"), "reasoning_tokens")
    if prompt is not None and completion is not None and reasoning:
        # Some providers report thinking beside the completion instead of inside it; their total tells.
        completion += reasoning if given.get("total_tokens") == prompt + completion + reasoning else 0
    thought = [len(thinking or "") for _, thinking in texts]
    written = [len(text) for text, _ in texts]
    if reasoning is None and completion is not None and any(thought):
        reasoning = round(completion * sum(thought) / (sum(thought) + sum(written)))
    hidden = _shares(reasoning, thought)
    visible = _shares(None if completion is None else completion - min(reasoning or 0, completion), written)
    shares = []
    for index in range(len(texts)):
        first = index == 0
        mine, open_ = hidden[index], visible[index]
        share = Usage(
            calls=1,
            prompt_tokens=prompt if first else 0,
            completion_tokens=None if open_ is None else open_ + (mine or 0),
            reasoning_tokens=mine,
            cached_prompt_tokens=cached if first else 0,
            cost_usd=None,
            critical_s=seconds,
            attempts=attempts if first else 0,
        )
        shares.append(share if price is None else with_cost(share, price))
    return shares


def with_cost(usage: Usage, price: Price) -> Usage:
    """Return the usage with what it costs at a price."""
    return Usage(
        calls=usage.calls,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cached_prompt_tokens=usage.cached_prompt_tokens,
        cost_usd=price.cost_usd(usage),
        critical_s=usage.critical_s,
        attempts=usage.attempts,
    )


def _count(mapping: object, key: str) -> int | None:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, int) and value >= 0 else None


def _shares(total: int | None, weights: Sequence[int]) -> list[int | None]:
    """Split a total in proportion to the weights (equally when all are 0), by largest remainders."""
    if total is None:
        return [None] * len(weights)
    if len(weights) == 1:
        return [total]
    if not any(weights):
        weights = [1] * len(weights)
    whole = sum(weights)
    shares = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda index: -(total * weights[index] % whole))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return list(shares)
