from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archon.errors import ServingError
from archon.serving._lock import Lock, held


def test_exclusive_and_shared_holders(tmp_path: Path):
    one, two, three = (Lock(tmp_path / "x") for _ in range(3))
    assert one.try_take(shared=True)
    assert two.try_take(shared=True)
    assert not three.try_take()
    one.close()
    one.close()
    two.close()
    assert three.try_take()
    third = Lock(tmp_path / "x")
    assert not third.try_take(shared=True)
    three.close()
    third.close()


def test_waiting_is_told_once_and_ends_in_a_clear_error(tmp_path: Path):
    told: list[int] = []
    with held(tmp_path / "x", timeout_s=1.0):  # noqa: SIM117 (the second must fail inside the first)
        with pytest.raises(ServingError, match=r"another process has held '.*x' for more than 0 s"):
            with held(tmp_path / "x", timeout_s=0.3, waiting=lambda: told.append(1)):
                raise AssertionError("held twice")
    assert told == [1]
    with held(tmp_path / "x", timeout_s=0.1):
        pass


def test_the_kernel_frees_the_lock_of_a_killed_process(tmp_path: Path):
    code = f"""
import pathlib, time
from archon.serving._lock import Lock
assert Lock(pathlib.Path({str(tmp_path / "x")!r})).try_take()
"""
    code = code.replace("assert Lock", "lock = Lock").replace(".try_take()", "\nassert lock.try_take()")
    process = subprocess.Popen([sys.executable, "-c", code + "print('held', flush=True); time.sleep(60)"], stdout=-1)
    assert process.stdout is not None
    process.stdout.readline()
    mine = Lock(tmp_path / "x")
    assert not mine.try_take()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 5
    while not mine.try_take():
        assert time.monotonic() < deadline
    mine.close()
