"""What every engine must do; each test attacks one property, and each kill test first shows that the victim lived."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from archon.errors import SandboxFailed
from archon.sandbox.auto import open_sandbox
from archon.sandbox.protocol import Job, Limits, Sandbox


def python(code: str, *, limits: Limits | None = None, files=(), stdin: bytes = b"") -> Job:
    return Job(argv=("python3", "-I", "-c", code), files=files, stdin=stdin, limits=limits or Limits())


def alive(mark: str) -> list[int]:
    """Return the host's processes whose command line holds a mark, whatever namespace they are in."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            # The tail of the program's own source; its launchers have the same text and die with it.
            if mark.encode() in line:
                found.append(int(folder.name))
    return found


async def gone(mark: str, within_s: float = 3.0) -> bool:
    until = time.monotonic() + within_s
    while alive(mark):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)
    return True


async def test_it_is_a_sandbox_and_says_what_it_enforces(sandbox):
    assert isinstance(sandbox, Sandbox)
    assert "no network" in sandbox.enforces


async def test_output_and_exit_code_come_back(sandbox):
    outcome = await sandbox.run(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"))
    assert (outcome.end, outcome.exit_code, outcome.stdout, outcome.stderr) == ("exited", 7, b"out\n", b"err\n")
    assert 0 < outcome.wall_s < 10


async def test_files_are_in_the_working_folder_and_nothing_else_is(sandbox):
    code = "import os; print(sorted(os.listdir()), open('data/a.bin', 'rb').read())"
    content = bytes(range(256))
    outcome = await sandbox.run(python(code, files=(("data/a.bin", content), ("näme.txt", b""))))
    assert outcome.stdout.decode() == f"{['data', 'näme.txt']} {content!r}\n"


async def test_stdin_begins_after_the_files_and_ends(sandbox):
    code = "import sys; data = sys.stdin.buffer.read(); print(len(data), data[:3], data[-3:])"
    stdin = b"abc" + bytes(300_000) + b"xyz"
    outcome = await sandbox.run(python(code, files=(("a", b"1"),), stdin=stdin))
    assert outcome.stdout == b"300006 b'abc' b'xyz'\n"


async def test_without_stdin_a_read_meets_the_end(sandbox):
    outcome = await sandbox.run(python("input()"))
    assert outcome.end == "exited"
    assert b"EOFError" in outcome.stderr


async def test_a_program_may_ignore_a_long_stdin(sandbox):
    outcome = await sandbox.run(python("print('done')", stdin=bytes(3_000_000)))
    assert (outcome.end, outcome.exit_code, outcome.stdout) == ("exited", 0, b"done\n")


async def test_output_need_not_be_text(sandbox):
    outcome = await sandbox.run(python("import os; os.write(1, bytes([255, 0, 27, 128]))"))
    assert outcome.stdout == bytes([255, 0, 27, 128])


async def test_a_missing_command_is_the_programs_failure(sandbox):
    outcome = await sandbox.run(Job(argv=("no-such-command",)))
    assert (outcome.end, outcome.exit_code) == ("exited", 127)


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", ""])
async def test_a_path_outside_the_folder_is_refused(sandbox, name):
    with pytest.raises(ValueError, match="relative path"):
        await sandbox.run(python("pass", files=((name, b""),)))


async def test_files_that_do_not_fit_are_refused(sandbox):
    with pytest.raises(ValueError, match="disk_mb=1"):
        await sandbox.run(python("pass", files=(("a", bytes(2 << 20)),), limits=Limits(disk_mb=1)))


REACH = """
import socket, sys
kind, host, port = sys.stdin.readline().split()
with socket.create_connection((host, int(port)), timeout=3) as s:
    print(s.recv(5))
"""


async def test_there_is_no_network(sandbox):
    """The very probe that is refused inside reaches a server on every address of this machine from outside."""
    addresses = [line.split()[3].split("/")[0] for line in _ip_addresses()] or ["127.0.0.1"]
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        server.settimeout(10)
        for address in addresses:
            probe = f"tcp {address} {port}\n".encode()
            outside = asyncio.to_thread(subprocess.run, [sys.executable, "-c", REACH], input=probe, capture_output=True)
            done, _ = await asyncio.gather(outside, asyncio.to_thread(_answer, server))
            assert done.stdout == b"b'hello'\n"
            inside = await sandbox.run(python(REACH, stdin=probe))
            assert inside.exit_code == 1
            assert b"OSError" in inside.stderr or b"Refused" in inside.stderr or b"unreachable" in inside.stderr
    loopback_only = await sandbox.run(python("print([l.split(':')[0].strip() for l in open('/proc/net/dev')][2:])"))
    assert loopback_only.stdout == b"['lo']\n"


def _ip_addresses() -> list[str]:
    if not any(Path(folder, "ip").exists() for folder in os.environ["PATH"].split(":")):
        return []
    done = subprocess.run(["ip", "-4", "-o", "addr"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _answer(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"hello")


async def test_loopback_inside_works(sandbox):
    code = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"own"), daemon=True).start()
print(socket.create_connection(server.getsockname()).recv(3))
"""
    assert (await sandbox.run(python(code))).stdout == b"b'own'\n"


async def test_an_endless_loop_ends_at_the_deadline_and_nothing_is_left(sandbox):
    mark = f"mark-{uuid.uuid4().hex}"
    running = asyncio.create_task(sandbox.run(python(f"'{mark}'\nwhile True: pass", limits=Limits(wall_s=2.0))))
    assert await _appears(mark)
    outcome = await running
    assert (outcome.end, outcome.exit_code) == ("timeout", None)
    assert 2.0 <= outcome.wall_s < 6.0
    assert await gone(mark)


async def _appears(mark: str) -> bool:
    until = time.monotonic() + 10
    while not alive(mark):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)
    return True


async def test_signals_do_not_hold_off_the_deadline(sandbox):
    code = """
import signal, time
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
print("deaf", flush=True)
while True: time.sleep(1)
"""
    outcome = await sandbox.run(python(code, limits=Limits(wall_s=1.5)))
    assert (outcome.end, outcome.stdout) == ("timeout", b"deaf\n")


async def test_a_daemon_does_not_outlive_its_job(sandbox):
    mark = f"mark-{uuid.uuid4().hex}"
    code = f"""
'{mark}'
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("up", "w").close()
        time.sleep(600)
    os._exit(0)
while not os.path.exists("up"): time.sleep(0.01)
time.sleep(1)
print("answer")
"""
    running = asyncio.create_task(sandbox.run(python(code)))
    await asyncio.sleep(0.5)
    assert await _appears(mark)
    outcome = await running
    assert (outcome.end, outcome.exit_code, outcome.stdout) == ("exited", 0, b"answer\n")
    assert outcome.wall_s < 8
    assert await gone(mark)


async def test_a_fork_bomb_is_contained(sandbox):
    code = """
import os, time
count = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
except OSError as error:
    print(count, type(error).__name__)
"""
    outcome = await sandbox.run(python(code, limits=Limits(processes=20)))
    count, kind = outcome.stdout.split()
    assert (outcome.end, kind) == ("exited", b"BlockingIOError")
    assert 10 <= int(count) <= 20
    assert (await sandbox.run(python("print('next')"))).stdout == b"next\n"


async def test_an_endless_fork_bomb_ends(sandbox):
    mark = f"mark-{uuid.uuid4().hex}"
    code = f"'{mark}'\nimport os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    outcome = await sandbox.run(python(code, limits=Limits(wall_s=2.0, processes=24)))
    assert outcome.end == "timeout"
    assert await gone(mark)


async def test_a_memory_bomb_is_oom(sandbox):
    code = "held = []\nprint('alive', flush=True)\nwhile True: held.append(bytearray(b'x') * (4 << 20))"
    outcome = await sandbox.run(python(code, limits=Limits(memory_mb=96, wall_s=20)))
    assert (outcome.end, outcome.exit_code, outcome.stdout) == ("oom", None, b"alive\n")


async def test_memory_is_limited_in_total(sandbox):
    code = """
import os, signal, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(b'x') * (60 << 20)
        time.sleep(1)
        os._exit(0)
ends = [os.wait()[1] for _ in range(4)]
print(ends.count(0), ends.count(signal.SIGKILL))
"""
    if any("NOT enforced" in line for line in sandbox.enforces):
        pytest.skip("no control group here: the engine says that memory in total is not enforced")
    outcome = await sandbox.run(python(code, limits=Limits(memory_mb=128, wall_s=20)))
    fine, killed = map(int, outcome.stdout.split())
    assert fine <= 2
    assert killed >= 2


async def test_most_of_the_memory_can_be_used(sandbox):
    outcome = await sandbox.run(
        python("x = bytearray(b'x') * (100 << 20); print(len(x))", limits=Limits(memory_mb=128))
    )
    assert (outcome.end, outcome.exit_code) == ("exited", 0)


@pytest.mark.parametrize("stream", [1, 2])
async def test_a_flood_of_output_ends_the_job_quickly(sandbox, stream):
    code = f"import os\nblock = b'a' * 65536\nwhile True: os.write({stream}, block)"
    began = time.monotonic()
    outcome = await sandbox.run(python(code, limits=Limits(output_bytes=200_000)))
    assert outcome.end == "output_limit"
    assert (len(outcome.stdout), len(outcome.stderr)) == ((200_000, 0) if stream == 1 else (0, 200_000))
    assert time.monotonic() - began < 6


async def test_output_up_to_the_limit_is_fine(sandbox):
    outcome = await sandbox.run(python("print('a' * 199_999)", limits=Limits(output_bytes=200_000)))
    assert (outcome.end, len(outcome.stdout)) == ("exited", 200_000)


async def test_the_writable_folders_are_small(sandbox):
    code = """
import errno, os
for folder in ("/work", "/tmp", "/dev/shm"):
    written, part = 0, 0
    try:
        while written < 200:
            with open(f"{folder}/fill{part}", "wb") as file:
                file.write(bytes(1 << 20))
            written, part = written + 1, part + 1
    except OSError as error:
        print(folder, written, errno.errorcode[error.errno])
"""
    outcome = await sandbox.run(python(code, limits=Limits(disk_mb=16, memory_mb=256)))
    lines = [line.split() for line in outcome.stdout.decode().splitlines()]
    assert [line[0] for line in lines] == ["/work", "/tmp", "/dev/shm"]
    assert all(int(line[1]) <= 16 and line[2] == "ENOSPC" for line in lines)


async def test_one_large_file_is_refused(sandbox):
    code = "open('big', 'wb').write(bytes(100 << 20))"
    outcome = await sandbox.run(python(code, limits=Limits(disk_mb=16, memory_mb=512)))
    assert outcome.exit_code == 1
    assert b"OSError" in outcome.stderr


async def test_the_user_is_nobody_and_cannot_become_another(sandbox):
    code = """
import os
print(os.getuid(), os.geteuid(), os.getgid())
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["CapEff"], 16), int(status["CapPrm"], 16), int(status["CapBnd"], 16), int(status["NoNewPrivs"]))
try:
    os.setuid(0)
    print("root")
