"""A chat endpoint in a thread of its own, so that a test may use any number of event loops of its own against it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Self

from aiohttp import web

Answer = Callable[[dict[str, Any], int], Any]
"""From a request's body and its number, from 0: what `ChatServer.answer` may give back."""


def chat_reply(*messages: dict[str, Any] | str, prompt: int = 20, completion: int | None = None, **usage: Any) -> dict:
    """A whole answer; a text stands for a message with that content, and a word is a token."""
    given = [{"content": each} if isinstance(each, str) else each for each in messages]
    words = sum(len(str(each.get("content")).split()) for each in given)
    return {
        "choices": [
            {"index": i, "finish_reason": "stop", "message": {"role": "assistant", **each}}
            for i, each in enumerate(given)
        ],
        "usage": {"prompt_tokens": prompt, "completion_tokens": words if completion is None else completion, **usage},
    }


class ChatServer:
    """It answers `sample SEED` (or the request's number without a seed) and keeps the bodies and headers it got."""

    def __init__(self, keepalive_s: float = 75.0) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Answer = self.usual
        self.served: list[str] = ["m"]
        self.latency_s = 0.0
        self.connections: set[int] = set()
        self._keepalive_s = keepalive_s
        self._loop = asyncio.new_event_loop()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @staticmethod
    def usual(body: dict[str, Any], number: int) -> dict[str, Any]:
        first = body.get("seed", number)
        return chat_reply(*[f"sample {first + i}" for i in range(body.get("n", 1))])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        runner = self._loop.run_until_complete(self._start())
        self._up.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, access_log=None, keepalive_timeout=self._keepalive_s, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port = runner.addresses[0][1]
        return runner

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in self.served]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        assert request.transport is not None
        self.connections.add(request.transport.get_extra_info("peername")[1])
        await asyncio.sleep(self.latency_s)
        given = self.answer(body, len(self.bodies) - 1)
        if given is None:  # hang up without a word
            request.transport.close()
            return web.Response()
        if isinstance(given, dict):
            return web.json_response(given)
        status, text, headers = given
        return web.Response(status=status, text=text, headers=headers)
