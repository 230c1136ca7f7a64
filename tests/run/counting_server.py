"""An OpenAI-compatible server for tests, in a process of its own: answers by hash, every call written to a file."""

import asyncio
import hashlib
import sys
from pathlib import Path

from aiohttp import web

LOG = Path(sys.argv[1])


async def chat(request: web.Request) -> web.Response:
    body = await request.json()
    seed = body.get("seed") or 0
    n = body.get("n") or 1
    with LOG.open("a") as log:
        for index in range(n):
            log.write(hashlib.sha256(f"{body['messages']}|{seed + index}".encode()).hexdigest() + "\n")
    await asyncio.sleep(0.03)
    choices = [
        {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": answer(body, seed + i)}}
        for i in range(n)
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 3 * n, "total_tokens": 10 + 3 * n}
    return web.json_response({"id": "x", "object": "chat.completion", "model": "m", "choices": choices, "usage": usage})


def answer(body: dict[str, object], seed: int) -> str:
    digest = hashlib.sha256(f"{body['messages']}|{seed}".encode()).digest()
    return f"The answer is \\boxed{{{digest[0] % 3}}}."


async def serve() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


asyncio.run(serve())
