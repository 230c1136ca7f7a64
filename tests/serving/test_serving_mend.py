from __future__ import annotations

import importlib
import subprocess
from pathlib import Path

import pytest

from archon.errors import ServingError
from archon.serving import mend

BROKEN = "raise RuntimeError('operator torchvision::nms does not exist')"


@pytest.fixture
def torchvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A torchvision to be seen by this process and by those it starts."""
    (tmp_path / "torchvision").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    module = tmp_path / "torchvision/__init__.py"
    module.write_text(BROKEN)
    importlib.invalidate_caches()
    return module


def test_a_torchvision_that_imports_is_left_alone(torchvision: Path):
    torchvision.write_text("")
    assert mend.mend() is None


def test_a_broken_one_is_uninstalled_with_its_kin_and_the_reason_given(
    torchvision: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    commands: list[list[str]] = []
    real = subprocess.run

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        if "pip" not in command:
            return real(command, **options)
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(mend.subprocess, "run", run)
    mend.main()
    assert commands[0][-3:] == ["torchvision", "torchaudio", "torchcodec"]
    assert "operator torchvision::nms does not exist" in capsys.readouterr().err


def test_a_failing_pip_is_one_error(torchvision: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mend, "find_fault", lambda: "broken")
    done = subprocess.CompletedProcess([], 1, "", "ERROR: not allowed")
    monkeypatch.setattr(mend.subprocess, "run", lambda *a, **k: done)
    with pytest.raises(ServingError, match=r"could not uninstall .*not allowed"):
        mend.mend()
