"""An OpenAI-compatible server for tests, in a process of its own: answers code-fix problems by name, seed and round."""

import asyncio
import sys
from pathlib import Path

from aiohttp import web

LOG = Path(sys.argv[1])
# What the function returns in each sample of the first round, and of the second; by the last digit of the problem.
RETURNS = {0: ("a * b", "a + b"), 1: ("a - b - 1", "b - a"), 2: ("a / b", "a ** b")}
SECOND = {0: ("a + b", "a"), 1: ("a + b", "b"), 2: ("a", "b")}


async def chat(request: web.Request) -> web.Response:
    body = await request.json()
    asked = "\n".join(str(message["content"]) for message in body["messages"])
    number = int(asked.partition("wrong in job-")[2].split(".")[0]) % 3
    table = SECOND if "was checked and not accepted" in asked else RETURNS
    n, seed = body.get("n") or 1, body.get("seed") or 0
    with LOG.open("a") as log:
        log.write("call\n" * n)
    await asyncio.sleep(0.05)
    texts = [f"```python\n# app.py\ndef add(a, b):\n    return {table[number][(seed + i) % 2]}\n```" for i in range(n)]
    choices = [
        {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        for i, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": 10, "completion_tokens": 3 * n, "total_tokens": 10 + 3 * n}
    return web.json_response({"id": "x", "object": "chat.completion", "model": "m", "choices": choices, "usage": usage})


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
