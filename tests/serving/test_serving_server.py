from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import asdict
from pathlib import Path

import pytest
from serving_fakes import SERVER, launch

from archon.errors import ServingError
from archon.serving import _lifetime
from archon.serving import server as module
from archon.serving._processes import members, shared_memory, start_time
from archon.serving._register import ServerRecord
from archon.serving.options import ServeOptions
from archon.serving.server import RunningServer, obtain, running_servers

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="servers are managed through /proc")

OPTIONS = ServeOptions(start_timeout_s=20.0)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lifetime, "GRACE_S", 0.7)


def start(manner: str = "good", options: ServeOptions = OPTIONS, lines: list[str] | None = None) -> RunningServer:
    progress = (lambda _: None) if lines is None else lines.append
    return obtain(launch(manner), options, progress, threading.Event())


def answers(server: RunningServer) -> bool:
    with urllib.request.urlopen(f"{server.base_url}/models", timeout=5) as reply:
        return reply.status == 200


def wait_until(condition: object, seconds: float = 15.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def is_gone(record: ServerRecord) -> bool:
    return not record.is_alive and not members(record.pid, record.server_id)


def temporary_folder(pid: int) -> Path:
    variables = dict(v.split("=", 1) for v in Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in v)
    return Path(variables["TMPDIR"])


async def test_a_server_answers_and_nothing_of_it_is_left(archon_home: Path):
    server = start("family")
    assert answers(server)
    assert (server.name, server.parameters, server.reused) == ("fake", 7, False)
    family = members(server.pid, server.record.server_id)
    assert len(family) == 3  # the server, its child, and the orphan that left the session and wiped its environment
    folder = temporary_folder(server.pid)
    assert folder.is_dir()
    assert running_servers() == (server.record,)
    await server.stop()
    await server.stop()
    assert is_gone(server.record)
    assert all(start_time(pid) is None for pid in family)
    assert not folder.exists()
    assert running_servers() == ()
    assert [path.name for path in (archon_home / "servers").glob("*/*")] == ["lock"]


async def test_one_that_ignores_sigterm_is_killed_and_its_shared_memory_removed():
    server = start("stubborn")
    shared = shared_memory(members(server.pid, server.record.server_id))
    assert len(shared) == 1
    begin = time.monotonic()
    await server.stop()
    assert is_gone(server.record)
    assert 0.6 < time.monotonic() - begin < 20
    assert not any(map(os.path.exists, shared))


def test_one_that_dies_gives_its_last_words(archon_home: Path):
    with pytest.raises(ServingError) as raised:
        start("dies")
    assert "ended while it started 'fake': ValueError: the cache of -1 GB is too small" in str(raised.value)
    log = Path(str(raised.value).rpartition("log: '")[2].removesuffix("')"))
    assert "INFO loading" in log.read_text()
    assert running_servers() == ()


def test_one_that_never_answers_is_given_up_and_ended(archon_home: Path):
    lines: list[str] = []
    with pytest.raises(ServingError, match="did not answer within 2 s"):
        start("silent", ServeOptions(start_timeout_s=2.0), lines)
    assert running_servers() == ()


def test_waiting_shows_progress(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_lifetime, "_PROGRESS_EVERY_S", 0.1)
    lines: list[str] = []
    server = start(lines=lines)
    server._stop()
    assert lines[0].startswith("fake: starting vLLM, 0 s: importing")
    assert lines[-1] == f"fake: answers at {server.base_url}"


async def test_the_same_server_is_shared_and_lives_until_the_last_user_lets_go():
    first = start()
    second = start()
    assert second.reused
    assert second.base_url == first.base_url
    await first.stop()
    assert answers(second)
    third = start()
    await second.stop()
    assert answers(third)
    await third.stop()
    assert is_gone(third.record)


async def test_other_options_are_another_server():
    first = start()
    second = start(options=ServeOptions(start_timeout_s=20.0, max_num_seqs=3))
    assert first.base_url != second.base_url
    await first.stop()
    assert answers(second)
    await second.stop()


def test_two_that_start_at_once_share_one():
    found: list[RunningServer] = []
    threads = [threading.Thread(target=lambda: found.append(start())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({server.record.server_id for server in found}) == 1
    assert sorted(server.reused for server in found) == [False, True, True, True]
    for server in found:
        server._stop()
    assert is_gone(found[0].record)


async def test_a_server_that_died_is_replaced():
    first = start()
    for pid in members(first.pid, first.record.server_id):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: start_time(first.pid) is None)
    second = start()
    assert not second.reused
    assert answers(second)
    await second.stop()
    await first.stop()
    assert is_gone(second.record)


async def test_what_a_killed_supervisor_left_is_cleared_away():
    server = start("family")
    family = members(server.pid, server.record.server_id)
    os.kill(server.pid, signal.SIGKILL)
    await server.stop()
    assert not server.record.is_alive
    assert not members(server.pid, server.record.server_id)
    left = [pid for pid in family if start_time(pid) is not None]
    # Out of reach after such a double fault: the orphan that left the session and wiped its environment.
    assert len(left) <= 1
    for pid in left:
        os.kill(pid, signal.SIGKILL)


async def test_a_stale_or_foreign_entry_is_not_trusted(archon_home: Path):
    server = start()
    entry = archon_home / "servers" / os.listdir(archon_home / "servers")[0] / "server.json"
    await server.stop()
    # Same process id as this test, another start time: a later process must not be taken for the server, or ended.
    record = {**json.loads(json.dumps(asdict(server.record))), "pid": os.getpid()}
    entry.write_text(json.dumps(record))
    assert running_servers() == ()
    again = start()
    assert not again.reused
    await again.stop()
    for damaged in ("", "{", "[]", '{"model": "x"}', "\x00\xff"):
        entry.write_text(damaged)
        again = start()
        assert not again.reused
        await again.stop()


async def test_a_port_in_use_is_an_error_when_it_was_asked_for_and_another_is_tried_when_not(
    monkeypatch: pytest.MonkeyPatch,
):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nothing answers there
        port = taken.getsockname()[1]
        with pytest.raises(ServingError, match="Address already in use"):
            start(options=ServeOptions(port=port, start_timeout_s=20.0))
        free = _lifetime.free_port
        ports = iter([port])
        monkeypatch.setattr(_lifetime, "free_port", lambda: next(ports, None) or free())
        server = start()
        assert answers(server)
        await server.stop()


USER = """
import sys, threading, time
sys.path.insert(0, {tests!r})
from serving_fakes import launch
from archon.serving.options import ServeOptions
from archon.serving import _lifetime
from archon.serving.server import obtain
_lifetime.GRACE_S = 0.7
server = obtain(launch("family"), ServeOptions(start_timeout_s=20.0), lambda _: None, threading.Event())
print(server.pid, server.record.server_id, server.record.port, server.reused, flush=True)
time.sleep(600)
"""


def user() -> tuple[subprocess.Popen[str], ServerRecord, bool]:
    code = USER.format(tests=str(Path(__file__).parent))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pid, server_id, port, reused = process.stdout.readline().split()
    record = ServerRecord(
        model="fake",
        port=int(port),
        pid=int(pid),
        started_ticks=start_time(int(pid)) or 0,
        server_id=server_id,
        parameters=7,
        log_path="",
    )
    return process, record, reused == "True"


def kill(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def test_kill_9_of_the_user_leaves_nothing(monkeypatch: pytest.MonkeyPatch):
    process, record, _ = user()
    family = members(record.pid, record.server_id)
    assert len(family) == 3
    folder = temporary_folder(record.pid)
    kill(process)
    wait_until(lambda: is_gone(record), 30)
    assert all(start_time(pid) is None for pid in family)
    wait_until(lambda: not folder.exists())


def test_kill_9_of_the_starter_leaves_the_server_to_the_other_user():
    starter, record, reused = user()
    assert not reused
    other, same, reused = user()
    assert reused
    assert same.server_id == record.server_id
    kill(starter)
    time.sleep(1.0)
    assert urllib.request.urlopen(f"{record.base_url}/models", timeout=5).status == 200
    kill(other)
    wait_until(lambda: is_gone(record), 30)


async def test_a_cancelled_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch, archon_home: Path):
    monkeypatch.setattr(module, "resolve", lambda name, progress: launch("silent").model)
    monkeypatch.setattr(module, "plan_launch", lambda model, options: launch("silent"))
    task = asyncio.create_task(module.ensure_server("fake", options=OPTIONS, progress=lambda _: None))
    await asyncio.to_thread(wait_until, lambda: running_servers() != ())
    (record,) = running_servers()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(wait_until, lambda: is_gone(record))


async def test_serve_ends_with_its_block(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "resolve", lambda name, progress: launch().model)
    monkeypatch.setattr(module, "plan_launch", lambda model, options: launch())
    with pytest.raises(KeyError):
        async with module.serve("fake", options=OPTIONS, progress=lambda _: None) as server:
            assert answers(server)
            raise KeyError
    assert is_gone(server.record)


def test_the_fake_server_is_a_program():
    compile(SERVER, "server", "exec")
