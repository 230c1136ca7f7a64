"""A line that says what a figure was measured on, without naming the host."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe_machine() -> str:
    """Return processor, usable cores, memory, system and Python: `AMD EPYC, 2 cores, 23 GiB, Linux, Python 3.11.7`."""
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, {gib:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
