"""Puts this folder on the path, for the made runs beside it, and finds the public data."""

import gzip
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def read_data() -> Callable[[str], list[dict[str, Any]]]:
    """Reads the rows of a file of public data; skips where there is none."""
    given = os.environ.get("ARCHON_DATA")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set ARCHON_DATA")

    def read(name: str) -> list[dict[str, Any]]:
        raw = (folder / name).read_bytes()
        text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
        return [json.loads(line) for line in text.splitlines()]

    return read
