"""Map an endpoint's HTTP answers to the error tree, without ever quoting a secret.

The status decides, except that a terminal quota answer hides behind 429 or 403 at some providers and is told by its
code.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from archon.errors import AnswerLost, AuthError, ModelError, ModelRefused, ModelUnavailable, QuotaExhausted, RateLimited

_QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance")
_TRANSIENT_4XX = (408, 409, 425)
"""Request time-out, conflict, too early: a repetition can succeed."""
GATEWAY_TIMEOUTS = (504, 524)
"""A gateway stopped waiting for the model behind it, which may go on and be billed; 524 is Cloudflare's."""


def error_of(status: int, body: bytes, headers: Mapping[str, str], *, url: str, secret: str | None) -> ModelError:
    """Return the error that an HTTP answer other than a good one stands for.

    Args:
        status: The HTTP status; for an error inside a 200 answer, the code that it names.
        body: The answer's body.
        headers: Its headers, read case-insensitively.
        url: What was asked, for the message.
        secret: The API key, taken out of whatever is quoted.
    """
    detail = detail_of(body, secret)
    said = f"{url} answered HTTP {status}: {detail}"
    if is_quota(status, body.decode(errors="replace")):
        return QuotaExhausted(said)
    if status in (401, 403):
        # A provider's answer to a wrong key quotes parts of it, so nothing of this body is repeated.
        return AuthError(f"{url} answered HTTP {status}: the API key is missing, wrong or not allowed to do this")
    if status == 429:
        return RateLimited(said, retry_after_s(headers))
    if status in GATEWAY_TIMEOUTS:
        return AnswerLost(said)
    if status >= 500 or status in _TRANSIENT_4XX:
        return ModelUnavailable(said)
    return ModelRefused(said)


def is_quota(status: int | None, said: str) -> bool:
    """Return whether an answer means that no further call can succeed until somebody pays."""
    return status == 402 or (status in (400, 403, 429) and any(code in said for code in _QUOTA_CODES))


def detail_of(body: bytes, secret: str | None = None) -> str:
    """Return what an error body says, in one line of at most 500 characters, with the parameter that it names."""
    try:
        parsed: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    if isinstance(error, dict):
        text = str(error.get("message") or error.get("detail") or error)
        if error.get("param"):
            text += f" (parameter {error['param']!r})"
    else:
        text = str(error) if error else body.decode(errors="replace")
    line = " ".join(text.split()) or "(empty body)"
    return redacted(line, secret)[:500]


def redacted(text: str, secret: str | None) -> str:
    """Return the text with every occurrence of the secret replaced."""
    return text.replace(secret, "[key]") if secret else text


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `retry-after-ms` or `Retry-After` (seconds or an HTTP date) asks for, or None."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit_s
        except ValueError:
            seconds = _until(value)
        if math.isfinite(seconds):
            return max(0.0, seconds)
    return None


def _until(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return math.nan
