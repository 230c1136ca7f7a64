"""A pipeline's file: read one, write one.

    name: generate-critique-rank-fuse-verify
    pipeline:
      - generator: {model: local/qwen2.5-coder-0.5b, n: 8, temperature: [0.2, 0.8]}
      - critic
      - ranker: {top_k: 3}
      - fuser
      - verifier: {unit_tests: 8}
    refine: {until: verified, max_rounds: 2}
    budget: {tokens: 100000}
    models:
      small: {url: http://127.0.0.1:8000/v1, model: qwen}

Only `pipeline` is needed. Whatever is not understood is an error that names the file, the line, the place and the
nearest valid name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from archon.budget import Budget
from archon.config.document import Document
from archon.config.layers_form import LayerReader, items_of, loop_settings
from archon.config.model_names import Models, read_models, spec_of
from archon.config.reading import Reading, build, shown
from archon.models.protocol import Model
from archon.pipeline.compose import Refine
from archon.pipeline.layer import Layer
from archon.pipeline.pipeline import Pipeline

_KEYS = ("name", "pipeline", "refine", "budget", "models")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedPipeline:
    """What a pipeline's file says."""

    name: str
    """The name that reports show; the file's own name where it gives none."""
    pipeline: Layer
    """The layers as written; `.compiled(name)` checks their order."""
    budget: Budget | None = None
    """The file's default limits for one problem."""
    models: Models = field(default_factory=dict)
    """The file's own names for models, resolved by the run."""
    ignored: tuple[str, ...] = ()
    """The places of the keys that lenient reading passed over."""


def read_pipeline(document: Document, *, lenient: bool = False) -> LoadedPipeline:
    """Return the pipeline in a document.

    Raises:
        ConfigError: something in it is not understood; the first such thing, and how many more there are.
    """
    reading = Reading(document, lenient=lenient)
    top = reading.mapping(document.data, (), example="{name: ..., pipeline: [generator, ...]}")
    reading.finish()
    if "pipeline" not in top:
        reading.problem((), f"the key 'pipeline' is missing: there are {shown(', '.join(top)) if top else 'no keys'}")
        reading.finish()
    for key in top:
        if key not in _KEYS:
            reading.unknown((key,), _KEYS)
    models = read_models(top.get("models"), ("models",), reading)
    reader = LayerReader(reading, models)
    layer = reader.layers(top["pipeline"], ("pipeline",))
    if top.get("refine") is not None:
        loop = reading.mapping(top["refine"], ("refine",), example="{until: verified, max_rounds: 2}")
        layer = reader.loop(layer, loop, ("refine",))
    budget = None
    if top.get("budget") is not None:
        limits = reading.mapping(top["budget"], ("budget",), example="{tokens: 100000}")
        budget = build(Budget, limits, ("budget",), reading)
    name = _name(top.get("name"), reading)
    reading.finish()
    assert layer is not None
    return LoadedPipeline(name=name, pipeline=layer, budget=budget, models=models, ignored=tuple(reading.ignored))


def _name(given: object, reading: Reading) -> str:
    if given is None:
        return Path(reading.document.source).stem or "pipeline"
    if isinstance(given, str) and given.strip() and given.isprintable() and len(given) <= 200:
        return given
    reading.problem(
        ("name",), f"{shown(given)} is not a name: valid: one line of text (quote it if YAML reads a number)"
    )
    return ""


def dump_pipeline(
    layer: Layer, *, name: str = "pipeline", budget: Budget | None = None, models: Mapping[str, Any] | None = None
) -> str:
    """Return a pipeline as YAML that `load_pipeline` reads back to an equal one.

    Settings at their default are left out. A compiled pipeline is written as it was before it was compiled.

    Raises:
        ConfigError: a layer or a model object has no name in a file.
    """
    own: dict[str, Any] = dict(models or {})
    written = layer.source if isinstance(layer, Pipeline) else layer
    content: dict[str, Any] = {"name": name}
    loop = loop_settings(written) if isinstance(written, Refine) else None
    body = written.body if isinstance(written, Refine) else written
    content["pipeline"] = items_of(body, lambda model: _file_name(model, own))
    if loop is not None:
        content["refine"] = loop
    if budget is not None:
        content["budget"] = {
            key: value for key in ("tokens", "usd", "seconds", "calls") if (value := getattr(budget, key)) is not None
        }
    if own:
        content["models"] = own
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Writes a repeated value out each time instead of an anchor."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True: no anchors."""
        return True


def _file_name(model: Model | str, own: dict[str, Any]) -> str:
    """Return a model's name; settings that an object carries are put under `models:`, by the object's own name."""
    spec = spec_of(model)
    if isinstance(spec, str):
        return spec
    assert not isinstance(model, str)
    base = model.name.replace("/", "-") or "model"
    name = next(
        candidate
        for candidate in (base, *(f"{base}-{i}" for i in range(2, 1000)))
        if candidate not in own or own[candidate] == dict(spec)
    )
    own[name] = dict(spec)
    return name
