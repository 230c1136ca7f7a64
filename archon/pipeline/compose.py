"""Layers made of layers: in sequence, side by side, and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from archon.errors import ConfigError
from archon.models.protocol import Model
from archon.pipeline.layer import Binding, Layer, Leaf, Until
from archon.pipeline.plan import LayerPlan, Shape
from archon.types import Candidate, Trace, Usage, beside

T = TypeVar("T")


def parts_of(kind: type[Sequence] | type[Parallel], layer: Layer) -> tuple[Layer, ...]:
    """Return the parts of a composite of that very kind, else the layer alone: `(a >> b) >> c` is one sequence."""
    return layer.layers if isinstance(layer, kind) else (layer,)


async def gather(works: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Run works side by side and return their results in order; the first error cancels the rest and is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Composite(Layer):
    layers: tuple[Layer, ...]
    """The layers inside, at least one."""

    def __post_init__(self) -> None:
        if not self.layers:
            raise ConfigError(f"{type(self).__name__} of no layers: must hold at least one")

    def bind(self, binding: Binding) -> Layer:
        """Return the composite with every layer inside bound."""
        return replace(self, layers=tuple(layer.bind(binding) for layer in self.layers))

    def relabel(self, name: Callable[[str], str], model: Model | str | None) -> Layer:
        """Return the composite with every layer inside relabelled."""
        return replace(self, layers=tuple(layer.relabel(name, model) for layer in self.layers))

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Return the leaves of every layer inside."""
        return tuple(leaf for layer in self.layers for leaf in layer.leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence(_Composite):
    """One layer after the other; a stop on the trace skips what is left."""

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace after the last layer that ran."""
        for layer in self.layers:
            if trace.stop is not None:
                break
            trace = await layer(trace)
        return trace

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return the rows of each layer, its shape passed on to the next."""
        rows: tuple[LayerPlan, ...] = ()
        for layer in self.layers:
            more, shape = layer.plan_rows(shape)
            rows += more
        return rows, shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(_Composite):
    """Layers side by side on the same trace; their candidates are concatenated, each once."""

    async def __call__(self, trace: Trace) -> Trace:
        """Return one trace with the work of every branch."""
        start = replace(trace, usage=Usage(), spans=())
        return _joined(trace, await gather([_run(layer, start) for layer in self.layers]))

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return every branch's rows; candidates and tests add up, lengths take the largest."""
        planned = [layer.plan_rows(shape) for layer in self.layers]
        shapes = [after for _, after in planned]
        tests = shape.tests + sum(after.tests - shape.tests for after in shapes)
        joined = replace(
            shape,
            candidates=sum(after.candidates for after in shapes),
            # Tests of another branch are news to a branch's candidates.
            judged=sum(after.judged for after in shapes if after.tests == tests),
            candidate_tokens=max(after.candidate_tokens for after in shapes),
            critique_tokens=max(after.critique_tokens for after in shapes),
            tests=tests,
            test_tokens=shape.test_tokens + sum(after.test_tokens - shape.test_tokens for after in shapes),
            tests_sought=any(after.tests_sought for after in shapes),
        )
        return tuple(row for rows, _ in planned for row in rows), joined


@dataclass(frozen=True, slots=True, kw_only=True)
class Refine(Layer):
    """Repeat a body until its answer is verified; the best candidate of all rounds comes first at the end."""

    body: Layer
    """What is repeated; its generator sees the last round's candidates and why they failed."""
    until: Until = "verified"
    """The loop ends when the answer's newest verdict says passed."""
    max_rounds: int = 2
    """Passes at most, the first one included."""

    def __post_init__(self) -> None:
        if self.until != "verified":
            raise ConfigError(f"refine until={self.until!r}: valid: 'verified'")
        if not isinstance(self.max_rounds, int) or self.max_rounds < 1:
            raise ConfigError(
                f"refine max_rounds={self.max_rounds!r}: must be a whole number of at least 1, the first pass included"
            )

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace after the last round, candidates of every round ordered best first."""
        trace = await self.body(trace)
        rounds = [trace.candidates]
        while len(rounds) < self.max_rounds and trace.stop != "budget" and not _verified(trace):
            trace = await self.body(replace(trace, round=trace.round + 1, stop=None, stop_reason=""))
            rounds.append(trace.candidates)
        if len(rounds) == 1:
            return trace
        ordered = tuple(sorted(_each_once(reversed(rounds)), key=_merit))
        return replace(trace, candidates=ordered, retired=_without(trace.retired, ordered))

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return the body's rows: exact for the first round, bounded for `max_rounds`.

        From the second round on a generator's prompt holds the last round's candidate and its failures as well.
        """
        rows, after = self.body.plan_rows(shape)
        if self.max_rounds == 1:
            return rows, after
        again, last = self.body.plan_rows(replace(after, problem=shape.problem))
        repeats = self.max_rounds - 1
        summed = tuple(
            replace(
                first,
                max_calls=first.max_calls + repeats * later.max_calls,
                prompt_tokens=first.prompt_tokens + repeats * later.prompt_tokens,
                completion_tokens=first.completion_tokens + repeats * later.completion_tokens,
            )
            for first, later in zip(rows, again, strict=True)
        )
        return summed, replace(last, candidates=after.candidates + repeats * last.candidates, judged=0)

    def bind(self, binding: Binding) -> Layer:
        """Return the loop with its body bound."""
        return replace(self, body=self.body.bind(binding))

    def relabel(self, name: Callable[[str], str], model: Model | str | None) -> Layer:
        """Return the loop with its body relabelled."""
        return replace(self, body=self.body.relabel(name, model))

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Return the body's leaves."""
        return self.body.leaves


async def _run(layer: Layer, trace: Trace) -> Trace:
    return await layer(trace)


def _verified(trace: Trace) -> bool:
    return trace.answer is not None and trace.answer.passed is True


def _merit(candidate: Candidate) -> tuple[int, float]:
    """Order candidates: passed, then not judged, then failed, then lost ones; within each, the higher score."""
    rank = 3 if candidate.error is not None else {True: 0, None: 1, False: 2}[candidate.passed]
    return rank, -(candidate.score if candidate.score is not None else -1.0)


def _each_once(groups: Iterable[tuple[Candidate, ...]]) -> tuple[Candidate, ...]:
    seen: dict[str, Candidate] = {}
    for group in groups:
        for candidate in group:
            seen.setdefault(candidate.id, candidate)
    return tuple(seen.values())


def _without(candidates: tuple[Candidate, ...], live: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    names = {candidate.id for candidate in live}
    return tuple(candidate for candidate in candidates if candidate.id not in names)


def _realigned(before: Trace, branches: list[Trace]) -> list[Trace]:
    """Return branches whose verdicts' test outcomes fit the joined tests: those of other branches were not run."""
    known, aligned, added = len(before.tests), [], 0
    for branch in branches:
        gap = (None,) * added
        aligned.append(
            replace(
                branch,
                candidates=tuple(_spread(candidate, known, gap) for candidate in branch.candidates),
                retired=tuple(_spread(candidate, known, gap) for candidate in branch.retired),
            )
        )
        added += len(branch.tests) - known
    return aligned


def _spread(candidate: Candidate, known: int, gap: tuple[None, ...]) -> Candidate:
    """Put a gap into the outcomes of tests that are new in a branch; older verdicts hold none of these."""
    verdicts = tuple(
        replace(verdict, tests=(*verdict.tests[:known], *gap, *verdict.tests[known:]))
        if gap and len(verdict.tests) > known
        else verdict
        for verdict in candidate.verdicts
    )
    return replace(candidate, verdicts=verdicts)


def _joined(before: Trace, branches: list[Trace]) -> Trace:
    branches = _realigned(before, branches)
    live = _each_once(branch.candidates for branch in branches)
    known = len(before.tests)
    stopped = [branch for branch in branches if branch.stop == "budget"]
    if not stopped and all(branch.stop is not None for branch in branches):
        stopped = branches
    return replace(
        before,
        candidates=live,
        retired=_without(_each_once(branch.retired for branch in branches), live),
        tests=before.tests + tuple(test for branch in branches for test in branch.tests[known:]),
        spans=before.spans + tuple(span for branch in branches for span in branch.spans),
        usage=before.usage + beside(branch.usage for branch in branches),
        # A loop in a branch has used up its rounds' names, which an outer loop must not give again.
        round=max(branch.round for branch in branches),
        stop=stopped[0].stop if stopped else before.stop,
        stop_reason=stopped[0].stop_reason if stopped else before.stop_reason,
    )
