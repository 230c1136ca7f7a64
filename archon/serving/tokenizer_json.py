"""Turn a GGUF file's vocabulary into the files of a fast tokenizer.

The vocabulary and merges are in the file; how text is split before merging is named by `tokenizer.ggml.pre`, and the
splitters here are those of the publishers' own `tokenizer.json` (transformers' GGUF reader drops SmolLM2's split of
digits and Qwen's NFC normaliser).
"""

from __future__ import annotations

from typing import Any

from archon.errors import ServingError, nearest

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4

_QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _byte_level(*, use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": use_regex}


_SPLITTERS: dict[str, tuple[dict[str, Any] | None, list[dict[str, Any]]]] = {
    "qwen2": (
        {"type": "NFC"},
        [
            {"type": "Split", "pattern": {"Regex": _QWEN2_SPLIT}, "behavior": "Isolated", "invert": False},
            _byte_level(use_regex=False),
        ],
    ),
    "smollm": (None, [{"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)]),
}


def tokenizer_json(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the content of `tokenizer.json`.

    Raises:
        ServingError: the vocabulary is not byte-level BPE with a splitter known here.
    """
    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre not in _SPLITTERS:
        raise ServingError(f"cannot convert a tokenizer of kind {kind!r}, splitter {pre!r}; {nearest(pre, _SPLITTERS)}")
    normaliser, splitters = _SPLITTERS[pre]
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    pieces = list(enumerate(zip(tokens, types, strict=True)))
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            _added(index, token, special=t == _CONTROL)
            for index, (token, t) in pieces
            if t in (_CONTROL, _USER_DEFINED)
        ],
        "normalizer": normaliser,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splitters},
        "post_processor": _byte_level(use_regex=False),
        "decoder": _byte_level(use_regex=False),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            # Padding entries (type "unused") are left out, as in the publishers' files.
            "vocab": {token: index for index, (token, t) in pieces if t in (_NORMAL, _CONTROL, _USER_DEFINED)},
            "merges": [merge.split(" ", 1) for merge in metadata["tokenizer.ggml.merges"]],
        },
    }


def _added(index: int, token: str, *, special: bool) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": index, "content": token, **flags, "special": special}


def tokenizer_config(metadata: dict[str, Any], max_length: int) -> dict[str, Any]:
    """Return the content of `tokenizer_config.json`, the chat template in it."""
    tokens = metadata["tokenizer.ggml.tokens"]

    def token(role: str) -> str | None:
        index = metadata.get(f"tokenizer.ggml.{role}_token_id")
        return None if index is None else str(tokens[index])

    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": token("bos"),
        "eos_token": token("eos"),
        "pad_token": token("padding"),
        "unk_token": token("unknown"),
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
        "chat_template": metadata["tokenizer.chat_template"],
    }
