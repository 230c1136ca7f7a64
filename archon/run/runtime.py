"""What stands behind names: servers for local models, clients for endpoints, a sandbox when code is executed.

A `Runtime` is opened for one run or one evaluation. It starts only what is asked for, shares it between all problems,
and closes it on the way out, also when the work inside was cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from archon.models.build import build_model
from archon.models.protocol import Model
from archon.pipeline.pipeline import Pipeline
from archon.sandbox.auto import open_sandbox
from archon.sandbox.protocol import Sandbox
from archon.serving.server import ServeOptions, ensure_server
from archon.types import Problem

_LOCAL = "local/"


@dataclass(slots=True)
class Runtime:
    """Resolves model names and opens sandboxes; an async context manager."""

    specs: Mapping[str, Any] = field(default_factory=dict)
    """A pipeline file's own `models:`, by name."""
    cache: Path | None = None
    """A SQLite file for completions; None keeps none."""
    engine: str | None = None
    """The sandbox engine to insist on; None takes the best one here."""
    serving: ServeOptions | None = None
    """How local models are served; None takes the defaults."""
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _models: dict[str, Model] = field(default_factory=dict)
    _parameters: dict[str, int] = field(default_factory=dict)
    _sandbox: Sandbox | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def model(self, name: str) -> Model:
        """Return the model of a name, its server started where it is a local one.

        Raises:
            ConfigError: the name is none that can be understood.
            ServingError: a local model cannot be pulled or served.
        """
        async with self._lock:
            if name not in self._models:
                spec = self.specs.get(name, name)
                base_url = await self._server_url(spec)
                model = build_model(spec, cache=self.cache, base_url_of=lambda _: base_url)
                self._stack.push_async_callback(model.close)
                self._models[name] = model
            return self._models[name]

    async def models(self, pipeline: Pipeline) -> dict[str, Model]:
        """Return the models of every name that a pipeline uses."""
        return {name: await self.model(name) for name in pipeline.named_models}

    async def parameters(self, pipeline: Pipeline) -> tuple[tuple[str, int], ...]:
        """Return each layer's label and its model's weights, where they are known: those of local models."""
        await self.models(pipeline)
        named = {leaf.name: set(leaf.models) for leaf in pipeline.leaves}
        return tuple(
            (label, self._parameters[name])
            for label, names in named.items()
            for name in names
            if len(names) == 1 and isinstance(name, str) and name in self._parameters
        )

    async def sandbox(self) -> Sandbox:
        """Return the sandbox, opened at the first call.

        Raises:
            NoSandbox: no engine here can contain untrusted code.
        """
        async with self._lock:
            if self._sandbox is None:
                self._sandbox = await open_sandbox(self.engine)
                self._stack.push_async_callback(self._sandbox.close)
            return self._sandbox

    async def sandbox_for(self, pipeline: Pipeline, problem: Problem) -> Sandbox | None:
        """Return the sandbox when a pipeline may execute code on a problem, else None."""
        return await self.sandbox() if pipeline.needs_sandbox and problem.kind == "code" else None

    async def _server_url(self, spec: Any) -> str:  # noqa: ANN401 (a spec is a string or a mapping)
        name = spec.get("model") if isinstance(spec, Mapping) and "url" not in spec else spec
        if not isinstance(name, str) or not name.startswith(_LOCAL):
            return ""
        server = await ensure_server(name.removeprefix(_LOCAL), options=self.serving or ServeOptions())
        self._stack.push_async_callback(server.stop)
        if server.parameters is not None:
            self._parameters[name] = server.parameters
        return server.base_url
