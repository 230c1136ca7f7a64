"""Convert a GGUF file to a Hugging Face folder with bfloat16 safetensors, which is what vLLM serves on a CPU.

Tensors go from the mapped file to the output in blocks of a few megabytes on two threads, so the memory needed is
some tens of megabytes whatever the model's size, and neither torch nor transformers is loaded: the 0.5B model takes
about 5 s on 2 cores where transformers' own reader takes 40 s and 3 GB. A test holds the two equal, bit for bit.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from archon.errors import MissingExtra, ServingError, nearest
from archon.serving.gguf_file import GgufHeader, TensorRecord, read_header
from archon.serving.tokenizer_json import tokenizer_config, tokenizer_json

_Array: TypeAlias = np.ndarray[Any, Any]

_BLOCK_ELEMENTS = 1 << 20
"""Weights dequantised at a time: 4 MB as float32, so that the intermediate arrays stay in a core's cache."""

_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM"}


def convert(gguf: Path, folder: Path) -> None:
    """Write the model in `gguf` to the empty or new `folder`, and flush it to disk.

    Raises:
        ServingError: the file is damaged, or of an architecture that is not converted here.
        MissingExtra: the `gguf` package is not installed.
        OSError: the folder cannot be written.
    """
    header = read_header(gguf)
    config = model_config(header)
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", _generation_config(header.metadata))
    _write_json(folder / "tokenizer.json", tokenizer_json(header.metadata))
    max_length = config["max_position_embeddings"]
    _write_json(folder / "tokenizer_config.json", tokenizer_config(header.metadata, max_length))
    _write_weights(gguf, header, config, folder / "model.safetensors")


