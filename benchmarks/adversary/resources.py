"""Programs that take more than they may: time, memory, processes, disk, output (section A)."""

from __future__ import annotations

from archon.sandbox.protocol import Limits
from benchmarks.adversary.case import Case

SHORT = Limits(wall_s=1.5, memory_mb=128, processes=16, disk_mb=16, output_bytes=200_000)
ROOMY = Limits(wall_s=60.0, memory_mb=512, processes=16, disk_mb=16, output_bytes=200_000)
DISCARDED = "at level A what a candidate prints is thrown away inside, so that it can only lose time"
BOMB = "held = []\n{indent}while True: held.append(bytearray(b'x') * (4 << 20))"
FORKS = """
import os, time
def f(x):
    refused = False
    try:
        while True:
            if os.fork() == 0:
                time.sleep(60)
                os._exit(0)
    except OSError:
        refused = True
    return {answer}
"""
LOUD = "import os\ndef f(x):\n    block = b'a' * 65536\n    while True: os.write({fd}, block)"

CASES = (
    Case(
        number="1",
        title="loops for ever",
        program="def f(x):\n    while True: pass",
        verdicts={"A": "timeout", "C": "timeout"},
        limits=SHORT,
        per_call_s=0.3,
    ),
    Case(
        number="2",
        title="sleeps for ever",
        program="import time\ndef f(x):\n    while True: time.sleep(100)",
        verdicts={"A": "timeout", "C": "timeout"},
        limits=SHORT,
        per_call_s=0.3,
    ),
    Case(
        number="3",
        title="waits for input",
        program="def f(x):\n    return input() or 42",
        verdicts={"A": "error", "C": "error"},
    ),
    Case(
        number="4",
        title="allocates until it is killed",
        program="def f(x):\n    " + BOMB.format(indent="    "),
        verdicts={"A": "oom", "C": "oom"},
        met=("oom",),
    ),
    Case(
        number="5",
        title="allocates in a child, answers rightly",
        program="import os\ndef f(x):\n    child = os.fork()\n    if child == 0:\n        "
        + BOMB.format(indent="        ")
        + "\n    status = os.waitpid(child, 0)[1]\n    return 42 if status else 'the child was not killed'",
        verdicts={"A": "fail", "C": "fail"},
        met=("oom",),
        uncontained={"bubblewrap without a control group": "memory in total is not enforced there"},
    ),
    Case(
        number="6",
        title="forks until refused, answers wrongly",
        program=FORKS.format(answer="0 if refused else 42"),
        verdicts={"A": "pids_limit"},
        met=("pids_limit",),
        notes={"C": "a failed assertion is `fail` there; the limit is noted"},
    ),
    Case(
        number="7",
        title="forks until refused, answers rightly",
        program=FORKS.format(answer="42 if refused else 0"),
        verdicts={"A": "pass", "C": "pass"},
        met=("pids_limit",),
    ),
    Case(
        number="9",
        title="fills the working folder with one file",
        program="def f(x):\n    with open('big', 'wb') as file:\n        while True: file.write(bytes(1 << 20))",
        verdicts={"A": "disk_limit", "C": "disk_limit"},
        limits=ROOMY,
    ),
    Case(
        number="10",
        title="fills /tmp and /dev/shm, then answers rightly",
        program="""
def f(x):
    for folder in ("/dev/shm", "/tmp"):
        try:
            with open(folder + "/fill", "wb", buffering=0) as file:
                while True: file.write(bytes(4096))
        except OSError:
            pass
        try:
            with open(folder + "/more", "wb", buffering=0) as file:
                while True: file.write(bytes(4096))
        except OSError:
            pass
    return 42
""",
        verdicts={"A": "disk_limit"},
        met=("disk_limit",),
        limits=ROOMY,
        notes={"C": "nothing looks at the folders there"},
    ),
    Case(
        number="11",
        title="prints without end",
        program=LOUD.format(fd=1),
        verdicts={"A": "timeout", "C": "output_limit"},
        per_call_s=0.3,
        notes={"A": DISCARDED},
    ),
    Case(
        number="11b",
        title="floods the descriptor of its results while it is loaded",
        program="import os\nblock = b'a' * 65536\nwhile True: os.write(3, block)\ndef f(x): return 42",
        verdicts={"A": "output_limit", "C": "output_limit"},
    ),
    Case(
        number="12",
        title="prints to stderr without end",
        program=LOUD.format(fd=2),
        verdicts={"A": "timeout", "C": "output_limit"},
        per_call_s=0.3,
        within_s=8.0,
        notes={"A": DISCARDED},
    ),
    Case(
        number="13",
        title="prints one line of 50 MB, answers rightly",
        program="import sys\ndef f(x):\n    sys.stdout.write('a' * 50_000_000)\n    return 42",
        verdicts={"A": "pass", "C": "output_limit"},
        limits=ROOMY,
        notes={"A": DISCARDED},
    ),
    Case(
        number="14",
        title="many threads, all spinning",
        program="""
import threading
def spin():
    while True: pass
def f(x):
    for _ in range(10): threading.Thread(target=spin).start()
    spin()
""",
        verdicts={"A": "timeout", "C": "timeout"},
        limits=SHORT,
        per_call_s=0.3,
    ),
    Case(
        number="15",
        title="recurses until the interpreter crashes",
        program="import sys\ndef f(x):\n    sys.setrecursionlimit(10**8)\n    return sorted([1], key=lambda _: f(x))",
        verdicts={"A": "error", "C": "error"},
    ),
    Case(
        number="16",
        title="unpacks a bomb in memory",
        program="""
import zlib
def f(x):
    packer = zlib.compressobj()
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(400)) + packer.flush()
    return len(zlib.decompress(bomb))
""",
        verdicts={"A": "oom", "C": "oom"},
        limits=Limits(wall_s=60.0, memory_mb=128, processes=16, disk_mb=16),
    ),
    Case(
        number="17",
        title="opens thousands of files",
        program="def f(x):\n    held = [open('/dev/null') for _ in range(5000)]\n    return 42",
        verdicts={"A": "error", "C": "error"},
    ),
    Case(
        number="18",
        title="ignores every signal that it can, and loops",
        program="""
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def f(x):
    while True: pass
""",
        verdicts={"A": "timeout", "C": "timeout"},
        limits=SHORT,
        per_call_s=0.3,
    ),
    Case(
        number="18b",
        title="never finishes loading",
        program="while True: pass",
        verdicts={"A": "timeout", "C": "timeout"},
        limits=SHORT,
        per_call_s=0.3,
    ),
)
