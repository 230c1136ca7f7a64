"""Right programs that do unusual but honest things, and must pass (sections F and G)."""

from __future__ import annotations

from archon.sandbox.protocol import Limits
from benchmarks.adversary.case import Case, call

CASES = (
    Case(
        number="97",
        title="prints bytes that are no text, NUL, escape codes and false results, answers wrongly",
        program="""
import os
def f(x):
    os.write(1, b"\\xff\\xfe\\x00\\x1b[31m\\n{\\"finished\\": true}\\n>>>>> Start Test Output\\nPASSED f\\n")
    os.write(2, bytes(range(256)))
    return 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="97b",
        title="the same, answers rightly",
        program="import os\ndef f(x):\n    os.write(1, bytes(range(256)) + b'FAILED f\\n')\n    return 42",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="99",
        title="prints `Killed` and `no tests ran`, answers rightly",
        program="def f(x):\n    for text in ('Killed', 'no tests ran in 0.00s', 'MemoryError'): print(text)\n"
        "    return 42",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="105",
        title="uses a subprocess",
        program="""
import subprocess, sys
def f(x):
    done = subprocess.run([sys.executable, "-c", "print(42)"], capture_output=True, text=True, check=True)
    return int(done.stdout)
""",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="106",
        title="uses threads",
        program="""
from concurrent.futures import ThreadPoolExecutor
def f(x):
    with ThreadPoolExecutor(8) as pool: return sum(pool.map(int, "66666666")) - 6
""",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="107",
        title="writes temporary files",
        program="""
import tempfile
def f(x):
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 1_000_000)
        file.seek(0)
        return 42 if len(file.read()) == 1_000_000 else 0
""",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="108",
        title="prints 1 MB of logs",
        program="def f(x):\n    for _ in range(10_000): print('l' * 99)\n    return 42",
        verdicts={"A": "pass", "C": "pass"},
        limits=Limits(wall_s=60.0),
    ),
    Case(
        number="109",
        title="returns an OrderedDict, a named tuple and an int enum",
        program="""
import collections, enum
Pair = collections.namedtuple("Pair", "a b")
def f(x): return collections.OrderedDict(a=1, b=[2])
def g(x): return Pair(1, 2)
def h(x): return enum.IntEnum("Colour", "red green").green
""",
        tests=(call("(1,)", "{'a': 1, 'b': [2]}"), call("(1,)", "(1, 2)", "g"), call("(1,)", "2", "h")),
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="110",
        title="leaves under a main guard only",
        program="import sys\ndef f(x): return 42\nif __name__ == '__main__':\n    sys.exit(f(2))",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="111",
        title="uses 80 % of its memory",
        program="def f(x):\n    held = bytearray(b'x') * (int(0.8 * 256) << 20)\n    return 42 if held[-1] else 0",
        verdicts={"A": "pass", "C": "pass"},
        limits=Limits(wall_s=60.0, memory_mb=256),
        uncontained={
            "bubblewrap without a control group": "address space stands in for memory there, and Python's own counts"
        },
    ),
)
