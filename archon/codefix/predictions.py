"""Predictions and reports in SWE-bench's shapes, so that its users' tools read what is written here.

Predictions are rows of `instance_id`, `model_name_or_path` and `model_patch`. A report of one instance lies in a folder
of its id, a report of a run in `MODEL.RUN.json`. A run report divides the instances:

    total = completed + empty patch + infrastructure failure + error + incomplete, and completed = resolved + unresolved

so that whatever went wrong stays in the denominator. Sources: the published `schema_version` 2 of run reports.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from archon.codefix._records import records, text_field
from archon.codefix._write import write_atomically
from archon.codefix.types import TestOutcome
from archon.errors import TaskError

SCHEMA_VERSION = 2
_NEEDED = ("instance_id", "model_name_or_path", "model_patch")

Resolution = Literal["RESOLVED_FULL", "RESOLVED_PARTIAL", "RESOLVED_NO"]
"""`RESOLVED_PARTIAL`: some, not all, of the failing tests pass, and nothing else broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One proposed patch, as everybody's tools exchange it."""

    instance_id: str
    model_name_or_path: str
    model_patch: str | None
    """A unified diff; None or empty: there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """What became of one prediction."""

    instance_id: str
    patch: str | None
    applied: bool = False
    fail_to_pass: tuple[str, ...] = ()
    """The ids that had to pass; with no tests at all nothing is resolved, because nothing was shown."""
    pass_to_pass: tuple[str, ...] = ()
    outcomes: tuple[tuple[str, TestOutcome], ...] = ()
    infra_failure: str = ""
    """Why nothing is known of the patch: the engine failed. Not resolved, and counted."""
    ambiguous_failure: str = ""
    """Why a failure may be the environment's and not the patch's; unresolved all the same."""
    reason: str = ""
    """Why it was not applied, or what else there is to say."""

    @property
    def resolution(self) -> Resolution:
        """Return how far the instance is resolved.

        A failing test that is skipped has failed; a test that passed before and is skipped now has not.
        """
        status = _tests_status(self)
        fixed, kept = status["FAIL_TO_PASS"], status["PASS_TO_PASS"]
        if not self.applied or self.infra_failure or kept["failure"] or not (fixed["success"] or kept["success"]):
            return "RESOLVED_NO"
        if not fixed["failure"]:
            return "RESOLVED_FULL"
        return "RESOLVED_PARTIAL" if fixed["success"] else "RESOLVED_NO"

    @property
    def resolved(self) -> bool:
        """Return whether every test asked for passed."""
        return self.resolution == "RESOLVED_FULL"


def read_predictions(path: Path) -> tuple[Prediction, ...]:
    """Return the predictions of a file: JSON lines, a list, or an object keyed by instance id. Other keys are allowed.

    Raises:
        TaskError: it cannot be read, a key is missing, or an id is there twice.
    """
    found: dict[str, Prediction] = {}
    for place, row in records(path):
        if "model_patch" not in row:
            raise TaskError(f"{place}: no 'model_patch'; a prediction needs {', '.join(_NEEDED)}")
        patch = row["model_patch"]
        if patch is not None and not isinstance(patch, str):
            raise TaskError(f"{place}: model_patch {str(patch)[:60]!r} is not a text")
        prediction = Prediction(
            instance_id=text_field(place, row, "instance_id", needed=_NEEDED),
            model_name_or_path=text_field(place, row, "model_name_or_path", needed=_NEEDED),
            model_patch=patch,
        )
        if prediction.instance_id in found:
            raise TaskError(f"{place}: the id {prediction.instance_id!r} is there twice; one prediction each")
        found[prediction.instance_id] = prediction
    return tuple(found.values())


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write predictions as JSON lines, in order of their ids."""
    ordered = sorted(predictions, key=lambda prediction: prediction.instance_id)
    rows = ({key: getattr(prediction, key) for key in _NEEDED} for prediction in ordered)
    write_atomically(path, "".join(f"{json.dumps(row)}\n" for row in rows))


