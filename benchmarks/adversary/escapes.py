"""Programs that try to outlive their job or to reach out of the sandbox (section B).

A program that would get out answers 42, so that `fail` says that it did not; one that must live first shows that its
victim was alive, and answers 42 only then.
"""

from __future__ import annotations

from benchmarks.adversary.case import ANSWER, MARK, Case, call

ALIVE = """
import os, subprocess, time
def f(x):
    # The number is a mark: the machine's own process list is searched for it afterwards.
    victim = subprocess.Popen(["sleep", "@NUMBER@"], start_new_session=True)
    for _ in range(400):
        with open(f"/proc/{victim.pid}/cmdline") as file:
            if file.read().startswith("sleep"): break
        time.sleep(0.01)
    alive = victim.poll() is None and os.getsid(victim.pid) == victim.pid
    return 42 if alive else "the victim never lived"
"""
REACH = """
import socket
def f(x):
    for family, address in {addresses}:
        with socket.socket(family, socket.SOCK_STREAM) as attempt:
            attempt.settimeout(3)
            try:
                attempt.connect(address)
                return 42
            except OSError as error:
                if "timed out" in str(error): return "it was not refused at once"
    return 0
"""

CASES = (
    Case(
        number="19",
        title="a child in a session of its own outlives the answer",
        program=ALIVE.replace("@NUMBER@", MARK),
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="19b",
        title="a double-forked daemon holds the output open",
        program="""
import os, time
def f(x):
    up, word = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(word, b"x")
            os.execvp("sleep", ["sleep", "@MARK@"])
        os._exit(0)
    return 42 if os.read(up, 1) == b"x" else "the daemon never lived"
""",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="21",
        title="a thread that never ends, the answer is right",
        program="import threading, time\ndef f(x):\n    threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "    return 42",
        verdicts={"A": "pass", "C": "pass"},
        notes={"C": "our runner leaves without waiting for threads, so a right answer passes here too"},
    ),
    Case(
        number="22",
        title="connects to a public host",
        program=REACH.format(addresses="[(socket.AF_INET, ('1.1.1.1', 443)), (socket.AF_INET, ('93.184.216.34', 80))]"),
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="23",
        title="connects to the host's gateway, the metadata address and link-local",
        program=REACH.format(
            addresses="[(socket.AF_INET, ('172.17.0.1', 22)), (socket.AF_INET, ('169.254.169.254', 80)), "
            "(socket.AF_INET, ('10.0.2.2', 80)), (socket.AF_INET6, ('fe80::1', 80, 0, 1))]"
        ),
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="24",
        title="binds and calls loopback",
        program="""
import socket, threading
def f(x):
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=lambda: server.accept()[0].sendall(b"own"), daemon=True).start()
    with socket.create_connection(server.getsockname()) as client: return 42 if client.recv(3) == b"own" else 0
""",
        verdicts={"A": "pass", "C": "pass"},
    ),
    Case(
        number="25",
        title="reads other processes' environments and other users' files",
        program="""
import glob, os
def f(x):
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if b"@MARK@" in open(path, "rb").read(): return 42
        except OSError:
            pass
    for path in ("/etc/shadow", "/root/.bashrc", "/root/.ssh/id_rsa", "/proc/1/root/etc/shadow", "@CANARY@"):
        try:
            open(path).read()
            return 42
        except OSError:
            pass
    return 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="26",
        title="returns the keys in its environment",
        program="""
import os
def f(x):
    words = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PROXY")
    return 42 if any(word in name.upper() for name in os.environ for word in words) else 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="27",
        title="looks for the Docker socket",
        program="""
import os
def f(x):
    places = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock")
    return 42 if any(os.path.exists(place) for place in places) else 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="28",
        title="mounts, makes a user namespace, becomes root",
        program="""
import ctypes, os
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0: return 42
    if libc.unshare(0x10000000) == 0 or libc.unshare(0x00020000) == 0 or libc.unshare(0x40000000) == 0: return 42
    try:
        os.setuid(0)
        return 42
    except OSError:
        return 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="28b",
        title="adds a key to the kernel's keyring",
        program="""
import ctypes
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    return 42 if libc.syscall(248, b"user", b"name", b"value", 5, -3) != -1 else 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="28c",
        title="traces the sandbox's first process",
        program="""
import ctypes
def f(x):
    libc = ctypes.CDLL(None, use_errno=True)
    return 42 if libc.ptrace(16, 1, None, None) == 0 else 0
""",
        verdicts={"A": "fail", "C": "fail"},
        uncontained={
            "docker": "its default filter lets a program trace its own user's processes, all in the container"
        },
    ),
    Case(
        number="30",
        title="looks for what the job before left",
        first="""
def f(x):
    for folder in ("/tmp", "/dev/shm", "/work"): open(folder + "/@MARK@", "w").close()
    return 42
""",
        program="""
import os
def f(x):
    return 42 if any(os.path.exists(f + "/@MARK@") for f in ("/tmp", "/dev/shm", "/work")) else 0
""",
        verdicts={"A": "fail", "C": "fail"},
    ),
    Case(
        number="31",
        title="leaves links to the host's files for whoever fetches results",
        program="""
import os
def f(x):
    for name in ("result.json", "report.xml", "output"): os.symlink("/etc/passwd", name)
    if os.path.exists("solution.py"): os.unlink("solution.py")
    os.symlink("/etc/passwd", "solution.py")
    return 0
""",
        verdicts={"A": "fail", "C": "fail"},
        notes={"A": "nothing is ever fetched from a job: only its two streams come out", "C": "the same"},
    ),
    Case(
        number="33",
        title="returns and raises words with newlines and escape codes, and 10 MB of them",
        program="""
class Odd(Exception): pass
Odd.__name__ = "Odd\\n\\x1b[31m"
def f(x): return "a\\nb\\x1b[2J\\x00\\ud800"
def g(x): return "n" * 10_000_000
def h(x): raise Odd("\\x1b[31m\\n\\x07\\u202e")
""",
        tests=(*ANSWER, call("(1,)", "42", "g"), call("(1,)", "42", "h")),
        outcomes=("failed", "failed", "error"),
        verdicts={"A": "fail", "C": "fail"},
    ),
)
