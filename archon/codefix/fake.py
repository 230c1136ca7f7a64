"""A step for `ScriptedSandbox` that answers a `run_tests` job, for tests of what is built on test runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from archon.codefix.types import TestOutcome
from archon.sandbox.protocol import Job, Outcome

_CANARIES = ("failed", "failed", "passed")
"""What the tests of a canary file come to, in their order."""


def reporting(
    outcomes: Mapping[str, TestOutcome], *, output: str = "", wall_s: float = 0.0
) -> Callable[[Job], Outcome]:
    """Return a step that answers as a suite would whose tests came out like this.

    A name without `::` is a file that could not be read as tests, and must be an `error`; `missing` tests are left out.
    """

    def step(job: Job) -> Outcome:
        request: dict[str, Any] = json.loads(job.stdin)
        worker = request["worker"]
        asked = worker["ids"] or list(outcomes)
        broken = [name for name in outcomes if "::" not in name]
        found = [name for name in outcomes if "::" in name and outcomes[name] != "missing"]
        ran = [name for name in found if name in asked or name.partition("::")[0] in asked]
        frames: list[dict[str, Any]] = [{"ready": "0"}, {"collected": ran, "broken": broken}]
        for name in ran:
            frames += [{"start": name}, {"test": name, "outcome": outcomes[name]}]
        files = {path.rpartition("/")[2]: content.decode("utf-8", "replace") for path, content in job.files}
        for file in worker["canary_files"]:
            names = re.findall(r"^def (test_\w+)", files[file], re.MULTILINE)
            frames += [{"test": name, "outcome": said} for name, said in zip(names, _CANARIES, strict=True)]
        code = int(bool(broken) or any(outcomes[name] in ("failed", "error") for name in ran))
        frames.append({"end": code})
        lines = [f"{worker['word']} {json.dumps({'n': at, **frame})}" for at, frame in enumerate(frames)]
        lines.append(f"{request['nonce']} {json.dumps({'exit': code, 'changed': []})}")
        stdout = "".join(f"\n{line}\n" for line in lines).encode()
        return Outcome(end="exited", exit_code=0, stdout=stdout, stderr=output.encode(), wall_s=wall_s)

    return step