def instance_report(graded: Graded) -> dict[str, Any]:
    """Return the published report of one instance, keyed by its id."""
    report: dict[str, Any] = {
        "patch_is_None": graded.patch is None,
        "patch_exists": bool(graded.patch),
        "patch_successfully_applied": graded.applied,
        "resolved": graded.resolved,
        "infra_failure": bool(graded.infra_failure),
    }
    if graded.infra_failure:
        report["infra_failure_reason"] = graded.infra_failure
    if graded.applied and not graded.infra_failure:
        report["tests_status"] = _tests_status(graded)
    return {graded.instance_id: report}


def _tests_status(graded: Graded) -> dict[str, dict[str, list[str]]]:
    outcomes = dict(graded.outcomes)
    split: dict[str, dict[str, list[str]]] = {}
    for group, ids, good in (
        ("FAIL_TO_PASS", graded.fail_to_pass, ("passed",)),
        ("PASS_TO_PASS", graded.pass_to_pass, ("passed", "skipped")),
    ):
        split[group] = {
            "success": [name for name in ids if outcomes.get(name, "missing") in good],
            "failure": [name for name in ids if outcomes.get(name, "missing") not in good],
        }
    empty: dict[str, list[str]] = {"success": [], "failure": []}
    return {**split, "FAIL_TO_FAIL": empty, "PASS_TO_FAIL": dict(empty)}


def run_report(
    instance_ids: Collection[str], predictions: Iterable[Prediction], graded: Iterable[Graded]
) -> dict[str, Any]:
    """Return the published report of a run.

    A prediction for an instance that is not asked for is left out; one that was not graded, or whose patch was not
    applied, is an error.
    """
    submitted = {each.instance_id: each for each in predictions if each.instance_id in instance_ids}
    by_id = {each.instance_id: each for each in graded}
    groups: dict[str, list[str]] = {name: [] for name in _GROUPS}
    reasons: dict[str, str] = {}
    for identity in sorted(set(instance_ids)):
        prediction, one = submitted.get(identity), by_id.get(identity)
        for name in _groups_of(prediction, one):
            groups[name].append(identity)
        reason = "" if one is None else one.infra_failure or one.ambiguous_failure or one.reason
        if reason and prediction is not None:
            reasons[identity] = reason
    counts = {f"{name}_instances": len(groups[name]) for name in _GROUPS if name != "incomplete"}
    ids = {f"{name}_ids": groups[name] for name in _GROUPS}
    total = {"total_instances": len(set(instance_ids))}
    return {**total, **counts, **ids, "failure_reasons": reasons, "schema_version": SCHEMA_VERSION}


_GROUPS = (
    *("submitted", "completed", "resolved", "unresolved", "infra_failure", "ambiguous_failure", "empty_patch"),
    *("error", "incomplete"),
)


def _groups_of(prediction: Prediction | None, graded: Graded | None) -> tuple[str, ...]:
    if prediction is None:
        return ("incomplete",)
    if not prediction.model_patch or not prediction.model_patch.strip():
        return ("submitted", "empty_patch")
    if graded is not None and graded.infra_failure:
        return ("submitted", "infra_failure")
    if graded is None or not graded.applied:
        return ("submitted", "error")
    if graded.resolved:
        return ("submitted", "completed", "resolved")
    return ("submitted", "completed", "unresolved", *(("ambiguous_failure",) if graded.ambiguous_failure else ()))


def write_instance_report(folder: Path, graded: Graded) -> Path:
    """Write `ID/report.json` below a folder, and return its path; a `/` in the id is written as `__`."""
    path = folder / _name(graded.instance_id) / "report.json"
    write_atomically(path, json.dumps(instance_report(graded), indent=2) + "\n")
    return path


def write_run_report(folder: Path, report: Mapping[str, Any], *, model: str, run_id: str) -> Path:
    """Write `MODEL.RUN.json` in a folder, and return its path; a `/` in a name is written as `__`."""
    path = folder / f"{_name(model)}.{_name(run_id)}.json"
    write_atomically(path, json.dumps(report, indent=4) + "\n")
    return path


def _name(given: str) -> str:
    name = given.replace("/", "__")
    if name in ("", ".", "..") or not name.isprintable() or len(name.encode("utf-8", "replace")) > 200:
        raise TaskError(f"{given[:80]!r} cannot name a file; valid: up to 200 printable characters")
    return name
