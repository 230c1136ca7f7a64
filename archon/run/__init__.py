"""Evaluations: run a pipeline over a problem set, journal it, resume it."""

from archon.run.evaluate import EvalOptions, evaluate
from archon.run.journal import Journal, read_run, read_trace
from archon.run.runtime import Runtime

__all__ = ["EvalOptions", "Journal", "Runtime", "evaluate", "read_run", "read_trace"]