except OSError:
    print("refused")
"""
    lines = (await sandbox.run(python(code))).stdout.decode().splitlines()
    assert lines == ["65534 65534 65534", "0 0 0 1", "refused"]


async def test_no_new_namespaces(sandbox):
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), libc.unshare(0x00020000), libc.unshare(0x40000000))
"""
    assert (await sandbox.run(python(code))).stdout == b"-1 -1 -1\n"


async def test_the_hosts_files_and_secrets_are_not_there(sandbox, tmp_path, monkeypatch):
    secret = tmp_path / "secret"
    secret.write_text("the host's secret")
    secret.chmod(0o644)
    monkeypatch.setenv("ARCHON_TEST_API_KEY", "the host's key")
    code = f"""
import os
paths = [{str(secret)!r}, {os.getcwd()!r}, "/etc/shadow", "/root/.ssh", "/proc/1/root/etc/shadow", "/run/docker.sock"]
for path in paths:
    try:
        open(path).read()
        print("read", path)
    except IsADirectoryError:
        print("there", path)
    except OSError:
        pass
print("key" if any("KEY" in name for name in os.environ) else "no key")
try:
    print("key" if b"API_KEY" in open("/proc/1/environ", "rb").read() else "no key")
except OSError:
    print("no key")
"""
    outcome = await sandbox.run(python(code))
    assert outcome.stdout == b"no key\nno key\n"


