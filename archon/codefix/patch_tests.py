"""A layer that judges candidate patches by the repository's own visible tests, and orders them.

It stands behind any pipeline that writes patches: `(pipeline >> PatchTests(...)).refine(max_rounds=3)` is the whole fix
loop, because a refine loop shows its generator the best answer so far and why it was not accepted, and ends at the
first one that is. Equal patches are tested once. No call to a model is made.

The order: passed, then by the share of failing tests mended, then by fewest tests broken, then by dual execution
agreement (Chen et al. 2022): patches that pass exactly the same tests vouch for each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from archon.codefix.answer import read_answer
from archon.codefix.apply import apply
from archon.codefix.baseline import Baseline
from archon.codefix.policy import DEFAULT_POLICY, PatchPolicy
from archon.codefix.repository_tests import SUITE_LIMITS, run_tests
from archon.codefix.types import Instance, Patch, Refused, TestRun
from archon.errors import ConfigError
from archon.layers.dual_agreement import dual_agreement
from archon.layers.views import REASON_CHARACTERS
from archon.pipeline.compose import gather
from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan, Shape
from archon.sandbox.protocol import Limits, Sandbox
from archon.types import Candidate, Span, Trace, Usage, Verdict

_SHOWN_FAILURES = 8
_SHOWN_IDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An instance with what its tests said before anything was fixed."""

    instance: Instance
    baseline: Baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What became of one candidate's patch."""

    patch: Patch | Refused
    run: TestRun | None = None
    """None: the patch was refused, or there are no visible tests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchTests(Leaf):
    """Gives each candidate a verdict by the tests that a solver may see, and puts the best first.

    A refused patch has failed, with the reason for the next round to read. Where the engine failed, or there are no
    visible tests, nothing is judged.
    """

    kind: ClassVar[str] = "patch_tests"

    cases: Mapping[str, Case] = field(default_factory=dict)
    """By problem id."""
    policy: PatchPolicy = DEFAULT_POLICY
    """What a patch may change."""
    limits: Limits = SUITE_LIMITS
    """For each run of the suite."""
    sandbox: Sandbox | None = None
    """None takes the run's."""

    @property
    def needs_sandbox(self) -> bool:
        """Return that it runs tests."""
        return True

    async def __call__(self, trace: Trace) -> Trace:
        """Return the trace with verdicts on its candidates, the best first.

        Raises:
            ConfigError: there is no sandbox, or the problem is none of the cases.
        """
        case = self.cases.get(trace.problem.id)
        if case is None or self.sandbox is None:
            missing = "a sandbox" if case is not None else f"a code-fix instance {trace.problem.id!r}"
            raise ConfigError(f"{self.name} needs {missing}: run the pipeline with one")
        todo = [candidate for candidate in trace.usable if not _judged_by(candidate, self.name)]
        tried = await self._try(self.sandbox, case, [candidate.text for candidate in todo])
        judged = {c.id: _verdict(case.baseline, one, self.name) for c, one in zip(todo, tried, strict=True)}
        marked = tuple(_with(c, judged[c.id]) if c.id in judged else c for c in trace.candidates)
        runs = {c.id: one.run for c, one in zip(todo, tried, strict=True)}
        span = Span(
            layer=self.name,
            kind=self.kind,
            usage=Usage(critical_s=max((run.wall_s for run in runs.values() if run is not None), default=0.0)),
            notes=_notes(tried),
        )
        return trace.advance(_ordered(marked, case.baseline, runs)).spend(span)

    def plan_rows(self, shape: Shape) -> tuple[tuple[LayerPlan, ...], Shape]:
        """Return no calls; every candidate stays live."""
        return (LayerPlan.of(self.name, self.kind, calls=0),), shape

    async def _try(self, sandbox: Sandbox, case: Case, texts: Sequence[str]) -> list[Tried]:
        """Read each answer and test each distinct patch once."""
        instance = case.instance
        patches = [read_answer(text, instance.tree, self.policy, entry_point=instance.entry_point) for text in texts]
        distinct = {patch.text: patch for patch in patches if isinstance(patch, Patch)}
        results = await gather([self._run(sandbox, case, patch) for patch in distinct.values()])
        by_text = dict(zip(distinct, results, strict=True))
        return [by_text[patch.text] if isinstance(patch, Patch) else Tried(patch=patch) for patch in patches]

    async def _run(self, sandbox: Sandbox, case: Case, patch: Patch) -> Tried:
        instance, ids = case.instance, case.baseline.visible.ids
        tree = apply(instance.tree, patch)
        if isinstance(tree, Refused) or not ids:
            return Tried(patch=tree if isinstance(tree, Refused) else patch)
        run = await run_tests(
            sandbox, tree, pristine=instance.tree, command=instance.test_command, ids=ids, limits=self.limits
        )
        return Tried(patch=patch, run=run)


