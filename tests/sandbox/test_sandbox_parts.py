"""The engines' small parts, without an engine: capture, payload, ownership, control groups, package sources."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time

import pytest

from archon.sandbox import _cgroup, _container, _owner, _seccomp
from archon.sandbox._capture import Capture, Demultiplexer
from archon.sandbox._container import Container, Shape
from archon.sandbox._payload import pack
from archon.sandbox.fake import ScriptedSandbox
from archon.sandbox.image import sources_of_suite
from archon.sandbox.protocol import Job, Limits, Sandbox


def framed(stream: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(data)) + data


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 1000])
def test_the_stream_may_be_cut_anywhere(size):
    data = framed(1, b"hello ") + framed(2, b"error") + framed(1, b"") + framed(1, b"world")
    capture = Capture(100)
    demultiplexer = Demultiplexer(capture)
    for start in range(0, len(data), size):
        demultiplexer.feed(data[start : start + size])
    assert (capture.stdout, capture.stderr, capture.overflowed) == (b"hello world", b"error", False)


def test_what_is_beyond_the_limit_is_dropped_per_stream():
    capture = Capture(5)
    capture.add(1, b"12345")
    assert not capture.overflowed
    capture.add(2, b"123456")
    assert capture.overflowed
    capture.add(2, b"more")
    assert (capture.stdout, capture.stderr) == (b"12345", b"12345")


def test_a_stream_that_is_no_stream_is_the_engines_failure():
    with pytest.raises(ConnectionError, match="stream 7"):
        Demultiplexer(Capture(5)).feed(framed(7, b"x"))


def test_the_payload_is_archive_then_stdin_and_its_command_unpacks_it(tmp_path):
    job = Job(argv=("cat", "a/b"), files=(("a/b", b"content"),), stdin=b"the rest")
    payload = pack(job)
    length = int(payload.argv[4])
    with tarfile.open(fileobj=io.BytesIO(payload.stdin[:length])) as archive:
        assert archive.getnames() == ["a/b"]
    assert payload.stdin[length:] == b"the rest"
    script = payload.argv[2].replace("/work", str(tmp_path))
    done = subprocess.run(["sh", "-c", script, *payload.argv[3:]], input=payload.stdin, capture_output=True, check=True)
    assert done.stdout == b"content"


def test_a_failed_unpacking_is_told_from_the_programs_own_failure():
    payload = pack(Job(argv=("true",), files=(("a", b""),)))
    assert payload.setup_failed(125, b"tar: no\n" + payload.mark)
    assert not pack(Job(argv=("true",))).setup_failed(125, b"nothing was unpacked")
    assert not payload.setup_failed(125, b"")
    assert not payload.setup_failed(1, payload.mark)
    with pytest.raises(ValueError, match="argv is empty"):
        pack(Job(argv=()))


def test_an_owner_is_known_by_more_than_its_id():
    mine = _owner.labels(60)
    now = time.time()
    assert not _owner.is_orphan(mine, now)
    assert _owner.is_orphan(mine, now + 120)
    assert _owner.is_orphan(mine | {_owner.START: "1"}, now)
    assert not _owner.is_orphan({}, now)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        start = _owner._start_ticks(other.pid)
        theirs = mine | {_owner.PID: str(other.pid), _owner.START: start}
        assert not _owner.is_orphan(theirs, now)
        other.communicate()
    assert _owner.is_orphan(theirs, now)
    # Of another boot or namespace nothing is known; only the expiry frees what it left.
    assert not _owner.is_orphan(theirs | {_owner.BOOT: "another"}, now)
    assert not _owner.is_orphan(theirs | {_owner.NAMESPACE: "pid:[1]"}, now)
    assert _owner.is_orphan(theirs | {_owner.BOOT: "another"}, now + 120)


def test_no_control_group_where_none_can_be_made(tmp_path):
    own = tmp_path / "own"
    own.write_text("0::/somewhere\n")
    assert _cgroup.find(tmp_path / "absent", own) is None
    # An ordinary folder takes the new directory but has no limit files: that is not a control group.
    (tmp_path / "plain").mkdir()
    assert _cgroup.find(tmp_path / "plain", own) is None
    assert list((tmp_path / "plain").iterdir()) == []
    assert _cgroup.find(tmp_path, tmp_path / "absent") is None


def test_a_containers_group_is_known_by_its_name(tmp_path):
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "cgroup").write_text("4:memory:/docker/abc\n8:pids:/docker/abc\n0::/docker/abc\n")
    for controller in ("memory", "pids"):
        (root / controller / "docker" / "abc").mkdir(parents=True)
    (root / "memory" / "docker" / "abc" / "memory.oom_control").write_text("under_oom 0\noom_kill 2\n")
    (root / "pids" / "docker" / "abc" / "pids.events").write_text("max 3\n")
    group = _cgroup.of_process(7, "abc", root, proc)
    assert group is not None
    assert group.met() == ("oom", "pids_limit")
    (root / "memory" / "docker" / "abc" / "memory.oom_control").write_text("oom_kill 0\n")
    (root / "pids" / "docker" / "abc" / "pids.events").write_text("max 0\n")
    assert group.met() == ()
    # Another machine's process ids mean nothing here.
    assert _cgroup.of_process(7, "def", root, proc) is None
    assert _cgroup.of_process(8, "abc", root, proc) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="making control groups needs root here")
def test_a_groups_processes_end_with_it():
    hierarchy = _cgroup.find()
    if hierarchy is None:
        pytest.skip("no control group can be made here")
    group = _cgroup.make(hierarchy, memory_mb=64, processes=8)
    with subprocess.Popen(["sleep", "600"]) as process:
        for entrance in group.entrances:
            entrance.write_text(str(process.pid))
        assert process.poll() is None
        assert group.oom_kills() == 0
        group.remove()
        assert process.wait(5) == -9
    assert not group.memory.exists()
    assert not group.pids.exists()


def test_package_sources_of_one_release():
    deb822 = """Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /keys/a.gpg

