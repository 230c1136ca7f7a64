from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from serving_fakes import HEADS, HIDDEN, KV_HEADS, gguf_bytes, quantise_q8_0, tensors

from archon.errors import ServingError
from archon.serving.convert import convert, to_bfloat16

gguf = pytest.importorskip("gguf")


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    table = json.loads(raw[8 : 8 + size])
    table.pop("__metadata__")
    body = raw[8 + size :]
    return {
        name: np.frombuffer(body[slice(*info["data_offsets"])], np.uint16).reshape(info["shape"])
        for name, info in table.items()
    }


def dequantise(weights: np.ndarray) -> np.ndarray:
    """Q8_0 and back, written independently of the code under test: 34 bytes a block of 32."""
    if weights.ndim == 1:
        return weights
    raw = np.frombuffer(quantise_q8_0(weights), np.uint8).reshape(-1, 34)
    scales = raw[:, :2].copy().view(np.float16).astype(np.float32)
    return (raw[:, 2:].copy().view(np.int8) * scales).reshape(weights.shape)


def convert_tiny(tmp_path: Path, arch: str, pre: str) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_bytes(arch, pre))
    convert(path, tmp_path / "out")
    return tmp_path / "out"


def test_bfloat16_rounds_to_nearest_even():
    # 1 + 2^-8 lies half-way between 1 (even) and 1 + 2^-7 (odd); 1 + 3·2^-8 between 1 + 2^-7 (odd) and 1 + 2^-6.
    values = np.array([1.0, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -2.5, 0.0], np.float32)
    assert [hex(x) for x in to_bfloat16(values)] == ["0x3f80", "0x3f80", "0x3f82", "0x3f81", "0xc020", "0x0"]


def test_qwen2_weights_are_the_dequantised_ones(tmp_path: Path):
    out = read_safetensors(convert_tiny(tmp_path, "qwen2", "qwen2") / "model.safetensors")
    given = tensors("qwen2")
    assert len(out) == len(given)
    pairs = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "model.layers.1.self_attn.q_proj.weight": "blk.1.attn_q.weight",
        "model.layers.0.self_attn.k_proj.bias": "blk.0.attn_k.bias",
        "model.layers.0.mlp.down_proj.weight": "blk.0.ffn_down.weight",
        "model.layers.1.post_attention_layernorm.weight": "blk.1.ffn_norm.weight",
    }
    for name, original in pairs.items():
        assert np.array_equal(out[name], to_bfloat16(dequantise(given[original]))), name


def test_llama_query_and_key_rows_are_put_back_in_order(tmp_path: Path):
    out = read_safetensors(convert_tiny(tmp_path, "llama", "smollm") / "model.safetensors")
    given = tensors("llama")
    head = HIDDEN // HEADS
    for letter, heads in (("q", HEADS), ("k", KV_HEADS)):
        stored = dequantise(given[f"blk.0.attn_{letter}.weight"])
        wanted = np.empty_like(stored)
        for h in range(heads):  # GGUF's row 2i + s of a head is row i + s·half of the published weights
            for i in range(head // 2):
                for s in range(2):
                    wanted[h * head + i + s * (head // 2)] = stored[h * head + 2 * i + s]
        assert np.array_equal(out[f"model.layers.0.self_attn.{letter}_proj.weight"], to_bfloat16(wanted))
    values = to_bfloat16(dequantise(given["blk.0.attn_v.weight"]))
    assert np.array_equal(out["model.layers.0.self_attn.v_proj.weight"], values)


def test_configs_carry_no_sampling_defaults(tmp_path: Path):
    out = convert_tiny(tmp_path, "qwen2", "qwen2")
    config = json.loads((out / "config.json").read_text())
    assert config["architectures"] == ["Qwen2ForCausalLM"]
    assert (config["vocab_size"], config["head_dim"], config["rms_norm_eps"]) == (260, 16, 1e-6)
    assert config["tie_word_embeddings"] is True
    generation = json.loads((out / "generation_config.json").read_text())
    assert generation == {"bos_token_id": 257, "eos_token_id": [257], "pad_token_id": 257}


def test_the_tokenizer_reads_back(tmp_path: Path):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(convert_tiny(tmp_path, "qwen2", "qwen2") / "tokenizer.json"))
    assert tokenizer.encode("he<|end|>").ids == [256, 257]
    assert tokenizer.decode(tokenizer.encode("hehe é 12 <tool>").ids) == "hehe é 12 <tool>"
    assert tokenizer.token_to_id("[PAD259]") is None


def test_an_unknown_architecture_or_splitter_is_named(tmp_path: Path):
    with pytest.raises(ServingError, match="architecture 'mamba'"):
        convert_tiny(tmp_path, "mamba", "qwen2")
    with pytest.raises(ServingError, match="splitter 'smolm'; did you mean 'smollm'"):
        convert_tiny(tmp_path, "llama", "smolm")


def test_a_file_cut_within_its_weights_is_refused(tmp_path: Path):
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf_bytes()[:-5000])
    with pytest.raises(ServingError, match="cut off"):
        convert(path, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(("arch", "pre"), [("qwen2", "qwen2"), ("llama", "smollm")])
@pytest.mark.filterwarnings("ignore")
def test_transformers_reads_the_same_weights_from_the_same_file(tmp_path: Path, arch: str, pre: str):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    out = convert_tiny(tmp_path, arch, pre)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="tiny.gguf", dtype=torch.float32)
    ours = transformers.AutoModelForCausalLM.from_pretrained(out, dtype=torch.bfloat16)
    wanted = theirs.state_dict()
    assert set(ours.state_dict()) == set(wanted)
    for name, tensor in ours.state_dict().items():
        assert torch.equal(tensor, wanted[name].to(torch.bfloat16)), name
