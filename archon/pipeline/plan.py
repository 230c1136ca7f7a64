"""How many calls and tokens a pipeline will take, worked out before anything runs.

A layer's plan is a function of the `Shape` of what reaches it: how many candidates, how many tests, and how long
their texts can be. `calls` is exact for a pass in which every reply can be read; `max_calls` differs from it only where
a loop may repeat, or where a reply that cannot be read makes a later layer judge again. Token figures are upper bounds:
a text of m generated tokens is at most m tokens again in a later prompt, and fixed text is counted by its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from archon.types import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a layer can count on before it runs."""

    problem: Problem
    candidates: int = 0
    judged: int = 0
    """How many of the candidates surely have an outcome for every test, when each judge's reply could be read."""
    candidate_tokens: int = 0
    """The most tokens that one live candidate can have."""
    critique_tokens: int = 0
    """The most tokens that one candidate's critique can have; 0: there are no critiques."""
    tests: int = 0
    """The most unit tests that the trace can hold."""
    test_tokens: int = 0
    """The most tokens that all tests together can have."""
    tests_sought: bool = False
    """Whether a layer has had tests written, so that a later one does not, even when none could be read."""

    def first(self, count: int | None) -> Shape:
        """Return the shape after a cut to the first candidates, None for all; those not judged may be among them."""
        if count is None or count >= self.candidates:
            return self
        return replace(self, candidates=count, judged=max(0, count - (self.candidates - self.judged)))

    @property
    def problem_tokens(self) -> int:
        """Return a bound of the statement's tokens: its bytes, and 4,096 for each image."""
        parts = [message.content for message in self.problem.history] + [self.problem.prompt]
        return sum(_content_tokens(content) for content in parts)


def _content_tokens(content: object) -> int:
    pieces = content if isinstance(content, tuple) else (content,)
    return 80 + sum(len(piece.encode()) if isinstance(piece, str) else 4096 for piece in pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerPlan:
    """What one layer will take."""

    layer: str
    kind: str
    calls: int
    """Completions in a pass whose replies can all be read; in a loop, those of the first round."""
    max_calls: int
    """Completions at most: every round of a loop taken, and what could not be read judged again."""
    prompt_tokens: int = 0
    """A bound for `max_calls` calls."""
    completion_tokens: int = 0
    """A bound for `max_calls` calls."""

    @classmethod
    def of(
        cls,
        layer: str,
        kind: str,
        *,
        calls: int,
        max_calls: int | None = None,
        prompt_tokens: int = 0,
        max_tokens: int = 0,
    ) -> LayerPlan:
        """Return the plan of calls with at most `prompt_tokens` in and `max_tokens` out each."""
        most = calls if max_calls is None else max_calls
        return cls(
            layer=layer,
            kind=kind,
            calls=calls,
            max_calls=most,
            prompt_tokens=most * prompt_tokens,
            completion_tokens=most * max_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A pipeline's plan for one problem, a row for each layer in the order in which they run."""

    rows: tuple[LayerPlan, ...]

    @property
    def calls(self) -> int:
        """Return the calls of a pass in which no loop repeats."""
        return sum(row.calls for row in self.rows)

    @property
    def max_calls(self) -> int:
        """Return the calls at most: every loop takes all its rounds, and what could not be read is judged again."""
        return sum(row.max_calls for row in self.rows)

    @property
    def max_tokens(self) -> int:
        """Return a bound of all prompt and completion tokens."""
        return sum(row.prompt_tokens + row.completion_tokens for row in self.rows)
