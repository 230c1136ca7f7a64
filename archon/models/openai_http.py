"""One plain async client for every OpenAI-compatible chat endpoint: vLLM, llama.cpp, OpenAI and the rest.

It sends one request and maps the answer; it never retries (that is `Retrying`), except once to learn that an endpoint
wants `max_completion_tokens`. Plain aiohttp and orjson, because a local server's clients pay for every microsecond.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import aiohttp
import orjson
from yarl import URL

from archon.errors import AnswerLost, AuthError, ConfigError, ModelError, ModelRefused, ModelUnavailable, nearest
from archon.models._per_loop import PerLoop
from archon.models.http_errors import error_of, redacted
from archon.models.openai_wire import body_of, completions_of
from archon.models.protocol import Completion, Price, Request
from archon.models.waits import with_wait

_UNKNOWN_MODEL = re.compile(r"model.*(not found|not exist|unknown|invalid|not supported)", re.IGNORECASE)
_IDLE_S = 4.0
"""How long an idle connection is kept: vLLM (uvicorn) closes its own after 5 s; a POST must not meet a closed one."""
_OWNED = frozenset({"model", "messages", "n", "max_tokens", "max_completion_tokens", "stream"})


class _Connections:
    """One event loop's HTTP session, and the gate that keeps its requests within the number of connections."""

    def __init__(self, headers: Mapping[str, str], timeout_s: float, most: int) -> None:
        self.gate = asyncio.Semaphore(most)
        self._scope = _session(headers, timeout_s, most)
        self.session: aiohttp.ClientSession | None = None

    async def open(self) -> aiohttp.ClientSession:
        # The first step of the scope never suspends, so two tasks cannot both take it.
        if self.session is None:
            self.session = await anext(self._scope)
        return self.session

    async def close(self) -> None:
        await self._scope.aclose()


async def _session(
    headers: Mapping[str, str], timeout_s: float, most: int
) -> AsyncGenerator[aiohttp.ClientSession, None]:
    # An async generator because asyncio.run finishes those at its end: a session that nobody closed is closed with its
    # loop, in its loop, without a warning.
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=most, limit_per_host=most, keepalive_timeout=_IDLE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=timeout_s),
        headers=headers,
    ) as session:
        yield session


@dataclass(slots=True)
class _Learnt:
    """What the endpoint taught us: which name it has for the token limit."""

    limit_key: str = "max_tokens"


