"""Where models, logs and the register of running servers live on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return the folder for everything kept between runs: `ARCHON_HOME`, or `~/.cache/archon`."""
    given = os.environ.get("ARCHON_HOME")
    return Path(given).expanduser().absolute() if given else Path.home() / ".cache" / "archon"
