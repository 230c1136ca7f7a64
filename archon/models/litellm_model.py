"""Hosted providers through litellm, which knows each one's dialect; retries stay with `Retrying`.

litellm is an extra, imported when first used: its import takes seconds. Its price table is read by the exact model name
only: a name that merely resembles a known one has no price.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from types import ModuleType
from typing import Any, cast

from archon.errors import (
    AnswerLost,
    AuthError,
    ConfigError,
    MissingExtra,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from archon.models.http_errors import GATEWAY_TIMEOUTS, is_quota, redacted, retry_after_s
from archon.models.openai_wire import body_of, completions_of
from archon.models.protocol import Completion, Price, Request


@dataclass(frozen=True, slots=True, eq=False)
class LiteLLMModel:
    """A model of any provider that litellm knows, by its name there: `anthropic/claude-…`, `gemini/…`."""

    model: str
    _: KW_ONLY
    name: str = ""
    """What traces and reports show; the model's name when empty."""
    api_key_env: str | None = None
    """The environment variable of the API key; None: the provider's usual one."""
    base_url: str | None = None
    """For a provider's endpoint elsewhere."""
    price: Price | None = None
    """None: what litellm's table says for exactly this name, or not known."""
    timeout_s: float = 600.0
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """More arguments for litellm with every request."""

    def __post_init__(self) -> None:
        if importlib.util.find_spec("litellm") is None:
            raise MissingExtra(f"model {self.model!r} needs litellm: pip install 'archon-ttc[providers]'")
        if not self.model:
            raise ConfigError("a litellm model needs a name, such as 'openai/gpt-4o-mini'")
        object.__setattr__(self, "name", self.name or self.model)
        if self.price is None:
            object.__setattr__(self, "price", table_price(self.model))

    @property
    def identity(self) -> str:
        """Return litellm's name of the model, and its endpoint and arguments when they are set."""
        extra = "".join(f"?{key}={self.extra_body[key]!r}" for key in sorted(self.extra_body))
        return f"litellm/{self.model}@{self.base_url or ''}{extra}"

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return exactly `request.n` completions.

        A seed is not sent to a provider that has none, and the completions then say that there was none.

        Raises:
            ModelError: of the kind that litellm's exception stands for.
        """
        litellm = _litellm()
        known = await asyncio.to_thread(_supported, litellm, self.model)
        if request.n > 1 and "n" not in known:
            raise ModelRefused(f"{self.model!r} has no parameter 'n'")
        if "seed" not in known:
            request = replace(request, seed=None)
        body = body_of(request, model=self.model, limit_key="max_tokens", efforts={})
        body = {**self.extra_body, **body}
        start_s = time.perf_counter()
        key = self._key()
        try:
            reply = await litellm.acompletion(
                **body, api_key=key, base_url=self.base_url, timeout=self.timeout_s, num_retries=0, max_retries=0
            )
        except Exception as error:  # litellm raises its own classes beside those of several clients
            mapped = mapped_error(error, self.model, key)
            if mapped is None:
                raise
            raise mapped from None
        return completions_of(
            reply.model_dump(),
            request,
            name=self.name,
            price=self.price,
            seconds=time.perf_counter() - start_s,
            attempts=1,
            opened=False,
        )

    async def close(self) -> None:
        """Close the clients that litellm keeps for this process."""
        await _litellm().close_litellm_async_clients()

    def _key(self) -> str | None:
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise AuthError(
                f"the environment variable {self.api_key_env!r}, for the API key of {self.name!r}, is not set"
            )
        return key


def table_price(model: str) -> Price | None:
    """Return litellm's price of exactly this model, or None.

    `provider/name` is also looked up as `name`, if the table says that this entry is of that provider.
    """
    table: Mapping[str, Mapping[str, Any]] = _litellm().model_cost
    provider, _, bare = model.partition("/")
    entry = table.get(model)
    if entry is None and bare in table and table[bare].get("litellm_provider") == provider:
        entry = table[bare]
    if entry is None:
        return None
    prompt, completion = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    cached = entry.get("cache_read_input_token_cost")
    return Price(
        prompt_usd=prompt * 1e6,
        completion_usd=completion * 1e6,
        cached_prompt_usd=None if cached is None else cached * 1e6,
    )


def mapped_error(error: Exception, model: str, secret: str | None) -> ModelError | None:
    """Return the error of our tree for an exception of litellm's, by its HTTP status; None for one that is not its."""
    litellm = _litellm()
    status = getattr(error, "status_code", None)
    said = redacted(" ".join(f"{model!r}: {error}".split()), secret)[:500]
    if is_quota(status, said):
        return QuotaExhausted(said)
    if status in (401, 403):
        return AuthError(f"{model!r}: the API key is missing, wrong or not allowed to do this")
    if status == 429:
        response = getattr(error, "response", None)
        return RateLimited(said, retry_after_s(getattr(response, "headers", None) or {}))
    if isinstance(error, (litellm.Timeout, TimeoutError)) or status in GATEWAY_TIMEOUTS:
        return AnswerLost(said)
    # It does not say whether a connection broke before or after the request went out.
    if isinstance(error, (litellm.APIConnectionError, OSError)):
        return ModelUnavailable(said)
    if not isinstance(status, int):
        return None
    return ModelUnavailable(said) if status >= 500 or status == 408 else ModelRefused(said)


def _litellm() -> ModuleType:
    # Its table ships inside the package; without this it is fetched over the network on import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    return cast("ModuleType", litellm)


def _supported(litellm: ModuleType, model: str) -> frozenset[str]:
    try:
        return frozenset(litellm.get_supported_openai_params(model=model) or ())
    except litellm.BadRequestError as error:
        raise ModelRefused(f"litellm does not know the model {model!r}: {' '.join(str(error).split())[:300]}") from None