def _judged_by(candidate: Candidate, name: str) -> bool:
    return any(verdict.by == name and verdict.passed is not None for verdict in candidate.verdicts)


def _with(candidate: Candidate, verdict: Verdict) -> Candidate:
    return replace(candidate, verdicts=(*candidate.verdicts, verdict), score=verdict.score)


def _verdict(baseline: Baseline, tried: Tried, name: str) -> Verdict:
    if isinstance(tried.patch, Refused):
        return Verdict(passed=False, by=name, reason=f"{tried.patch.status}: {tried.patch.reason}")
    run, must = tried.run, baseline.visible
    if run is None:
        return Verdict(passed=None, by=name, reason="there are no visible tests")
    if run.status == "infra_error":
        return Verdict(passed=None, by=name, reason=f"the sandbox failed: {run.detail}")
    passed = run.status == "finished" and set(must.ids) <= run.passed
    share = len(run.passed & set(must.ids)) / len(must.ids)
    return Verdict(passed=passed, by=name, reason=why(run, must.ids), score=1.0 if passed else min(share, 0.999))


def why(run: TestRun, ids: Sequence[str]) -> str:
    """Return what a solver should read of a run: how many tests pass, which do not, and what their assertions said."""
    wrong = [name for name in ids if name not in run.passed]
    if not wrong and run.status == "finished":
        return "all tests passed"
    lines = [f"{len(ids) - len(wrong)} of {len(ids)} tests pass."]
    if run.status != "finished":
        lines.append(f"The run ended with: {run.status}. {run.detail}".strip())
    lines += [f"failed: {name}" for name in wrong[:_SHOWN_IDS]]
    said = [line.rstrip() for line in run.output.splitlines() if line.startswith(("E ", ">"))]
    lines += said[:_SHOWN_FAILURES]
    return "\n".join(lines)[:REASON_CHARACTERS]


def _ordered(
    candidates: tuple[Candidate, ...], baseline: Baseline, runs: Mapping[str, TestRun | None]
) -> tuple[Candidate, ...]:
    """Return the candidates best first; refused ones have no score and come last."""
    must, ids = baseline.visible, baseline.visible.ids
    ran = [c.id for c in candidates if runs.get(c.id) is not None]
    passed = {name: run.passed for name, run in runs.items() if run is not None}
    agreed = dual_agreement([tuple(test in passed[name] for test in ids) for name in ran]).scores if ids else ()
    vouched = {name: score or 0.0 for name, score in zip(ran, agreed, strict=bool(ids))}

    def merit(candidate: Candidate) -> tuple[int, float, int, float]:
        rank = 3 if candidate.error is not None else {True: 0, None: 1, False: 2}[candidate.passed]
        seen = passed.get(candidate.id)
        if seen is None:
            return rank, 1.0 if candidate.score is None else -candidate.score, 0, 0.0
        mended = len(seen & set(must.fail_to_pass)) / max(1, len(must.fail_to_pass))
        broken = len(set(must.pass_to_pass) - seen)
        return rank, -mended, broken, -vouched.get(candidate.id, 0.0)

    return tuple(sorted(candidates, key=merit))


def _notes(tried: Sequence[Tried]) -> tuple[str, ...]:
    refused = [one.patch.status for one in tried if isinstance(one.patch, Refused)]
    ended = [one.run.status for one in tried if one.run is not None and one.run.status != "finished"]
    counted = [*refused, *ended]
    return tuple(f"{status}: {counted.count(status)} of {len(tried)} patches" for status in dict.fromkeys(counted))
