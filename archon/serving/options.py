"""How a local model is served: the options, and the recipes in `configs/serving/` that set them by kind of machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from archon.errors import ConfigError
from archon.serving._strict import build, load_mapping

RECIPES = Path(__file__).with_name("recipes")
"""The recipes that come with the package; `configs/serving/` in the repository links to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculator:
    """A cheap proposer of tokens that the model then checks; it never changes what is sampled, only the speed."""

    method: Literal["ngram", "draft_model", "eagle3"]
    """`ngram` looks the continuation up in the prompt and needs no weights; `eagle3` is for GPUs."""
    tokens: int = 4
    """Tokens proposed at a time."""
    model: str | None = None
    """The draft's folder or hub repository, for `draft_model` and `eagle3`."""
    lookup_max: int = 4
    """For `ngram`: the longest piece of text that is looked up, in tokens."""

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.lookup_max < 1:
            raise ValueError(f"tokens and lookup_max must be at least 1, got {self.tokens!r} and {self.lookup_max!r}")
        if (self.method == "ngram") != (self.model is None):
            raise ValueError(f"method {self.method!r} {'takes no' if self.model else 'needs a'} model")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """How to serve. Two requests for the same model with equal options share one server."""

    device: Literal["auto", "cpu", "gpu"] = "auto"
    """`auto`: the GPU when there is one and the installed vLLM can use it."""
    port: int | None = None
    """None: any free one."""
    max_model_len: int = 8192
    """The most tokens of prompt and completion together; a model's own limit applies where it is lower."""
    max_num_seqs: int = 64
    """The most completions generated at once; on 2 cores throughput is flat from about 64."""
    kv_cache_gb: int | None = None
    """CPU: gigabytes for keys and values. None: `max_num_seqs` of 2,048 tokens, at most a fifth of the memory."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """CPU: how weights and activations are held. `auto`: bfloat16 where the processor multiplies it, else float32."""
    compile: bool = False
    """Compile the model while starting. Measured for 0.5B on 2 cores: 50 s longer to start, 13 % more tokens a second,
    so it pays in runs of more than about seven minutes. A GPU always compiles."""
    prefix_caching: bool = True
    """Keep the keys and values of prompts that begin alike."""
    speculator: Speculator | None = None
    gpu_memory: float = 0.9
    """GPU: the share of its memory to use."""
    tensor_parallel: int = 1
    """GPU: how many share the model."""
    kv_offload_gb: int | None = None
    """GPU: gigabytes of main memory for keys and values that the GPU has no room for."""
    tool_parser: str | None = None
    """How the model writes tool calls, by vLLM's name for it."""
    reasoning_parser: str | None = None
    """How the model marks hidden thinking, by vLLM's name for it."""
    start_timeout_s: float = 900.0
    """The longest to wait until the server answers."""
    extra_args: tuple[str, ...] = ()
    """Further arguments of vLLM's server, as they are."""

    def __post_init__(self) -> None:
        for name in ("max_model_len", "max_num_seqs", "tensor_parallel", "start_timeout_s"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        for name in ("kv_cache_gb", "kv_offload_gb"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        if self.port is not None and not 0 < self.port < 65536:
            raise ValueError(f"port must be between 1 and 65535, got {self.port!r}")
        if not 0.0 < self.gpu_memory <= 1.0:
            raise ValueError(f"gpu_memory must be above 0 and at most 1, got {self.gpu_memory!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model with the options that suit it on a kind of machine."""

    model: str
    """A name of the catalogue, a Hugging Face folder, or a hub repository `owner/name`."""
    options: ServeOptions = field(default_factory=ServeOptions)


def load_recipe(path: Path) -> Recipe:
    """Return a recipe from a YAML file.

    Raises:
        ConfigError: the file cannot be read, or a key or value in it is not understood.
    """
    return build(Recipe, load_mapping(path), str(path))


def find_recipe(name: str) -> Recipe:
    """Return a recipe that comes with the package by name (`cpu`, `gpu`, ...), or one from a path.

    Raises:
        ConfigError: there is none of that name; the message lists those there are.
    """
    if name.endswith((".yaml", ".yml")):
        return load_recipe(Path(name))
    path = RECIPES / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in RECIPES.glob("*.yaml")))
        raise ConfigError(f"unknown recipe {name!r}; valid: {known}, or a path that ends in .yaml")
    return load_recipe(path)