Types: deb-src
URIs: http://mirror.example/debian
Suites: bookworm
Components: main
"""
    lines = "# deb http://old.example bookworm main\ndeb [arch=amd64] http://b.example/d bookworm-security main\n"
    other = "deb https://vendor.example/apt vendor-bookworm main\n"
    assert sources_of_suite([deb822, lines, other], "bookworm").splitlines() == [
        "deb [signed-by=/keys/a.gpg] http://mirror.example/debian bookworm main contrib",
        "deb [signed-by=/keys/a.gpg] http://mirror.example/debian bookworm-updates main contrib",
        "deb [arch=amd64] http://b.example/d bookworm-security main",
    ]


async def test_the_double_is_a_sandbox_and_runs_dry():
    double = ScriptedSandbox([])
    assert isinstance(double, Sandbox)
    await double.close()
    assert double.closed
    assert Limits() == Limits(wall_s=10.0)


class _Daemon:
    """Answers as a daemon whose exec has ended with code 0 but whose copy of the output lags behind."""

    def exec_inspect(self, _: str) -> dict[str, object]:
        return {"Running": False, "ExitCode": 0}


async def test_output_that_comes_after_the_programs_end_is_not_lost():
    ours, theirs = socket.socketpair()
    capture = Capture(100)
    container = Container(id="c", shape=Shape.of("image", Limits(), 1.0), expires=0.0)
    watch = _container._Run(_Daemon(), container, "e", capture, time.monotonic() + 20, threading.Event())
    with ours, theirs:
        attending = asyncio.create_task(asyncio.to_thread(watch.attend, ours, b"files"))
        await asyncio.sleep(1.0)
        theirs.sendall(framed(1, b"late"))
        theirs.shutdown(socket.SHUT_WR)
        assert await attending == ("exited", 0)
        assert theirs.recv(100) == b"files"
    assert capture.stdout == b"late"


@pytest.mark.parametrize(
    ("machine", "refused", "allowed"), [("x86_64", (101, 248, 0x40000001), (0, 59, 57)), ("aarch64", (117,), (63, 221))]
)
def test_the_filter_refuses_its_calls_and_no_others(machine, refused, allowed):
    """The filter is run here as the kernel would: a load, comparisons that jump forward, a verdict."""
    lines = list(struct.iter_unpack("=HBBI", _seccomp.program(machine)))

    def verdict(architecture: int, number: int) -> int:
        place, held = 0, 0
        while True:
            code, if_so, if_not, k = lines[place]
            place += 1
            if code == 0x20:
                held = {0: number, 4: architecture}[k]
            elif code == 0x06:
                return k
            else:
                place += if_so if (held == k if code == 0x15 else held >= k) else if_not

    architecture = _seccomp._ARCHITECTURES[machine]
    assert {verdict(architecture, number) for number in refused} == {0x00050000 | 1}
    assert {verdict(architecture, number) for number in allowed} == {0x7FFF0000}
    assert verdict(0x40000003, 59) == 0x00050000 | 38
    assert len(lines) < 255  # a jump is one byte


def test_no_filter_for_an_unknown_processor():
    assert _seccomp.program("riscv64") is None
