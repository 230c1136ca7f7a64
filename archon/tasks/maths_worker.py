"""The process that compares answers with math-verify: one JSON request a line in, one JSON reply a line out.

Run as a program by `maths_checker.py`. math-verify limits its work with `signal.alarm`, which works in a process's main
thread only, and sympy can hang inside C code where no signal helps: in a process of its own both are harmless.
"""

from __future__ import annotations

import json
import logging
import resource
import signal
import sys

_MEMORY_BYTES = 2_000_000_000
_CPU_S_PER_REQUEST = 20
"""The process dies by SIGVTALRM at this: the last resort when its parent is gone."""


def main() -> None:
    """Answer requests until the input ends."""
    replies = sys.stdout
    sys.stdout = sys.stderr  # a library that prints must not break the protocol
    logging.disable(logging.CRITICAL)
    from math_verify import parse, verify

    # A soft limit on memory: an expression that explodes raises MemoryError here and is a reply like any other.
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))

    def equal(gold: str, answer: str, seconds: int) -> bool:
        parsed = [parse(f"\\boxed{{{text}}}", parsing_timeout=seconds) for text in (gold, answer)]
        return bool(verify(parsed[0], parsed[1], timeout_seconds=seconds))

    replies.write("ready\n")
    replies.flush()
    for line in sys.stdin:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S_PER_REQUEST)
        try:
            reply: dict[str, object] = {"equal": equal(request["gold"], request["answer"], request["seconds"])}
        except Exception as error:  # noqa: BLE001  sympy raises anything; the caller is told
            reply = {"error": f"{type(error).__name__}: {error}"[:300]}
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
