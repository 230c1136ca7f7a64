from __future__ import annotations

import pytest
from aiohttp import web

from archon.errors import ModelUnavailable, ServingError
from archon.serving.metrics import parse_metrics, scrape

TEXT = """# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 100.0
vllm:prompt_tokens_total{engine="1",model_name="m"} 20.0
vllm:prompt_tokens_created{engine="0",model_name="m"} 1.7e+09
vllm:generation_tokens_total{engine="0",model_name="m"} 12544.0
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 540.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 256.0
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:odd NaN
nonsense here and there
"""


def test_counters_are_summed_over_engines_and_rates_are_shares():
    metrics = parse_metrics(TEXT)
    assert metrics.prompt_tokens == 120
    assert metrics.generation_tokens == 12544
    assert (metrics.running, metrics.waiting, metrics.preemptions) == (3, 2, 1)
    assert metrics.kv_cache_usage == 0.25
    assert metrics.prefix_hit_rate == pytest.approx(256 / 540)


def test_what_is_not_reported_is_none_and_never_zero():
    metrics = parse_metrics(TEXT)
    assert metrics.draft_tokens is None
    assert metrics.acceptance_rate is None
    nothing = parse_metrics("vllm:prefix_cache_queries_total 0.0\nvllm:prefix_cache_hits_total 0.0\n")
    assert nothing.prefix_queries == 0
    assert nothing.prefix_hit_rate is None


async def test_scraping_over_http():
    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=TEXT)

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        assert (await scrape(f"http://127.0.0.1:{port}/v1")).waiting == 2
        assert (await scrape(f"http://127.0.0.1:{port}/v1/")).waiting == 2
        with pytest.raises(ServingError, match="HTTP 404"):
            await scrape(f"http://127.0.0.1:{port}/other/v1")
    finally:
        await runner.cleanup()
    with pytest.raises(ModelUnavailable, match="no answer from"):
        await scrape(f"http://127.0.0.1:{port}/v1")