def model_config(header: GgufHeader) -> dict[str, Any]:
    """Return the content of `config.json`.

    Raises:
        ServingError: the architecture is not one that is converted here.
    """
    metadata = header.metadata
    arch = metadata.get("general.architecture")
    if arch not in _CLASSES:
        raise ServingError(f"cannot convert a model of architecture {arch!r}; {nearest(str(arch), _CLASSES)}")
    shapes = {tensor.name: tensor.shape for tensor in header.tensors}
    vocabulary, hidden = shapes["token_embd.weight"]
    heads = metadata[f"{arch}.attention.head_count"]
    return {
        "architectures": [_CLASSES[arch]],
        "model_type": arch,
        # The format of these files is that of transformers 4; version 5 suspects a tokenizer that does not say so.
        "transformers_version": "4.57.0",
        "dtype": "bfloat16",
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "head_dim": hidden // heads,
        "intermediate_size": metadata[f"{arch}.feed_forward_length"],
        "num_hidden_layers": metadata[f"{arch}.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": metadata.get(f"{arch}.attention.head_count_kv", heads),
        "max_position_embeddings": metadata[f"{arch}.context_length"],
        # Stored as float32; the shortest decimal that reads back as the same float32 is the publisher's number.
        "rms_norm_eps": float(str(np.float32(metadata[f"{arch}.attention.layer_norm_rms_epsilon"]))),
        "rope_theta": metadata.get(f"{arch}.rope.freq_base", 10000.0),
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in shapes,
        **{f"{role}_token_id": index for role, index in _token_ids(metadata).items()},
    }


def _token_ids(metadata: dict[str, Any]) -> dict[str, int]:
    keys = {"bos": "bos", "eos": "eos", "pad": "padding"}
    found = {role: metadata.get(f"tokenizer.ggml.{key}_token_id") for role, key in keys.items()}
    return {role: int(index) for role, index in found.items() if index is not None}


def _generation_config(metadata: dict[str, Any]) -> dict[str, Any]:
    # No sampling defaults: a temperature or top_p that a request did not ask for would bias every measurement.
    # Qwen's chat models also stop at <|endoftext|>, which is their padding token.
    ids = _token_ids(metadata)
    stops = sorted({ids[role] for role in ("eos", "pad") if role in ids}, key=lambda index: index != ids.get("eos"))
    return {**{f"{role}_token_id": index for role, index in ids.items()}, "eos_token_id": stops}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """One output tensor: its name, its record in the GGUF file, where its bytes go."""

    name: str
    record: TensorRecord
    begin: int
    """Bytes from the start of the safetensors data."""

    @property
    def end(self) -> int:
        return self.begin + 2 * self.record.elements


def _layout(header: GgufHeader) -> list[_Piece]:
    pieces, at = [], 0
    for record in header.tensors:
        if record.name == "rope_freqs.weight":  # derived from rope_theta
            continue
        pieces.append(_Piece(name=_new_name(record.name), record=record, begin=at))
        at = pieces[-1].end
    return pieces


def _new_name(name: str) -> str:
    if name in _NAMES:
        return _NAMES[name]
    parts = name.split(".")  # blk.<layer>.<module>.<weight|bias>
    if len(parts) != 4 or parts[0] != "blk" or parts[2] not in _NAMES:
        raise ServingError(f"the model file has a tensor that is not understood: {name!r}")
    return f"model.layers.{parts[1]}.{_NAMES[parts[2]]}.{parts[3]}"


def _write_weights(gguf: Path, header: GgufHeader, config: dict[str, Any], target: Path) -> None:
    pieces = _layout(header)
    table: dict[str, Any] = {
        piece.name: {"dtype": "BF16", "shape": piece.record.shape, "data_offsets": [piece.begin, piece.end]}
        for piece in pieces
    }
    text = json.dumps({"__metadata__": {"format": "pt"}, **table}).encode()
    text += b" " * (-len(text) % 8)
    source = np.memmap(gguf, dtype=np.uint8, mode="r")
    with target.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.flush()
        start, descriptor = file.tell(), file.fileno()

        def write(piece: _Piece) -> None:
            at = start + piece.begin
            for block in _blocks(source, piece.record, config):
                data = memoryview(block.tobytes())
                while data:  # a full disk writes short before it fails
                    written = os.pwrite(descriptor, data, at)
                    data, at = data[written:], at + written

        with ThreadPoolExecutor(2) as pool:
            # Largest first, so that the last thread is not left alone with the embedding.
            for _ in pool.map(write, sorted(pieces, key=lambda piece: -piece.record.elements)):
                pass
        os.fsync(descriptor)


def _blocks(source: np.memmap[Any, Any], record: TensorRecord, config: dict[str, Any]) -> Iterator[_Array]:
    """Yield a tensor's weights as bfloat16 bits, a block of whole rows at a time."""
    try:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize
    except ImportError as error:
        raise MissingExtra("converting a model needs `pip install 'archon-ttc[serve-cpu]'`") from error

    kind = GGMLQuantizationType(record.type_id)
    block_elements, block_bytes = GGML_QUANT_SIZES[kind]
    columns = record.shape[-1]
    rows, row_bytes = record.elements // columns, columns // block_elements * block_bytes
    size = rows * row_bytes
    if record.offset + size > source.size:
        raise ServingError(f"the model file is cut off: tensor {record.name!r} ends past its end")
    data = source[record.offset : record.offset + size].reshape(rows, row_bytes)
    step = _rows_at_a_time(record, rows, columns, config)
    for first in range(0, rows, step):
        weights = dequantize(data[first : first + step], kind).reshape(-1, columns).astype(np.float32, copy=False)
        yield to_bfloat16(_unpermute(weights, record, config))


def _rows_at_a_time(record: TensorRecord, rows: int, columns: int, config: dict[str, Any]) -> int:
    step = max(1, _BLOCK_ELEMENTS // columns)
    if _is_permuted(record, config):  # whole heads only
        head = int(config["head_dim"])
        return max(1, step // head) * head
    return min(step, rows)


def _is_permuted(record: TensorRecord, config: dict[str, Any]) -> bool:
    module = record.name.split(".")[-2]
    return config["model_type"] == "llama" and module in ("attn_q", "attn_k")


def _unpermute(weights: _Array, record: TensorRecord, config: dict[str, Any]) -> _Array:
    """Undo GGUF's interleaving of a llama head's rotary halves; `weights` is (rows, columns), whole heads of rows."""
    if not _is_permuted(record, config):
        return weights
    half = config["head_dim"] // 2
    return weights.reshape(-1, half, 2, weights.shape[-1]).swapaxes(1, 2).reshape(weights.shape)


def to_bfloat16(values: _Array) -> _Array:
    """Return float32 values as bfloat16 bit patterns, rounded to the nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
