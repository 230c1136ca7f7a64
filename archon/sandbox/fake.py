"""A sandbox for tests of other rooms: runs nothing, gives the outcomes of its script, and fails when it runs out."""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable

from archon.errors import SandboxFailed
from archon.sandbox.protocol import Job, Outcome

Step = Outcome | Callable[[Job], Outcome]
"""What one job gets: a fixed outcome, or one that is made from the job."""


class ScriptedSandbox:
    """Gives its outcomes in order, one per job, and keeps the jobs it was given in `jobs`."""

    engine = "scripted"
    enforces: tuple[str, ...] = ()

    def __init__(self, script: Iterable[Step]) -> None:
        self._script = tuple(script)
        self.jobs: list[Job] = []
        self.closed = False

    async def run(self, job: Job) -> Outcome:
        """Return the next outcome.

        Raises:
            SandboxFailed: more jobs came than the script has outcomes.
        """
        if len(self.jobs) == len(self._script):
            raise SandboxFailed(f"the scripted sandbox has {len(self._script)} outcomes and was asked for one more")
        self.jobs.append(job)
        step = self._script[len(self.jobs) - 1]
        return step if isinstance(step, Outcome) else step(job)

    async def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


def returning(*values: object, wall_s: float = 0.0) -> Callable[[Job], Outcome]:
    """Return a step that answers a `run_calls` job as a candidate whose calls return these values would.

    Values are None, booleans, small integers, strings and lists of these: what JSON writes as itself.
    """

    def step(job: Job) -> Outcome:
        nonce = marshal.loads(job.stdin)["nonce"]  # noqa: S302 -- written by `run_calls` in this process
        frames = [f"{nonce} {json.dumps({'call': i, 'reply': {'value': value}})}" for i, value in enumerate(values)]
        return _exited("\n".join(["", *frames, ""]).encode(), wall_s)

    return step


def finishing(*, wall_s: float = 0.0) -> Callable[[Job], Outcome]:
    """Return a step that answers a `run_program` job as a program that ran to its end would."""

    def step(job: Job) -> Outcome:
        return _exited(json.dumps({"finished": json.loads(job.stdin)["nonce"]}).encode() + b"\n", wall_s)

    return step


def raising(error: str, message: str = "", *, wall_s: float = 0.0) -> Callable[[Job], Outcome]:
    """Return a step that answers a `run_program` job as a program that raised this exception would."""

    def step(job: Job) -> Outcome:
        return _exited(json.dumps({"raised": error, "message": message}).encode() + b"\n", wall_s, exit_code=1)

    return step


def _exited(stdout: bytes, wall_s: float, exit_code: int = 0) -> Outcome:
    return Outcome(end="exited", exit_code=exit_code, stdout=stdout, stderr=b"", wall_s=wall_s)
