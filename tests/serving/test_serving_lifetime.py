from __future__ import annotations

import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from serving_fakes import record_of_this_process

from archon.errors import ServingError
from archon.serving._lifetime import end, free_port, wait_for_answer, wait_for_start
from archon.serving._processes import start_time
from archon.serving.options import ServeOptions

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="servers are managed through /proc")


def test_a_free_port_can_be_bound():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))


def test_a_later_process_of_the_same_id_is_not_ended():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as later:
        ticks = start_time(later.pid)
        assert ticks is not None
        end(replace(record_of_this_process(), pid=later.pid, started_ticks=ticks - 1))
        assert later.poll() is None
        later.communicate(b"\n")


def test_a_server_that_is_gone_is_not_waited_for():
    gone = replace(record_of_this_process(), started_ticks=-1)
    assert not wait_for_answer(gone)


def test_a_start_that_ended_gives_its_last_words(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("ValueError: no room\n")
    gone = replace(record_of_this_process(), started_ticks=-1, port=free_port(), log_path=str(log))
    with pytest.raises(ServingError, match="ended while it started 'fake': ValueError: no room"):
        wait_for_start(gone, ServeOptions(), lambda _: None, threading.Event())
