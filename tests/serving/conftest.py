from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # for serving_fakes: tests are imported by path, not by package


@pytest.fixture(autouse=True)
def archon_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test's models, logs and servers apart from the user's, and off the network."""
    monkeypatch.setenv("ARCHON_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ARCHON_MODELS", raising=False)
    return tmp_path / "home"
