"""The clients of `benchmarks.overhead`, each in a process of its own; this file alone runs under the peers' Python.

`python overhead_clients.py NAME URL WARM CALLS IN_FLIGHT` prints one line of JSON: calls per second, CPU microseconds
per call of this process, and how much its resident memory grew while it was measured.
"""

import asyncio
import gc
import importlib.metadata
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

MESSAGES = [{"role": "user", "content": "What is 6 * 7? Think step by step."}]
TEXT = "The answer is 42."
Call = Callable[[], Awaitable[str]]


@asynccontextmanager
async def plain_aiohttp(url: str, in_flight: int) -> AsyncIterator[Call]:
    """The limit: one POST, its answer decoded."""
    import aiohttp

    body = {"model": "m", "messages": MESSAGES, "temperature": 0.7, "max_tokens": 64}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:

        async def call() -> str:
            async with session.post(f"{url}/chat/completions", json=body) as response:
                answer = await response.json()
            return str(answer["choices"][0]["message"]["content"])

        yield call


@asynccontextmanager
async def archon(url: str, in_flight: int) -> AsyncIterator[Call]:
    """The whole local stack."""
    from archon.budget import Budget, Ledger
    from archon.models.metered import Metered
    from archon.models.openai_http import OpenAIModel
    from archon.models.protocol import FREE, Request
    from archon.models.retrying import Retrying
    from archon.models.splitting import Splitting
    from archon.models.throttled import Limiter, Throttled
    from archon.types import Message

    endpoint = OpenAIModel(url, "m", price=FREE)
    stack = Splitting(Retrying(Throttled(endpoint, Limiter(start=in_flight, most=in_flight))))
    model = Metered(stack, Ledger(Budget(calls=10**9, tokens=10**12, usd=1.0, seconds=3600)))
    messages = (Message(role="user", content=MESSAGES[0]["content"]),)

    async def call() -> str:
        request = Request(messages=messages, temperature=0.7, max_tokens=64)
        return (await model.sample(request))[0].text

    yield call
    await model.close()


@asynccontextmanager
async def openai_sdk(url: str, in_flight: int) -> AsyncIterator[Call]:
    """OpenAI's own client, as its documentation shows it."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def call() -> str:
            answer = await client.chat.completions.create(model="m", messages=MESSAGES, temperature=0.7, max_tokens=64)
            return answer.choices[0].message.content

        yield call


@asynccontextmanager
async def litellm_sdk(url: str, in_flight: int) -> AsyncIterator[Call]:
    """Call litellm as a library."""
    import litellm

    litellm.telemetry = False

    async def call() -> str:
        answer = await litellm.acompletion(
            model="openai/m",
            api_base=url,
            api_key="none",
            messages=MESSAGES,
            temperature=0.7,
            max_tokens=64,
            num_retries=0,
        )
        return answer.choices[0].message.content

    yield call


@asynccontextmanager
async def dspy_lm(url: str, in_flight: int) -> AsyncIterator[Call]:
    """Call dspy's language model alone, without a program around it and without its cache."""
    import dspy

    lm = dspy.LM("openai/m", api_base=url, api_key="none", cache=False, temperature=0.7, max_tokens=64)

    async def call() -> str:
        answer = (await lm.acall(messages=MESSAGES))[0]
        return answer if isinstance(answer, str) else answer["text"]

    yield call


@asynccontextmanager
async def its_hub_lm(url: str, in_flight: int) -> AsyncIterator[Call]:
    """Call the client of its_hub, one conversation a call, as its algorithms do for one candidate."""
    from its_hub.api.types import ChatMessage
    from its_hub.core.lms.openai_lm import OpenAICompatibleLanguageModel

    lm = OpenAICompatibleLanguageModel(
        endpoint=url, api_key="none", model_name="m", temperature=0.7, max_tokens=64, max_tries=1
    )
    messages = [ChatMessage(**MESSAGES[0])]

    async def call() -> str:
        return (await lm.agenerate(messages))["content"]

    yield call


CLIENTS = {
    "archon": (archon, "archon-ttc"),
    "aiohttp": (plain_aiohttp, "aiohttp"),
    "openai": (openai_sdk, "openai"),
    "litellm": (litellm_sdk, "litellm"),
    "dspy": (dspy_lm, "dspy"),
    "its_hub": (its_hub_lm, "its-hub"),
}


async def drive(call: Call, calls: int, in_flight: int) -> None:
    """Make the calls with `in_flight` workers, and check every answer."""
    left = iter(range(calls))

    async def work() -> None:
        for _ in left:
            text = await call()
            if text != TEXT:
                raise SystemExit(f"a wrong answer: {text!r}")

    await asyncio.gather(*[work() for _ in range(min(in_flight, calls))])


def resident_mb() -> float:
    """Return this process's resident memory; NaN where the system does not say."""
    gc.collect()
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), float("nan"))


async def measure(name: str, url: str, warm: int, calls: int, in_flight: int) -> dict[str, float | str]:
    """Return the figures of one client."""
    client, package = CLIENTS[name]
    async with client(url, in_flight) as call:
        await drive(call, warm, in_flight)
        before_mb, cpu_s, start_s = resident_mb(), time.process_time(), time.perf_counter()
        await drive(call, calls, in_flight)
        wall_s, spent_s = time.perf_counter() - start_s, time.process_time() - cpu_s
        grown_mb = resident_mb() - before_mb
    return {
        "client": name,
        "version": importlib.metadata.version(package),
        "calls_per_s": calls / wall_s,
        "cpu_us": spent_s / calls * 1e6,
        "grown_mb": grown_mb,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])))))
