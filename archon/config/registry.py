"""The layers that a file can name, by dotted name, so that naming one here imports nothing.

A part that stands above this room, or beside it, adds a line; a user's own layer is written `my_module:MyLayer`.
"""

from __future__ import annotations

import dataclasses
import importlib

from archon.errors import ConfigError, nearest
from archon.pipeline.layer import Leaf

LAYERS: dict[str, str] = {
    "critic": "archon.layers.critic:Critic",
    "fuser": "archon.layers.fuser:Fuser",
    "generator": "archon.layers.generator:Generator",
    "ranker": "archon.layers.ranker:Ranker",
    "revise": "archon.layers.revise:Revise",
    "unit_test_evaluator": "archon.layers.unit_tests:UnitTestEvaluator",
    "unit_test_generator": "archon.layers.unit_tests:UnitTestGenerator",
    "verifier": "archon.layers.verifier:Verifier",
}
"""The name in YAML, and `module:Class`."""

COMPOSITES = ("parallel", "refine", "sequence")
"""The names in YAML of layers that are made of layers."""


def layer_class(name: str) -> type[Leaf]:
    """Return the class of a layer named in a file.

    Raises:
        ConfigError: the name is unknown, or the module or class behind it cannot be used.
    """
    if name not in LAYERS and ":" not in name:
        raise ConfigError(f"unknown layer {name!r}; {nearest(name, (*LAYERS, *COMPOSITES))}, or my_module:MyLayer")
    module_name, _, class_name = LAYERS.get(name, name).partition(":")
    try:
        found = getattr(importlib.import_module(module_name), class_name, None)
    except Exception as error:
        raise ConfigError(f"layer {name!r}: cannot import {module_name!r}: {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Leaf) and dataclasses.is_dataclass(found)):
        raise ConfigError(f"layer {name!r}: {class_name!r} in {module_name!r} is not a dataclass derived from Leaf")
    return found


def layer_name(leaf: Leaf) -> str:
    """Return the name by which a file names a layer: its kind for ours, else `module:Class`.

    Raises:
        ConfigError: the class cannot be reached by a dotted name.
    """
    cls = type(leaf)
    dotted = f"{cls.__module__}:{cls.__qualname__}"
    if LAYERS.get(cls.kind) == dotted:
        return cls.kind
    if "." in cls.__qualname__ or cls.__module__ == "__main__" or not settings_are_plain(cls):
        raise ConfigError(
            f"{leaf.name!r} cannot be written to a file: put its class at the top of a module, so that it has a name "
            f"such as my_module:{cls.__name__}, with settings that are plain values"
        )
    return dotted


def settings_are_plain(cls: type[Leaf]) -> bool:
    """Return whether a layer's settings can stand in a file; a wrapped function cannot."""
    return cls.kind != "function"
