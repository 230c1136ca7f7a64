"""Puts this folder on the path, for the doubles beside it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from layers_doubles import HereSandbox, run_calls_here


@pytest.fixture
def sandbox(monkeypatch):
    monkeypatch.setattr("archon.layers.execution.run_calls", run_calls_here)
    return HereSandbox()
