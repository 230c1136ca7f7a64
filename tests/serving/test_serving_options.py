from __future__ import annotations

from pathlib import Path

import pytest

from archon.errors import ConfigError
from archon.serving.options import RECIPES, ServeOptions, Speculator, find_recipe, load_recipe

CONFIGS = Path(__file__).parents[2] / "configs/serving"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_recipe_loads_and_is_the_packaged_one(path: Path):
    assert path.resolve() == (RECIPES / path.name).resolve()
    recipe = load_recipe(path)
    assert recipe == find_recipe(path.stem) == find_recipe(str(path))
    assert recipe.options.device == path.stem.split("-")[0]


def test_no_recipe_is_missing_from_configs():
    assert {path.name for path in CONFIGS.glob("*.yaml")} == {path.name for path in RECIPES.glob("*.yaml")}


def test_the_gpu_recipe_is_an_fp8_mixture_of_experts_with_a_speculator():
    recipe = find_recipe("gpu")
    assert recipe.model == "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8"
    assert recipe.options.speculator == Speculator(method="ngram", tokens=4, lookup_max=4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: m\noption: {}\n", "unknown key 'option'; did you mean 'options'"),
        ("model: m\noptions: {max_num_seq: 3}\n", "options: unknown key 'max_num_seq'; did you mean 'max_num_seqs'"),
        (
            "model: m\noptions: {device: tpu}\n",
            "options.device: 'tpu' is not valid; did you mean 'gpu'? valid: auto, cpu, gpu",
        ),
        ("model: m\noptions: {max_num_seqs: 0}\n", "max_num_seqs must be at least 1, got 0"),
        ("model: m\noptions: {port: 70000}\n", "port must be between 1 and 65535, got 70000"),
        ("model: m\noptions: {gpu_memory: 2}\n", "gpu_memory must be above 0 and at most 1, got 2.0"),
        ("model: m\noptions: {extra_args: -x}\n", "expected a list, got '-x'"),
        ("model: m\noptions: {speculator: {method: eagle}}\n", "'eagle' is not valid; did you mean 'eagle3'"),
        ("model: m\noptions: {speculator: {method: eagle3}}\n", "method 'eagle3' needs a model"),
        ("model: m\noptions: {speculator: {method: ngram, model: x}}\n", "method 'ngram' takes no model"),
        ("options: {}\n", "missing model"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "r.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_recipe(path)
    assert message in str(raised.value)


def test_an_unknown_recipe_lists_those_there_are():
    with pytest.raises(ConfigError, match="unknown recipe 'tpu'; valid: cpu, cpu-throughput, gpu"):
        find_recipe("tpu")


def test_null_stands_for_not_set(tmp_path: Path):
    path = tmp_path / "r.yaml"
    path.write_text("model: m\noptions: {port: null, extra_args: [--a, b]}\n")
    assert load_recipe(path).options == ServeOptions(extra_args=("--a", "b"))
