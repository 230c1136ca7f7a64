"""A pipeline's content hash: the same for everything that means the same, and for nothing else.

It does not change when a default is written out or left out, when a whole number stands for a float, with names and
labels, or with how sequences of sequences are bracketed. It changes with every setting of a layer, and with the order.

A setting that a layer got later (`metadata={"added": True}`) is left out while it has its default, so that finished
runs keep their hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from archon.config.layers_form import leaf_settings
from archon.config.model_names import Models
from archon.config.reading import settings_of
from archon.config.registry import layer_name
from archon.errors import ConfigError
from archon.models.protocol import Model
from archon.pipeline.compose import Parallel, Refine, Sequence
from archon.pipeline.layer import FunctionLayer, Layer, Leaf
from archon.pipeline.pipeline import Pipeline, lent_model

_FORM = 1
"""Goes up when the canonical form changes, so that old hashes are never mistaken for new ones."""
_NOT_CONTENT = ("price", "timeout_s", "api_key_env")
"""What a `models:` entry may say without changing what a pipeline answers."""


def pipeline_hash(layer: Layer, *, models: Models | None = None) -> str:
    """Return the SHA-256 of a pipeline's canonical form, in hexadecimal.

    Args:
        layer: a pipeline, compiled or not: unset models count as the one that compiling would lend them.
        models: what stands behind a file's own names; those then count by content, not by name.

    A model object counts by its `spec`, or by its identity where it has none; a function by its dotted name.
    """
    content = {"form": _FORM, "pipeline": _canonical(layer, lent_model(layer), models or {})}
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()


def _canonical(layer: Layer, lent: Model | str | None, models: Models) -> Any:  # noqa: ANN401 (plain data)
    match layer:
        case Pipeline():
            return _canonical(layer.source, lent_model(layer.source) or lent, models)
        case Sequence() | Parallel():
            kind = "sequence" if isinstance(layer, Sequence) else "parallel"
            parts = [_canonical(part, lent, models) for part in layer.layers]
            flat = [inner for part in parts for inner in (part[kind] if set(part) == {kind} else [part])]
            return flat[0] if len(flat) == 1 else {kind: flat}
        case Refine():
            return {
                "refine": _canonical(layer.body, lent, models),
                "until": layer.until,
                "max_rounds": layer.max_rounds,
            }
        case Leaf():
            return _leaf(layer, lent, models)
    return {"layer": f"{type(layer).__module__}:{type(layer).__qualname__}", "repr": repr(layer)}


def _leaf(leaf: Leaf, lent: Model | str | None, models: Models) -> dict[str, Any]:
    if isinstance(leaf, FunctionLayer):
        function = leaf.function
        return {"layer": "function", "function": f"{function.__module__}:{function.__qualname__}"}
    try:
        name = layer_name(leaf)
    except ConfigError:  # a class that no file can name still has one of its own
        name = f"{type(leaf).__module__}:{type(leaf).__qualname__}"
    settings = leaf_settings(leaf, lambda model: _content(model, models), lent=lent, defaults=True)
    settings.pop("label")
    for setting, each in settings_of(type(leaf)).items():
        if each.metadata.get("added") and getattr(leaf, setting) == each.default:
            settings.pop(setting)
    return {"layer": name, **settings}


def _content(model: Model | str, models: Models) -> str:
    """Return what tells a model from another one."""
    spec: str | Mapping[str, Any] = model if isinstance(model, str) else getattr(model, "spec", None) or model.identity
    if isinstance(spec, str):
        spec = models.get(spec, spec)
    if isinstance(spec, str):
        return spec
    return json.dumps({key: value for key, value in spec.items() if key not in _NOT_CONTENT}, sort_keys=True)
