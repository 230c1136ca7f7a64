"""A compiled pipeline: labelled, checked, planned, and run."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from archon.budget import Budget, Ledger
from archon.errors import ConfigError
from archon.models.metered import Metered
from archon.models.protocol import Model
from archon.pipeline.graph import Graph, graph_of
from archon.pipeline.layer import Binding, HasSandbox, Layer, Leaf
from archon.pipeline.plan import LayerPlan, Plan, Shape
from archon.pipeline.rules import check
from archon.sandbox.protocol import Sandbox
from archon.types import Problem, Trace

_RUNTIME = "archon.run.runtime"
"""Starts servers and opens sandboxes for pipelines that name them. Reached by name, since it stands above this room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(Layer):
    """A layer that has been through `of`: every leaf has a label and a model, and the order keeps the rules."""

    root: Layer
    """The labelled layers."""
    source: Layer
    """The layers as they were given: what a larger pipeline labels anew, and what a file is written from."""
    title: str = "pipeline"
    """The name that reports show."""

    @classmethod
    def of(cls, layer: Layer, *, name: str = "pipeline") -> Pipeline:
        """Return a layer compiled. A pipeline is returned as it is, under a name that is given.

        Raises:
            OrderError: the layers' order breaks a rule.
            ConfigError: a layer has no model and no generator lends it one, or two layers share a label.
        """
        if isinstance(layer, Pipeline):
            return layer if name == "pipeline" else replace(layer, title=name)
        root = layer.relabel(_namer(), lent_model(layer))
        names = Counter(leaf.name for leaf in root.leaves)
        for label, count in names.items():
            if any(mark in label for mark in "#@\n"):
                raise ConfigError(
                    f"label {label!r}: must not hold '#', '@' or a line break, which candidates' ids are made of"
                )
            if count > 1:
                raise ConfigError(f"{count} layers are labelled {label!r}: a label names one layer")
        check(graph_of(root))
        return cls(root=root, source=layer, title=name)

    @property
    def graph(self) -> Graph:
        """Return the graph of the leaf layers."""
        return graph_of(self.root)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Return the leaf layers, in the order in which they run."""
        return self.root.leaves

    @property
    def needs_sandbox(self) -> bool:
        """Return whether some layer may execute code and has no sandbox of its own."""
        lacking = (leaf for leaf in self.leaves if not isinstance(leaf, HasSandbox) or leaf.sandbox is None)
        return any(leaf.needs_sandbox for leaf in lacking)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return the rows of the layers inside."""
        return self.root.plan_rows(shape)

    def plan(self, problem: Problem) -> Plan:
        """Return the exact calls of each layer, and a bound of its tokens."""
        rows, _ = self.root.plan_rows(Shape(problem=problem))
        return Plan(rows=rows)

    def bind(self, binding: Binding) -> Layer:
        """Return the layers inside, bound."""
        return self.root.bind(binding)

    def relabel(self, name: Callable[[str], str], model: Model | str | None) -> Layer:
        """Return the layers inside with labels of a larger pipeline; their unset models stay those of this one."""
        own = lent_model(self.source)
        return self.source.relabel(name, model if own is None else own)

    def resolved(
        self, models: Mapping[str, Model], sandbox: Sandbox | None, *, ledger: Ledger | None = None
    ) -> Pipeline:
        """Return the pipeline with named models replaced, and the sandbox set where a layer has none.

        Args:
            models: by name.
            sandbox: for layers without one.
            ledger: every model is held to it, beside what each run is held to.
        """

        def resolve(model: Model | str) -> Model:
            found = models[model] if isinstance(model, str) else model
            return found if ledger is None else Metered(found, ledger)

        return replace(self, root=self.root.bind(Binding(model=resolve, sandbox=sandbox)))

    async def __call__(self, trace: Trace) -> Trace:
        """Run the layers as they are: for pipelines whose models are objects, not names."""
        return await self.root(trace)

    async def run(
        self, problem: Problem, *, budget: Budget | Ledger | None = None, sandbox: Sandbox | None = None, seed: int = 0
    ) -> Trace:
        """Solve one problem and return the full trace; see `Layer.run`."""
        ledger = budget if isinstance(budget, Ledger) else Ledger(budget)
        async with self._runtime(problem, sandbox) as runtime:
            models = {} if runtime is None else {name: await runtime.model(name) for name in self.named_models}
            engine = sandbox if runtime is None or sandbox is not None else await runtime.sandbox_for(self, problem)

            def metered(model: Model | str) -> Model:
                return Metered(models[model] if isinstance(model, str) else model, ledger)

            bound = self.root.bind(Binding(model=metered, sandbox=engine, seed=seed))
            return await bound(Trace(problem=problem))

    @property
    def named_models(self) -> tuple[str, ...]:
        """Return the models that are given by name, each once, in the order of the layers."""
        models = [model for leaf in self.leaves for model in leaf.models]
        return tuple(dict.fromkeys(model for model in models if isinstance(model, str)))

    def _runtime(self, problem: Problem, sandbox: Sandbox | None) -> AbstractAsyncContextManager[Any]:
        """Return what resolves names, or nothing when there is nothing to resolve."""
        executes = self.needs_sandbox and sandbox is None and problem.kind == "code"
        if not self.named_models and not executes:
            return nullcontext(None)
        context: AbstractAsyncContextManager[Any] = importlib.import_module(_RUNTIME).Runtime()
        return context


def lent_model(layer: Layer) -> Model | str | None:
    """Return the model that layers without one take: the first that any layer names."""
    return next((model for leaf in layer.leaves for model in leaf.models), None)


def _namer() -> Callable[[str], str]:
    """Return a function that names layers by kind: fuser, fuser-2, fuser-3."""
    seen: Counter[str] = Counter()

    def name(kind: str) -> str:
        seen[kind] += 1
        return kind if seen[kind] == 1 else f"{kind}-{seen[kind]}"

    return name
