"""What a report is made from: one record per problem solved, as the journal stores it.

Everything in `archon/report` is a pure function of these records. A record has no text of problems or answers beyond
the normalised final answers that voting needs, so a report can be shared when the problems cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from archon.types import Usage

Status = Literal["answered", "abstained", "budget", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One graded sample of a problem: a generator's candidate, before anything selected among them."""

    correct: bool | None
    """None: not judged."""
    answer: str | None = None
    """The normalised final answer, equal for answers that vote together; None: none could be read."""
    score: float | None = None
    """What a selector that may not see the key gave it: the share of its executed tests, a ranker's score."""
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerUse:
    """One layer's work on one problem, over all its rounds."""

    layer: str
    kind: str
    usage: Usage
    parses: tuple[tuple[str, int], ...] = ()
    """Replies by parse status: ok, repaired, failed, truncated, call_failed."""
    not_judged: int = 0
    """Verdicts of this layer that judged nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One problem solved by one system."""

    system: str
    """The pipeline's name."""
    task: str
    problem_id: str
    difficulty: int | None = None
    status: Status
    correct: bool | None
    """Whether the final answer is right; None: not judged. An abstention or an error is False: no right answer."""
    samples: tuple[Sample, ...] = ()
    usage: Usage = Usage()
    layers: tuple[LayerUse, ...] = ()
    wall_s: float | None = None
    """Seconds this solve took on this machine, queues included; latency proper is `usage.critical_s`."""
    notes: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a run was: enough to repeat it."""

    system: str
    task: str
    pipeline_yaml: str
    pipeline_hash: str
    seed: int
    started_utc: str
    archon_version: str
    machine: str
    """CPU model, cores, memory: no host name."""
    sandbox: str | None = None
    """The engine and what it enforces; None when nothing was executed."""
    parameters: tuple[tuple[str, int], ...] = ()
    """The weights of each layer's model by the layer's label, for FLOPs as 2·N per token; those not known left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run folder's content."""

    info: RunInfo
    records: tuple[Record, ...]