async def test_the_hosts_processes_are_not_there(sandbox):
    outcome = await sandbox.run(python("import os; print(len([n for n in os.listdir('/proc') if n.isdigit()]))"))
    assert int(outcome.stdout) <= 6
    code = f"import os\ntry:\n    os.kill({os.getpid()}, 0)\n    print('seen')\nexcept OSError: print('unseen')"
    if os.getpid() > 50:
        assert (await sandbox.run(python(code))).stdout == b"unseen\n"


async def test_the_environment_is_ours_and_hashes_are_the_same_each_time(sandbox):
    show = Job(argv=("python3", "-c", "import os; print(sorted(os.environ), hash('a'))"))
    first, second = await asyncio.gather(sandbox.run(show), sandbox.run(show))
    assert first.stdout == second.stdout
    assert b"'PYTHONHASHSEED', " in first.stdout
    assert b"ARCHON" not in first.stdout


async def test_a_job_leaves_nothing_for_the_next(sandbox):
    write = """
for folder in ("/work", "/tmp", "/dev/shm"):
    open(folder + "/left", "w").close()
print("wrote")
"""
    look = "import os; print([f for f in ('/work', '/tmp', '/dev/shm') if os.path.exists(f + '/left')])"
    for _ in range(3):
        assert (await sandbox.run(python(write))).stdout == b"wrote\n"
        assert (await sandbox.run(python(look))).stdout == b"[]\n"


