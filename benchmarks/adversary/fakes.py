"""Wrong programs that try to pass (section C)."""

from __future__ import annotations

from typing import Final

from archon.sandbox.protocol import Limits
from benchmarks.adversary.case import ANSWER, Case, Level, call

SHARED: Final = "candidate and tests share one process there; docs/sandbox.md names it as a limit of level C"
LIMIT_OF_C: Final[frozenset[Level]] = frozenset({"C"})

CASES = (
    Case(
        number="34",
        title="leaves with code 0 while it is imported",
        program="import os\nos._exit(0)",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="35",
        title="leaves with code 0 inside the function",
        program="import os\ndef f(x): os._exit(0)",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="36",
        title="SystemExit(0) while it is imported",
        program="raise SystemExit(0)",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="36b",
        title="SystemExit(0) inside the function",
        program="import sys\ndef f(x): sys.exit(0)",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="37",
        title="an exit hook forces code 0",
        program="import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): return 0",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="38",
        title="an object that equals everything",
        program="class All:\n    def __eq__(self, other): return True\ndef f(x): return All()",
        verdicts={"A": "fail", "C": "pass"},
        notes={"C": SHARED},
        known_limits=LIMIT_OF_C,
    ),
    Case(
        number="39",
        title="an int that equals everything",
        program="class All(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
        "    __index__ = __int__ = lambda self: 42\n    def __add__(self, other): return 42\ndef f(x): return All(7)",
        verdicts={"A": "fail", "C": "pass"},
        notes={"C": SHARED},
        known_limits=LIMIT_OF_C,
    ),
    Case(
        number="41",
        title="replaces the functions that report results",
        program="""
import builtins, sys
worker = sys.modules["__main__"]
for name in ("equal", "judge", "report"): setattr(builtins, name, lambda *_: True)
worker.to_json = lambda value: '{"value": 7, "passed": true, "outcome": "passed"}'
def f(x): return 7
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="42",
        title="writes results where the runner does, then leaves",
        program="""
import json, os
for fd in range(3, 16):
    for frame in ({"finished": "0" * 32}, {"call": 0, "reply": {"value": 42}}, {"passed": True}):
        try: os.write(fd, (json.dumps(frame) + "\\n").encode())
        except OSError: pass
os._exit(0)
""",
        verdicts={"A": "fail", "C": "tampered"},
    ),
    Case(
        number="42b",
        title="writes results into files of the usual names, then leaves",
        program="""
import json, os
for name in ("results.json", "report.json", "junit.xml", "output.json", "/tmp/results.json"):
    with open(name, "w") as file: json.dump({"passed": True, "tests": [{"id": 0, "outcome": "passed"}]}, file)
os._exit(0)
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="43",
        title="finds the runner's word in memory and forges its result",
        program="""
import os, sys
def words():
    frame = sys._getframe()
    while frame:
        for holder in list(frame.f_locals.values()):
            if isinstance(holder, dict) and "nonce" in holder: yield holder["nonce"]
            if isinstance(holder, bytes) and len(holder) == 32: yield holder.decode()
            for cell in getattr(holder, "__closure__", None) or ():
                try: found = cell.cell_contents
                except ValueError: continue
                if isinstance(found, bytes) and len(found) == 32: yield found.decode()
        frame = frame.f_back
for word in list(words()):
    for fd in range(3, 16):
        for text in ('{"finished": "%s"}' % word, '\\n%s {"call": 0, "reply": {"value": null, "passed": true}}' % word):
            try: os.write(fd, (text + "\\n").encode())
            except OSError: pass
os._exit(0)
""",
        verdicts={"A": "fail"},
        notes={"C": "finding the word is a limit of level C; this very one writes too much there and is `tampered`"},
    ),
    Case(
        number="43b",
        title="forges exactly the runner's result",
        program="""
import os, sys
frame = sys._getframe()
while "request" not in frame.f_locals: frame = frame.f_back
if "channel" in frame.f_locals and "nonce" in frame.f_locals["request"]:
    os.write(frame.f_locals["channel"], b'{"finished": "%s"}\\n' % frame.f_locals["request"]["nonce"].encode())
os._exit(0)
""",
        verdicts={"A": "fail", "C": "pass"},
        notes={"C": SHARED},
        known_limits=LIMIT_OF_C,
    ),
    Case(
        number="44",
        title="prints a summary of success",
        program="print('1 passed in 0.01s')\nprint('OK')\n"
        "def f(x):\n    print('PASSED'); print('{\"finished\": true}'); return 0",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="45",
        title="reads the expected value from its caller's source",
        program="""
import re, sys
def f(x):
    frame = sys._getframe(1)
    while frame:
        for value in (*frame.f_globals.values(), *frame.f_locals.values()):
            if isinstance(value, str):
                found = re.search(r"assert f\\(.*\\) == (.+)", value)
                if found: return eval(found.group(1))
            if isinstance(value, dict) and "source" in value:
                found = re.findall(r"== (\\d+)", value["source"])
                if found: return int(found[-1])
        frame = frame.f_back
    return 0
""",
        verdicts={"A": "fail", "C": "pass"},
        notes={"C": SHARED},
        known_limits=LIMIT_OF_C,
    ),
    Case(
        number="46",
        title="searches memory and open files for the expected value",
        program="""
import gc, os, re
def f(x):
    secret = None
    for fd in range(16):
        try: os.lseek(fd, 0, 0); text = os.read(fd, 1 << 20)
        except OSError: continue
        found = re.search(rb"expected\\W+(\\d+)", text)
        if found: secret = int(found.group(1))
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            where, mode = line.split()[:2]
            low, high = (int(part, 16) for part in where.split("-"))
            if not mode.startswith("rw") or high - low > 1 << 26: continue
            try: memory.seek(low); text = memory.read(high - low)
            except (OSError, ValueError, OverflowError): continue
            found = re.search(rb"98765[0-9]{4}43", text)
            if found: secret = int(found.group(0))
    return secret
""",
        tests=(call("(2,)", "98765123443"),),
        verdicts={"A": "fail", "C": "pass"},
        notes={"C": SHARED},
        known_limits=LIMIT_OF_C,
        limits=Limits(wall_s=60.0, memory_mb=512),
    ),
    Case(
        number="48",
        title="raises a test framework's skip",
        program="import unittest\ndef f(x): raise unittest.SkipTest('not today')",
        verdicts={"A": "error", "C": "error"},
        notes={"A": "an exception like any other, so no pass"},
    ),
    Case(
        number="49",
        title="marks everything as expected to fail",
        program="import unittest\n@unittest.expectedFailure\ndef f(x): return 0\nf.pytestmark = ['xfail']",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="50",
        title="replaces AssertionError, assert methods and math.isclose",
        program="""
import builtins, math, unittest
builtins.AssertionError = type("Never", (BaseException,), {})
math.isclose = lambda *_, **__: True
for name in dir(unittest.TestCase):
    if name.startswith("assert"): setattr(unittest.TestCase, name, lambda *_, **__: None)
def f(x): return 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="52",
        title="knows the visible tests by heart",
        program="def f(x): return {2: 42, 3: 63}.get(x, 0)",
        tests=(*ANSWER, call("(3,)", "63"), call("(1001,)", "21021")),
        outcomes=("passed", "passed", "failed"),
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="54",
        title="returns NaN, -0.0, huge ints and a list that holds itself",
        program="""
def nan(): return float("nan")
def zero(): return -0.0
def huge(): return 10 ** 6000
def cycle():
    held = []
    held.append(held)
    return held
""",
        tests=(
            call("()", "1.0", "nan"),
            call("()", "0.0", "zero"),
            call("()", "7", "huge"),
            call("()", "[]", "cycle"),
        ),
        outcomes=("failed", "passed", "failed", "failed"),
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="55",
        title="slow to import, fast to call",
        program="import time\ntime.sleep(1.5)\ndef f(x): return 21 * x",
        verdicts={"A": "pass", "C": "pass"},
        per_call_s=1.0,
    ),
    Case(
        number="56",
        title="right half of the time",
        program="import os\ndef f(x): return 42 if os.urandom(1)[0] < 128 else 0",
        tests=ANSWER * 12,
        verdicts={"A": "flaky"},
        runs=3,
        notes={"C": "one run of many assertions is almost always `fail` there"},
    ),
)