@dataclass(frozen=True, slots=True, eq=False)
class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint. Usable from any number of event loops and threads."""

    base_url: str
    """Up to and including the version: `http://127.0.0.1:8000/v1`."""
    model: str
    """The id that the endpoint serves it under."""
    _: KW_ONLY
    name: str = ""
    """What traces and reports show; the model id when empty."""
    api_key_env: str | None = None
    """The environment variable that holds the API key; the key itself is never part of a setting."""
    price: Price | None = None
    timeout_s: float = 600.0
    """The longest that one request may take."""
    connections: int = 1024
    """The most requests in flight from one event loop; more wait here, and the wait is counted as such."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Sent with every request, unless the request sets the same thing: `{"top_k": 20}`."""
    efforts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What to send for an effort in place of `reasoning_effort`:
    `{"none": {"chat_template_kwargs": {"enable_thinking": False}}}`."""
    opens_thinking: bool = False
    """The chat template writes the opening `<think>` itself, so a reply without `</think>` is all thinking."""
    known_as: str | None = None
    """Stands for the URL in `identity`, for a local server whose port changes between runs."""
    _learnt: _Learnt = field(init=False, repr=False, default_factory=_Learnt)
    _url: URL = field(init=False, repr=False)
    _loops: PerLoop[_Connections] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "base_url", self.base_url.rstrip("/"))
        set_(self, "name", self.name or self.model)
        set_(self, "_url", _checked(self.base_url) / "chat" / "completions")
        set_(self, "_loops", PerLoop(self._connect))
        if owned := sorted(_OWNED & self.extra_body.keys()):
            raise ConfigError(f"extra_body of {self.name!r} holds {owned[0]!r}, which each request sets")

    @property
    def identity(self) -> str:
        """Return the URL, the model id, and the settings that change what it answers."""
        shaping = {"extra_body": self.extra_body, "efforts": self.efforts, "opens_thinking": self.opens_thinking}
        set_ = {key: value for key, value in shaping.items() if value}
        suffix = "?" + orjson.dumps(set_, option=orjson.OPT_SORT_KEYS).decode() if set_ else ""
        return f"{self.known_as or self.base_url}#{self.model}{suffix}"

    async def sample(self, request: Request) -> tuple[Completion, ...]:
        """Return exactly `request.n` completions; those that the endpoint left out carry an error.

        Raises:
            ModelError: of the kind that the answer stands for (see `http_errors`).
        """
        connections = self._loops.get()
        gate = connections.gate
        if not gate.locked():
            async with gate:
                return await self._ask(connections, request)
        start_s = time.perf_counter()
        async with gate:
            wait_s = time.perf_counter() - start_s
            return with_wait(await self._ask(connections, request), wait_s=wait_s)

    async def close(self) -> None:
        """Close this loop's connections; those of other loops close when their loop ends."""
        connections = self._loops.pop()
        if connections is not None:
            await connections.close()

    def _connect(self) -> _Connections:
        headers = {"Content-Type": "application/json", "User-Agent": "archon"}
        if (key := self._key()) is not None:
            headers["Authorization"] = f"Bearer {key}"
        return _Connections(headers, self.timeout_s, self.connections)

    def _key(self) -> str | None:
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise AuthError(
                f"the environment variable {self.api_key_env!r}, for the API key of {self.name!r}, is not set"
            )
        return key

    async def _ask(self, connections: _Connections, request: Request) -> tuple[Completion, ...]:
        limit_key = self._learnt.limit_key
        start_s = time.perf_counter()
        try:
            reply, attempts = await self._post(connections, self._encoded(request, limit_key)), 1
        except ModelRefused as refused:
            if limit_key != "max_tokens" or "max_completion_tokens" not in str(refused):
                raise await self._explained(connections, refused) from None
            start_s = time.perf_counter()
            reply, attempts = await self._post(connections, self._encoded(request, "max_completion_tokens")), 2
            self._learnt.limit_key = "max_completion_tokens"
        return completions_of(
            reply,
            request,
            name=self.name,
            price=self.price,
            seconds=time.perf_counter() - start_s,
            attempts=attempts,
            opened=self.opens_thinking,
        )

    def _encoded(self, request: Request, limit_key: str) -> bytes:
        body = body_of(request, model=self.model, limit_key=limit_key, efforts=self.efforts)
        try:
            return orjson.dumps({**self.extra_body, **body} if self.extra_body else body)
        except TypeError as error:
            raise ModelRefused(f"the request to {self.name!r} cannot be written as JSON: {error}") from None

    async def _post(self, connections: _Connections, body: bytes) -> object:
        status, headers, answer = await self._exchange(connections, "POST", self._url, body)
        if status != 200:
            raise error_of(status, answer, headers, url=str(self._url), secret=self._key())
        try:
            reply = orjson.loads(answer)
        except orjson.JSONDecodeError:
            start = redacted(answer[:80].decode(errors="replace"), self._key())
            raise AnswerLost(f"{self._url} answered HTTP 200 with malformed JSON: {start!r}") from None
        if isinstance(reply, dict) and "choices" not in reply and "error" in reply:
            raise error_of(_code(reply["error"]), answer, headers, url=str(self._url), secret=self._key())
        return reply

    async def _exchange(
        self, connections: _Connections, method: str, url: URL, body: bytes | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        session = await connections.open()
        try:
            async with session.request(method, url, data=body, allow_redirects=False) as response:
                return response.status, response.headers, await response.read()
        except TimeoutError:
            raise AnswerLost(f"{url} did not answer within {self.timeout_s} s") from None
        except aiohttp.ClientConnectorError as error:
            raise ModelUnavailable(f"{url} cannot be reached: {self._said(error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise AnswerLost(f"{url} broke off the connection: {self._said(error)}") from None

    def _said(self, error: Exception) -> str:
        return redacted(str(error), self._key()) or type(error).__name__

    async def _explained(self, connections: _Connections, refused: ModelRefused) -> ModelRefused:
        """Return the refusal, with what the endpoint serves when the model is what it does not know."""
        not_found = "HTTP 404" in str(refused)
        if not not_found and not _UNKNOWN_MODEL.search(str(refused)):
            return refused
        served = await self._served(connections)
        if served is None and not_found:
            return ModelRefused(f"{refused}; {self.base_url}/models is not there either: does the base URL end in /v1?")
        if served is None or self.model in served:
            return refused
        return ModelRefused(f"{self.base_url} does not serve {self.model!r}: {nearest(self.model, served)}")

    async def _served(self, connections: _Connections) -> list[str] | None:
        with contextlib.suppress(ModelError, orjson.JSONDecodeError):
            status, _, answer = await self._exchange(connections, "GET", _checked(self.base_url) / "models")
            listing = orjson.loads(answer)
            if status == 200 and isinstance(listing, dict) and isinstance(listing.get("data"), list):
                return [str(each["id"]) for each in listing["data"] if isinstance(each, dict) and "id" in each]
        return None


def _checked(base_url: str) -> URL:
    try:
        url = URL(base_url)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"base URL {base_url!r}: must be like 'http://127.0.0.1:8000/v1'")
    if url.user or url.password or url.query_string or url.fragment:
        # Not quoted: what stands there may be a key, and identities end up in caches and reports.
        raise ConfigError(
            f"the base URL for {url.host!r} must not have a user, a query or a fragment; put a key into an "
            "environment variable and name it as api_key_env"
        )
    return url


def _code(error: object) -> int:
    """Return the HTTP status that an error inside a 200 answer names; 502 when it names none."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 502
