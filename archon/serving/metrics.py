"""What a running vLLM server says of its work, from its Prometheus endpoint."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import aiohttp

from archon.errors import ModelUnavailable, ServingError

_LINE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{[^}]*\})? (?P<value>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMetrics:
    """Counters since the server started, and gauges of this moment. None: this server does not report it."""

    prompt_tokens: int | None
    generation_tokens: int | None
    prefix_queries: int | None
    """Prompt tokens that were looked up in the prefix cache."""
    prefix_hits: int | None
    """Prompt tokens that the prefix cache had; whole blocks only (128 tokens on a CPU)."""
    running: int | None
    """Completions being generated now."""
    waiting: int | None
    """Requests in the queue now."""
    preemptions: int | None
    """Completions that were put off because the key-value cache was full; they are computed again."""
    kv_cache_usage: float | None
    """The share of the key-value cache in use now, 0 to 1."""
    draft_tokens: int | None
    """Tokens that a speculator proposed."""
    accepted_tokens: int | None
    """Of these, the ones that were kept."""

    @property
    def prefix_hit_rate(self) -> float | None:
        """Return hits over queries; None when nothing was looked up."""
        return _ratio(self.prefix_hits, self.prefix_queries)

    @property
    def acceptance_rate(self) -> float | None:
        """Return accepted over proposed draft tokens; None without speculation."""
        return _ratio(self.accepted_tokens, self.draft_tokens)


def _ratio(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


async def scrape(base_url: str, *, timeout_s: float = 10.0) -> ServerMetrics:
    """Return the metrics of the server at `base_url` (up to and including `/v1`).

    Raises:
        ModelUnavailable: nothing answers there.
        ServingError: what answers has no metrics.
    """
    url = base_url.rstrip("/").removesuffix("/v1") + "/metrics"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s)) as session,
            session.get(url) as reply,
        ):
            if reply.status != 200:
                raise ServingError(f"{url} answers with HTTP {reply.status}: not a vLLM server?")
            return parse_metrics(await reply.text())
    except (aiohttp.ClientConnectionError, TimeoutError) as error:
        raise ModelUnavailable(f"no answer from {url}: {error}") from error


def parse_metrics(text: str) -> ServerMetrics:
    """Return the metrics in Prometheus's text format; values of several engines are added up."""
    totals: dict[str, float] = {}
    for name, value in _samples(text):
        totals[name] = totals.get(name, 0.0) + value

    def count(name: str) -> int | None:
        value = totals.get(f"vllm:{name}_total", totals.get(f"vllm:{name}"))
        return None if value is None else int(value)

    return ServerMetrics(
        prompt_tokens=count("prompt_tokens"),
        generation_tokens=count("generation_tokens"),
        prefix_queries=count("prefix_cache_queries"),
        prefix_hits=count("prefix_cache_hits"),
        running=count("num_requests_running"),
        waiting=count("num_requests_waiting"),
        preemptions=count("num_preemptions"),
        kv_cache_usage=totals.get("vllm:kv_cache_usage_perc"),
        draft_tokens=count("spec_decode_num_draft_tokens"),
        accepted_tokens=count("spec_decode_num_accepted_tokens"),
    )


def _samples(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        try:
            value = float(match["value"])
        except ValueError:  # not a sample line
            continue
        if math.isfinite(value):
            yield match["name"], value
