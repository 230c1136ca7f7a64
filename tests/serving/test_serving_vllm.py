from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path

import aiohttp
import pytest

from archon.serving import ServeOptions, ensure_server, pull, scrape, serve
from archon.serving._processes import members, shared_memory, start_time

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs the serve-cpu or serve-gpu extra"),
]

OPTIONS = ServeOptions(max_model_len=2048, max_num_seqs=16, kv_cache_gb=1)


@pytest.fixture
def models(archon_home: Path) -> Path:
    """Use the user's store of models, so that no test downloads what is there; servers stay apart."""
    own = Path.home() / ".cache/archon/models"
    own.mkdir(parents=True, exist_ok=True)
    archon_home.mkdir()
    (archon_home / "models").symlink_to(own)
    return own


async def test_smollm2_is_served_shared_measured_and_leaves_nothing(models: Path):
    await asyncio.to_thread(pull, "smollm2")
    async with serve("smollm2", options=OPTIONS) as server:
        again = await ensure_server("smollm2", options=OPTIONS)
        assert again.reused
        assert again.base_url == server.base_url
        await again.stop()
        async with aiohttp.ClientSession() as session:
            # Long prompts with seeds, more at once than fit in one batch: this ended the engine when it chunked them.
            texts = await asyncio.gather(*(_chat(session, server.base_url, index) for index in range(24)))
        assert all(texts)
        metrics = await scrape(server.base_url)
        assert metrics.generation_tokens is not None
        assert metrics.generation_tokens > 24
        assert metrics.prefix_hits is not None
        assert metrics.prefix_hits > 0  # the prompts begin alike for more than a block
        family = members(server.pid, server.record.server_id)
        assert len(family) >= 3  # the API server, the engine, its worker
        shared = shared_memory(family)
        assert shared
    assert start_time(server.pid) is None
    assert [pid for pid in family if start_time(pid) is not None] == []
    assert not any(map(os.path.exists, shared))


async def _chat(session: aiohttp.ClientSession, base_url: str, index: int) -> str:
    story = "The quick brown fox jumps over the lazy dog near the river bank. " * 40
    body = {
        "model": "smollm2",
        "messages": [{"role": "user", "content": f"{story} What is {index} plus two?"}],
        "max_tokens": 24,
        "temperature": 0.7,
        "seed": index,
    }
    async with session.post(f"{base_url}/chat/completions", json=body) as reply:
        assert reply.status == 200, await reply.text()
        content = (await reply.json())["choices"][0]["message"]["content"]
        assert isinstance(content, str)
        return content
