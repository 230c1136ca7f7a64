"""Every error Archon raises, in one tree.

    ArchonError
    ├── ConfigError (ValueError)            a pipeline, task file or setting that cannot be understood
    │   ├── OrderError                      layers in an order that the composition rules refuse
    │   └── MissingExtra (ImportError)      a feature whose packages are not installed
    ├── BudgetError (RuntimeError)
    │   ├── BudgetExceeded                  the next call could pass a limit; it was not made
    │   └── UnknownPrice                    a dollar budget over a model with no price
    ├── ModelError (RuntimeError)           an endpoint that did not give a completion
    │   ├── ModelUnavailable  (retryable)   connection refused, HTTP 5xx
    │   │   └── AnswerLost    (retryable)   time-out, connection cut, unreadable answer: it may have been billed
    │   ├── RateLimited       (retryable)   HTTP 429; `retry_after_s` when the endpoint says it
    │   ├── ModelRefused                    HTTP 4xx: bad request, unknown model
    │   ├── AuthError                       HTTP 401 or 403
    │   ├── QuotaExhausted                  HTTP 402 or a terminal quota answer: do not spawn more work
    │   └── ScriptExhausted                 a scripted model was asked more often than its script allows
    ├── ServingError (RuntimeError)         a local server or model file that cannot be used
    │   └── ChecksumError                   a model file whose SHA-256 is not the pinned one
    ├── SandboxError (RuntimeError)
    │   ├── NoSandbox                       no engine on this machine can contain untrusted code
    │   └── SandboxFailed     (retryable)   the engine failed, not the program inside it
    ├── TaskError (ValueError)              a problem set that cannot be read
    └── RunError (RuntimeError)
        └── JournalError                    a run folder that is damaged, full or held by another process

A failed candidate is data on the trace; these are for broken programs, inputs and endpoints.
Each class also inherits the builtin it refines, pickles, and says whether a retry can help.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable
from typing import Self


class ArchonError(Exception):
    """Root of the tree; the message is one line that a user can act on."""

    retryable: bool = False


class ConfigError(ArchonError, ValueError):
    """A pipeline, task file or setting that cannot be understood."""


class OrderError(ConfigError):
    """Layers in an order that the composition rules refuse."""


class MissingExtra(ConfigError, ImportError):
    """A feature whose optional packages are not installed."""


class BudgetError(ArchonError, RuntimeError):
    """A limit on spending that cannot be kept."""


class BudgetExceeded(BudgetError):
    """The next call could pass a limit, so it was not made."""


class UnknownPrice(BudgetError):
    """A dollar budget over a model whose price is not known."""


class ModelError(ArchonError, RuntimeError):
    """An endpoint that did not give a completion, and what was spent before that was clear."""

    attempts: int = 1
    """Requests sent, failed retries included; 0 when the failure of another request decided this one."""
    wait_s: float = 0.0
    """Seconds that the attempts and the waits between them took, summed over requests."""
    may_be_billed: bool = False
    """Whether tokens may be billed for it; how many is then not known."""

    def with_spent(self, *, attempts: int = 0, wait_s: float = 0.0, may_be_billed: bool = False) -> Self:
        """Return the same error with another account of what was spent; of nothing, unless told."""
        error = copy.copy(self).with_traceback(self.__traceback__)
        error.attempts, error.wait_s, error.may_be_billed = attempts, wait_s, may_be_billed
        return error


class ModelUnavailable(ModelError):
    """Connection refused, or HTTP 5xx: nothing was generated."""

    retryable = True


class AnswerLost(ModelUnavailable):
    """The request went out and no answer that can be read came back: ours or a gateway's time-out, a cut connection."""

    may_be_billed = True


class RateLimited(ModelError):
    """HTTP 429. `retry_after_s` is None when the endpoint does not say."""

    retryable = True

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message, retry_after_s)
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return str(self.args[0])


class ModelRefused(ModelError):
    """HTTP 4xx: the request itself is not acceptable to the endpoint."""


class AuthError(ModelError):
    """HTTP 401 or 403."""


class QuotaExhausted(ModelError):
    """A terminal quota or payment answer: further calls cannot succeed."""


class ScriptExhausted(ModelError):
    """A scripted model was asked more often than its script allows."""


class ServingError(ArchonError, RuntimeError):
    """A local server or model file that cannot be used."""


class ChecksumError(ServingError):
    """A model file whose SHA-256 is not the pinned one."""


class SandboxError(ArchonError, RuntimeError):
    """Untrusted code could not be run."""


class NoSandbox(SandboxError):
    """No engine on this machine can contain untrusted code."""


class SandboxFailed(SandboxError):
    """The engine failed, not the program inside it."""

    retryable = True


class TaskError(ArchonError, ValueError):
    """A problem set that cannot be read."""


class RunError(ArchonError, RuntimeError):
    """A run that cannot go on."""


class JournalError(RunError):
    """A run folder that is damaged, full, or held by another process."""


def nearest(given: str, valid: Iterable[str]) -> str:
    """Say what would be valid, nearest name first: `did you mean 'top_k'? valid: …`."""
    names = sorted(valid)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}valid: {', '.join(names) or '(none)'}"
