"""Texts that PyYAML would stumble over, or make far too much of."""

import pytest

from archon.config.document import parse_document
from archon.errors import ConfigError


def nested(levels: int, times: int) -> str:
    lines = ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * times)}]" for i in range(1, levels))]
    return "\n".join([*lines, f"pipeline: *a{levels - 1}", ""])


def test_nested_anchors_that_make_millions_of_values_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"p.yaml: anchors make more than 100,000 values"):
        parse_document(nested(9, 9), source="p.yaml")


def test_a_few_anchors_work() -> None:
    assert parse_document(nested(2, 2)).data == {"a0": ["x"], "a1": [["x"], ["x"]], "pipeline": [["x"], ["x"]]}


def test_an_anchor_inside_itself_ends() -> None:
    data = parse_document("pipeline: &p [*p]\n").data
    assert isinstance(data, dict)
    assert data["pipeline"][0] is data["pipeline"]


@pytest.mark.parametrize("value", ["!!bool x", "!!timestamp x", "!!int x", "!!float x", "2020-99-99"])
def test_a_tag_that_does_not_fit_its_value_is_one_error(value: str) -> None:
    with pytest.raises(ConfigError, match=r"^p.yaml: not YAML that can be read: [^\n]*$"):
        parse_document(f"name: {value}\n", source="p.yaml")
