"""The five frozen types that carry everything: Problem, Candidate, Verdict, Usage, Trace.

A layer takes a `Trace` and returns a new one; nothing here is ever changed in place. `None` means "not known"
or "not judged" and is never read as 0 or False. The small types beside the five (Message, Image, UnitTest, Span)
are what they are made of.

Usage is an algebra that mirrors the DSL: `a + b` is work done one after the other, `a | b` is work done side by
side. Both add up tokens, calls and dollars; they differ in `critical_s`, the seconds on the longest chain of
dependent work, which adds in sequence and takes the maximum in parallel. So latency is what the pipeline needs
with enough servers, whatever the machine's queue was, and it is the same for cached answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

Number = TypeVar("Number", int, float)

Role = Literal["system", "user", "assistant"]
Kind = Literal["code", "maths", "text"]
"""How a problem is judged: by running code, by comparing a final answer, or by reading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """A picture in a problem, passed to every layer's model untouched."""

    url: str
    """An http(s) or `data:` URL."""
    detail: str | None = None
    """The provider's detail setting; None leaves it out."""


Content = str | tuple[str | Image, ...]
"""Plain text, or text and images in the order in which the model is to see them."""


def text_of(content: Content) -> str:
    """Return the text of some content, without its images."""
    return content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Role
    content: Content


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is to be solved, as a solver may see it. The answer key is never in here."""

    id: str
    """Unique in its problem set."""
    prompt: Content
    """The statement, as the last user turn."""
    kind: Kind = "text"
    entry_point: str | None = None
    """For code: the function that tests call."""
    history: tuple[Message, ...] = ()
    """Turns before the prompt, a system message among them."""
    difficulty: int | None = None
    """1 (easiest) upwards, where the problem set states it; layers must not read it."""

    @property
    def text(self) -> str:
        """Return the statement's text, without images."""
        return text_of(self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What some work took. `a + b`: one after the other; `a | b`: side by side.

    Tokens, calls and dollars say what the work takes, whoever pays; the `saved_*` fields say how much of it came
    from a cache and was not paid again. `None` tokens or dollars mean that an endpoint did not say.
    """

    calls: int = 0
    """Completions asked for; one request with n=8 is 8 calls."""
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0
    """Generated tokens, hidden thinking included."""
    reasoning_tokens: int | None = 0
    """The share of `completion_tokens` that was hidden thinking."""
    cached_prompt_tokens: int | None = 0
    """The share of `prompt_tokens` that the endpoint's prefix cache served."""
    cost_usd: float | None = 0.0
    critical_s: float = 0.0
    """Seconds on the longest chain of dependent calls and sandbox runs, waiting for rate limits left out."""
    wait_s: float = 0.0
    """Seconds spent on rate limits, retries and client-side queues, summed over calls."""
    attempts: int = 0
    """Requests sent, failed ones included; 0 when a cache answered."""
    saved_calls: int = 0
    saved_tokens: int | None = 0
    saved_usd: float | None = 0.0

    def __add__(self, other: Usage) -> Usage:
        return _combine(self, other, self.critical_s + other.critical_s)

    def __or__(self, other: Usage) -> Usage:
        return _combine(self, other, max(self.critical_s, other.critical_s))

    @property
    def tokens(self) -> int | None:
        """Return prompt plus completion tokens."""
        return _sum(self.prompt_tokens, self.completion_tokens)

    @property
    def paid_calls(self) -> int:
        """Return the calls that no cache answered."""
        return self.calls - self.saved_calls

    @property
    def paid_tokens(self) -> int | None:
        """Return the tokens that no cache answered."""
        return None if self.tokens is None or self.saved_tokens is None else self.tokens - self.saved_tokens

    @property
    def paid_usd(self) -> float | None:
        """Return the dollars that were really spent."""
        return None if self.cost_usd is None or self.saved_usd is None else self.cost_usd - self.saved_usd


def _sum(a: Number | None, b: Number | None) -> Number | None:
    return None if a is None or b is None else a + b


def _combine(a: Usage, b: Usage, critical_s: float) -> Usage:
    return Usage(
        calls=a.calls + b.calls,
        prompt_tokens=_sum(a.prompt_tokens, b.prompt_tokens),
        completion_tokens=_sum(a.completion_tokens, b.completion_tokens),
        reasoning_tokens=_sum(a.reasoning_tokens, b.reasoning_tokens),
        cached_prompt_tokens=_sum(a.cached_prompt_tokens, b.cached_prompt_tokens),
        cost_usd=_sum(a.cost_usd, b.cost_usd),
        critical_s=critical_s,
        wait_s=a.wait_s + b.wait_s,
        attempts=a.attempts + b.attempts,
        saved_calls=a.saved_calls + b.saved_calls,
        saved_tokens=_sum(a.saved_tokens, b.saved_tokens),
        saved_usd=_sum(a.saved_usd, b.saved_usd),
    )


def beside(usages: Iterable[Usage]) -> Usage:
    """Return the usage of works done side by side."""
    total = Usage()
    for usage in usages:
        total = total | usage
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judged outcome of a candidate."""

    passed: bool | None
    """None: not judged (a judge that was truncated, down, or had nothing to judge by)."""
    by: str
    """The label of the layer, or the name of the grader, that judged."""
    reason: str = ""
    score: float | None = None
    """A number in [0, 1] where the judge gives one: the share of tests passed, a probability."""
    tests: tuple[bool | None, ...] = ()
    """One outcome per test of `Trace.tests`, in its order; None where a test was not run or not judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One proposed answer moving through layers."""

    id: str
    """Unique in its trace: `label#index`, with `@round` before the `#` from the second round on."""
    text: str
    model: str = ""
    """The name of the model that wrote it."""
    parents: tuple[str, ...] = ()
    """The ids of the candidates that it was made from."""
    critique: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    score: float | None = None
    """The newest ranker's or verifier's score in [0, 1]."""
    finish_reason: str | None = None
    temperature: float | None = None
    completion_tokens: int | None = None
    """Generated tokens of its call, hidden thinking included."""
    error: str | None = None
    """Why there is no text: a failed call is data, not an exception."""

    @property
    def passed(self) -> bool | None:
        """Return the newest verdict that judged anything, or None."""
        for verdict in reversed(self.verdicts):
            if verdict.passed is not None:
                return verdict.passed
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitTest:
    """One check of an answer: a function call with its expected value, or a sentence that a judge reads."""

    text: str
    """The test as written: `assert f(2) == 4`, or "The answer states the units"."""
    source: Literal["example", "model"]
    """Where it comes from: the problem's own examples, or a model."""
    function: str | None = None
    """The function to call; None for a sentence."""
    args: str = "()"
    """A Python literal of the positional arguments' tuple."""
    kwargs: str = "{}"
    """A Python literal of the keyword arguments' dict."""
    expected: str = "None"
    """A Python literal of the value that the call must return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One layer's work on one trace: what it took and how its replies read."""

    layer: str
    kind: str
    usage: Usage = Usage()
    parses: tuple[tuple[str, int], ...] = ()
    """Replies by parse status: ok, repaired, failed, truncated, call_failed."""
    notes: tuple[str, ...] = ()
    """Decisions a reader should see, such as `all_rejected: best_effort`."""
    round: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The record of one solve: the problem, every candidate, every test, what each layer took."""

    problem: Problem
    candidates: tuple[Candidate, ...] = ()
    """The live ones; the best is first once something has ordered them."""
    retired: tuple[Candidate, ...] = ()
    """Those that were live and are no longer, oldest first."""
    tests: tuple[UnitTest, ...] = ()
    spans: tuple[Span, ...] = ()
    usage: Usage = Usage()
    round: int = 0
    """0 in the first pass, n in the n-th repetition of a refine loop."""
    stop: Literal["budget", "abstained"] | None = None
    """Why the solve ended before its last layer, or without an answer."""
    stop_reason: str = ""

    @property
    def answer(self) -> Candidate | None:
        """Return the best live candidate that has a text; None when the pipeline abstained."""
        if self.stop == "abstained":
            return None
        return next((candidate for candidate in self.candidates if candidate.error is None), None)

    @property
    def usable(self) -> tuple[Candidate, ...]:
        """Return the live candidates whose call did not fail."""
        return tuple(candidate for candidate in self.candidates if candidate.error is None)

    @property
    def everyone(self) -> tuple[Candidate, ...]:
        """Return every candidate there ever was, each once, retired ones first."""
        live = {candidate.id for candidate in self.candidates}
        return tuple(c for c in self.retired if c.id not in live) + self.candidates

    def name(self, label: str, index: int) -> str:
        """Return the id of a layer's index-th candidate in this round."""
        return f"{label}#{index}" if self.round == 0 else f"{label}@{self.round}#{index}"

    def spend(self, span: Span) -> Trace:
        """Return the trace after a layer's work: its span recorded, its usage added in sequence."""
        return replace(self, spans=(*self.spans, replace(span, round=self.round)), usage=self.usage + span.usage)

    def advance(self, candidates: tuple[Candidate, ...]) -> Trace:
        """Return the trace with new live candidates; those that are no longer live are retired."""
        live = {candidate.id for candidate in candidates}
        gone = tuple(candidate for candidate in self.candidates if candidate.id not in live)
        return replace(self, candidates=candidates, retired=(*self.retired, *gone))
