"""Runs untrusted programs under limits, and judges candidates by what they return or by whether their tests ran.

`open_sandbox` finds an engine. `run_calls` judges calls outside the sandbox (level A); `run_program` runs tests that
are code in the candidate's own process (level C, a lower trust). docs/sandbox.md says what each engine covers.
"""

from archon.sandbox.auto import open_sandbox
from archon.sandbox.program import ProgramResult, run_program
from archon.sandbox.protocol import Job, Limits, Outcome, Sandbox
from archon.sandbox.structured import CallReport, CallResult, run_calls

__all__ = [
    "CallReport",
    "CallResult",
    "Job",
    "Limits",
    "Outcome",
    "ProgramResult",
    "Sandbox",
    "open_sandbox",
    "run_calls",
    "run_program",
]
