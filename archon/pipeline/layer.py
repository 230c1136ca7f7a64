"""The one kind of building block: an async callable from a trace to a trace.

`a >> b` runs in sequence, `a | b` side by side on the same trace, `a.refine(until="verified", max_rounds=2)` repeats.
Each gives a layer again, so anything composes with anything. A layer is a frozen value: running it changes nothing in
it, and the same pipeline object may run on many problems, loops and threads at once.
"""

from __future__ import annotations

import asyncio
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, runtime_checkable

from archon.budget import Budget, Ledger
from archon.errors import ConfigError
from archon.models.protocol import Model
from archon.pipeline.plan import LayerPlan, Plan, Shape
from archon.sandbox.protocol import Sandbox
from archon.types import Problem, Trace

if TYPE_CHECKING:
    from archon.pipeline.pipeline import Pipeline

Until = Literal["verified"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a run gives to its layers in place of names and blanks."""

    model: Callable[[Model | str], Model]
    """Turns a layer's model, or its name, into the metered model of this run."""
    sandbox: Sandbox | None = None
    """The engine for layers that were built without one; None when the pipeline executes nothing."""
    seed: int = 0


class Layer(ABC):
    """Anything that takes a trace to a trace. Concrete layers are frozen dataclasses."""

    @abstractmethod
    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace after this layer's work."""

    @abstractmethod
    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return what this layer will take on a trace of that shape, and the shape that it leaves."""

    @abstractmethod
    def bind(self, binding: Binding) -> Layer:
        """Return this layer with its models and sandbox replaced by those of a run."""

    @abstractmethod
    def relabel(self, name: Callable[[str], str], model: Model | str | None) -> Layer:
        """Return this layer with unset labels named by `name(kind)` and unset models set to `model`."""

    @property
    @abstractmethod
    def leaves(self) -> tuple[Leaf, ...]:
        """Return the leaf layers inside, in the order in which they run."""

    def __rshift__(self, other: Layer) -> Layer:
        """Return this layer followed by another."""
        from archon.pipeline.compose import Sequence, parts_of

        return Sequence(layers=(*parts_of(Sequence, self), *parts_of(Sequence, other)))

    def __or__(self, other: Layer) -> Layer:
        """Return this layer beside another, both on the same trace; their candidates are put together."""
        from archon.pipeline.compose import Parallel, parts_of

        return Parallel(layers=(*parts_of(Parallel, self), *parts_of(Parallel, other)))

    def refine(self, *, until: Until = "verified", max_rounds: int = 2) -> Layer:
        """Return a loop over this layer: from a failed verification back to generation.

        Args:
            until: the loop ends when the answer is `verified`: its newest verdict says passed.
            max_rounds: passes at most, the first one included.
        """
        from archon.pipeline.compose import Refine

        return Refine(body=self, until=until, max_rounds=max_rounds)

    def compiled(self, name: str = "pipeline") -> Pipeline:
        """Return the validated pipeline: labels given, models filled in, order rules checked.

        Raises:
            OrderError: the layers' order breaks a rule.
            ConfigError: a layer has no model and no generator lends it one.
        """
        from archon.pipeline.pipeline import Pipeline

        return Pipeline.of(self, name=name)

    def plan(self, problem: Problem) -> Plan:
        """Return the exact calls of each layer, and a bound of its tokens, before anything runs."""
        return self.compiled().plan(problem)

    async def run(
        self,
        problem: Problem,
        *,
        budget: Budget | Ledger | None = None,
        sandbox: Sandbox | None = None,
        seed: int = 0,
    ) -> Trace:
        """Solve one problem and return the full trace.

        A stop by budget is not an error: the trace holds the best answer so far and `stop == "budget"`.

        Args:
            problem: what to solve.
            budget: limits for this run, or a ledger that several runs share.
            sandbox: the engine for layers that execute code; None opens the best one here when one is needed.
            seed: the same seed on the same model and settings asks for the same samples.

        Raises:
            ConfigError, OrderError: the pipeline cannot be run as it is.
            ModelError: no candidate could be generated, or the endpoint's answer is terminal.
            UnknownPrice: a dollar budget over a model without a price.
        """
        return await self.compiled().run(problem, budget=budget, sandbox=sandbox, seed=seed)

    def run_sync(
        self, problem: Problem, *, budget: Budget | None = None, sandbox: Sandbox | None = None, seed: int = 0
    ) -> Trace:
        """Solve one problem from synchronous code; also safe inside a running event loop and from any thread."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            work = self.run(problem, budget=budget, sandbox=sandbox, seed=seed)
            return pool.submit(asyncio.run, work).result()


@runtime_checkable
class AsksModel(Protocol):
    """A leaf with a `model` field, which a run binds."""

    @property
    def model(self) -> Model | str | tuple[Model | str, ...] | None:
        """Return the model, several, or None for the generator's."""


@runtime_checkable
class HasSandbox(Protocol):
    """A leaf with a `sandbox` field, which a run binds."""

    @property
    def sandbox(self) -> Sandbox | None:
        """Return the engine of its own, or None for the run's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Layer):
    """A layer that is not made of layers. A subclass with a `model` or a `sandbox` field has it bound by the run."""

    kind: ClassVar[str] = ""
    """The name in YAML and reports."""

    label: str | None = None
    """The name in traces and reports; None takes the kind, numbered when there are several."""
    seed: int = field(default=0, metadata={"bound": True})
    """Set by the run."""

    @property
    def name(self) -> str:
        """Return the label, or the kind while there is none."""
        return self.label or self.kind

    @property
    def needs_sandbox(self) -> bool:
        """Return whether it may execute code, so that a run opens a sandbox for it."""
        return False

    @property
    def models(self) -> tuple[Model | str, ...]:
        """Return the models it has been given; none when it asks none or still takes the generator's."""
        if not isinstance(self, AsksModel) or self.model is None:
            return ()
        return self.model if isinstance(self.model, tuple) else (self.model,)

    def bind(self, binding: Binding) -> Self:
        """Return this layer with its model, sandbox and seed of a run."""
        changes: dict[str, Any] = {"seed": binding.seed}
        if isinstance(self, AsksModel) and (model := self.model) is not None:
            changes["model"] = tuple(map(binding.model, model)) if isinstance(model, tuple) else binding.model(model)
        if isinstance(self, HasSandbox) and self.sandbox is None:
            changes["sandbox"] = binding.sandbox
        return dataclasses.replace(self, **changes)

    def relabel(self, name: Callable[[str], str], model: Model | str | None) -> Self:
        """Return this layer with a label and, where it had none, a model."""
        changes: dict[str, Any] = {"label": self.label or name(self.kind)}
        if isinstance(self, AsksModel) and self.model is None:
            if model is None:
                raise ConfigError(
                    f"{self.kind} has no model and there is no generator before it whose model it can use"
                )
            changes["model"] = model
        return dataclasses.replace(self, **changes)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Return itself."""
        return (self,)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLayer(Leaf):
    """A plain async function as a layer. It makes no metered calls: a layer that asks a model is a dataclass."""

    kind: ClassVar[str] = "function"
    function: Callable[[Trace], Awaitable[Trace]]
    """Takes a trace and returns a new one."""

    @property
    def name(self) -> str:
        """Return the label, or the function's own name while there is none."""
        return self.label or str(getattr(self.function, "__name__", self.kind))

    def relabel(self, name: Callable[[str], str], model: Model | str | None) -> FunctionLayer:
        """Return this layer with a label made from the function's name, so that one function may stand twice."""
        return dataclasses.replace(self, label=self.label or name(self.name))

    async def __call__(self, trace: Trace) -> Trace:
        """Return what the function returns."""
        return await self.function(trace)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return no calls; the function is taken to keep the number of candidates."""
        return (LayerPlan.of(self.name, self.kind, calls=0),), shape


def layer(function: Callable[[Trace], Awaitable[Trace]]) -> FunctionLayer:
    """Return an async function from trace to trace as a layer; usable as a decorator."""
    return FunctionLayer(function=function)