async def test_twenty_jobs_at_once(sandbox):
    outcomes = await asyncio.gather(*(sandbox.run(python(f"print({number} ** 2)")) for number in range(20)))
    assert [int(outcome.stdout) for outcome in outcomes] == [number**2 for number in range(20)]


async def test_the_event_loop_goes_on_meanwhile(sandbox):
    running = asyncio.create_task(sandbox.run(python("import time; time.sleep(1)")))
    worst = 0.0
    while not running.done():
        began = time.monotonic()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - began)
    assert (await running).exit_code == 0
    assert worst < 0.5


async def test_a_cancelled_job_ends(sandbox):
    mark = f"mark-{uuid.uuid4().hex}"
    running = asyncio.create_task(sandbox.run(python(f"'{mark}'\nwhile True: pass", limits=Limits(wall_s=60))))
    assert await _appears(mark)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await gone(mark, within_s=6)


async def test_jobs_that_end_while_they_start_leave_nothing(sandbox):
    """The deadline falls into every part of an engine's own start-up; a job must not slip out of any."""
    mark = f"mark-{uuid.uuid4().hex}"
    jobs = [python(f"'{mark}'\nwhile True: pass", limits=Limits(wall_s=0.002 * step)) for step in range(1, 31)]
    outcomes = await asyncio.gather(*(sandbox.run(job) for job in jobs))
    assert {outcome.end for outcome in outcomes} == {"timeout"}
    assert await gone(mark)


async def test_a_closed_sandbox_runs_nothing(sandbox):
    await sandbox.close()
    await sandbox.close()
    with pytest.raises(SandboxFailed, match="closed"):
        await sandbox.run(python("print('late')"))


async def test_a_program_that_kills_all_it_can_hurts_only_itself(sandbox):
    code = f"import os, time\nos.kill(-1, {int(signal.SIGKILL)})\ntime.sleep(5)"
    outcome = await sandbox.run(python(code, limits=Limits(wall_s=8)))
    assert outcome.end == "exited"
    assert (await sandbox.run(python("print('next')"))).stdout == b"next\n"


OWNER = """
import asyncio, sys
from archon.sandbox import Job, Limits, open_sandbox
async def main():
    sandbox = await open_sandbox(sys.argv[1])
    await sandbox.run(Job(argv=("python3", "-c", sys.argv[2] + "\\nwhile True: pass"), limits=Limits(wall_s=300)))
asyncio.run(main())
"""


async def test_a_killed_owner_leaves_nothing_that_the_next_start_does_not_remove(sandbox):
    mark = f"mark-{uuid.uuid4().hex}"
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, sandbox.engine, f"'{mark}'")
    try:
        until = time.monotonic() + 120
        while len(alive(mark)) < 2:  # the owner's own command line has the mark too
            assert time.monotonic() < until
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
    finally:
        owner.kill()
        await owner.wait()
    after = await open_sandbox(sandbox.engine)
    try:
        assert await gone(mark)
        assert (await sandbox.run(python("print('the live one is untouched')"))).exit_code == 0
    finally:
        await after.close()
