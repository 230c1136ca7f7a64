"""All cases, in the order of the corpus."""

from __future__ import annotations

from benchmarks.adversary import controls, escapes, fakes, resources
from benchmarks.adversary.case import Case

CASES: tuple[Case, ...] = (*resources.CASES, *escapes.CASES, *fakes.CASES, *controls.CASES)
