"""Read the JSON configurations that the authors of Archon published onto our layers.

Source: Saad-Falcon et al. 2024 (arXiv 2409.15254), github.com/ScalingIntelligence/Archon. A layer is a list of
components, in older files an object with `models`, or one component. Differences from what the authors' program does:

- Their generators send a default system message unless `no_system` is set, and so do these.
- Their unit tests are appended to the problem, so generators after a unit test generator are shown the tests here too.
- Their `first_k` stops judging early; here every candidate is judged and the best are kept, which gives the same
  candidates when enough of them pass.
- Keys that their program reads nowhere, misspelt ones among them, are errors here; lenient reading lists them instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archon.config.document import Document, Place, read_document
from archon.config.pipeline_file import LoadedPipeline
from archon.config.reading import Reading, Unfit, hints_of, read_value, shown
from archon.config.registry import layer_class
from archon.errors import ConfigError, nearest
from archon.layers.fuser import Fuser
from archon.layers.generator import Generator
from archon.pipeline.compose import Parallel, Sequence
from archon.pipeline.layer import Layer, Leaf

_SYSTEM = "You are a helpful assistant"
_PAIR_RM = "llm-blender/PairRM"
_PROVIDERS = {
    "Anthropic_API": "anthropic",
    "Bedrock_API": "bedrock",
    "Google_API": "gemini",
    "Groq_API": "groq",
    "OpenAI_API": "openai",
    "Together_API": "together_ai",
}
"""Their `model_type`, and the provider's name in `litellm/PROVIDER/MODEL`."""
_SERVED = ("tgi", "vLLM")
_ASKING = {"temperature": "temperature", "max_tokens": "max_tokens"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Component:
    """How the keys of one component type are read."""

    fields: Mapping[str, str]
    """A key that sets a field of our layer."""
    own: tuple[str, ...] = ()
    """Keys that need a rule of their own."""
    idle: tuple[str, ...] = ()
    """Keys that are found in published files and change nothing, there or here."""

    @property
    def valid(self) -> tuple[str, ...]:
        """Return every key that is understood."""
        return ("type", "model", "model_type", *self.fields, *self.own)


_TYPES = {
    "generator": _Component(
        fields={**_ASKING, "samples": "n"},
        own=("no_system", "remove_unit_tests_from_prompt"),
        idle=("checkpoint", "top_k"),
    ),
    "critic": _Component(fields=_ASKING, own=("samples",), idle=("checkpoint", "ranker_batch_size", "top_k")),
    "ranker": _Component(
        fields={**_ASKING, "top_k": "top_k", "use_critiques": "use_critiques"},
        own=("samples",),
        idle=("checkpoint", "ranker_batch_size"),
    ),
    "fuser": _Component(
        fields={**_ASKING, "samples": "n", "length_control": "length_control"},
        own=("remove_unit_tests_from_prompt",),
        idle=("checkpoint", "fuse_generations_count", "ranker_config", "top_k", "top_k_generations"),
    ),
    "verifier": _Component(fields=_ASKING, own=("samples", "first_k"), idle=("batch_num", "checkpoint")),
    "unit_test_generator": _Component(fields={**_ASKING, "unit_test_cap": "n"}, own=("samples",), idle=("checkpoint",)),
    "unit_test_evaluator": _Component(
        fields={**_ASKING, "top_k": "top_k"},
        own=("samples", "first_k", "first_pass", "remove_unit_tests_from_prompt"),
        idle=("checkpoint",),
    ),
}


def load_archon_json(source: Path | str | Mapping[str, Any], *, lenient: bool = False) -> LoadedPipeline:
    """Return the pipeline of a published Archon configuration, from a file or from its mapping.

    Raises:
        ConfigError: a key is unknown, misspelt or without effect (unless `lenient`), or a value cannot be used.
    """
    return read_archon_json(
        Document(data=source) if isinstance(source, Mapping) else read_document(Path(source)), lenient=lenient
    )


def read_archon_json(document: Document, *, lenient: bool = False) -> LoadedPipeline:
    """Return the pipeline of a published Archon configuration that was read; see `load_archon_json`."""
    reading = Reading(document, lenient=lenient)
    top = reading.mapping(document.data, (), example="{name: ..., layers: [[{type: generator, ...}]]}")
    reading.finish()
    if "layers" not in top:
        searching = " (this looks like a search's settings, not a pipeline)" if "search_algorithm_choice" in top else ""
        reading.problem((), f"the key 'layers' is missing{searching}: there are {shown(', '.join(sorted(top)))}")
        reading.finish()
    for key in top:
        if key == "custom":
            reading.without_effect(
                (key,), "'custom' has no effect: write a layer of your own as my_module:MyLayer in YAML"
            )
        elif key not in ("name", "layers"):
            reading.unknown((key,), ("name", "layers"))
    name = top.get("name", Path(document.source).stem or "pipeline")
    if not isinstance(name, str) or not name.strip():
        reading.problem(("name",), f"{shown(name)} is not a name: valid: text")
    layers = _layers(top["layers"], reading)
    reading.finish()
    pipeline = layers[0] if len(layers) == 1 else Sequence(layers=tuple(layers))
    return LoadedPipeline(name=name, pipeline=pipeline, ignored=tuple(reading.ignored))


def _layers(given: object, reading: Reading) -> list[Layer]:
    if not isinstance(given, list) or not given:
        reading.problem(("layers",), f"{shown(given)} is not a list of layers")
        return []
    layers: list[Layer] = []
    tests_written = False
    for index, each in enumerate(given):
        place: Place = ("layers", index)
        leaves = [
            leaf
            for component, where in _components(each, place, reading)
            if (leaf := _leaf(component, where, reading, show_tests=tests_written)) is not None
        ]
        if leaves:
            layers.append(_side_by_side(leaves))
            tests_written |= any(leaf.kind == "unit_test_generator" for leaf in leaves)
    return layers


def _components(given: object, place: Place, reading: Reading) -> list[tuple[Mapping[str, Any], Place]]:
    """Return a layer's components with their places, whichever of the three forms it has."""
    if isinstance(given, dict) and "models" in given:
        for key in given:
            if key == "branches":
                reading.without_effect((*place, key), "'branches' has no effect: use samples, or several components")
            elif key != "models":
                reading.unknown((*place, key), ("models",))
        given, place = given["models"], (*place, "models")
    if isinstance(given, dict):
        return [(given, place)]
    if not isinstance(given, list) or not given:
        reading.problem(
            place, f"{shown(given)} is not a layer: valid: a list of components such as {{type: generator, ...}}"
        )
        return []
    example = "{type: generator, model: ...}"
    return [(reading.mapping(one, (*place, i), example=example), (*place, i)) for i, one in enumerate(given)]


def _leaf(given: Mapping[str, Any], place: Place, reading: Reading, *, show_tests: bool) -> Leaf | None:
    known = len(reading.problems)
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        if given:
            what = "'type' is missing" if kind is None else f"unknown type {kind!r}"
            reading.problem((*place, "type"), f"{what}; {nearest(str(kind), _TYPES)}")
        return None
    component = _TYPES[kind]
    for key in given:
        if key in component.idle:
            reading.without_effect((*place, key), f"{key!r} has no effect on a {kind}; {nearest(key, component.valid)}")
        elif key not in component.valid:
            reading.unknown((*place, key), component.valid)
    model = _model(given, place, reading)
    cls = layer_class(kind)
    hints = hints_of(cls)
    settings: dict[str, Any] = {"model": model}
    if kind == "ranker":
        settings["use_critiques"] = False
    for key, name in component.fields.items():
        if key in given:
            settings |= {name: _value(hints[name], given[key], (*place, key), reading)}
    settings |= _own_rules(kind, given, place, reading, show_tests=show_tests)
    if len(reading.problems) > known:
        return None
    try:
        return cls(**settings)
    except ConfigError as error:
        reading.problem(place, str(error))
        return None


def _value(hint: Any, value: object, place: Place, reading: Reading) -> Any:  # noqa: ANN401 (as typed as the hint)
    try:
        return read_value(hint, value)
    except Unfit as error:
        reading.problem((*place, *error.place), str(error))
        return None


def _own_rules(
    kind: str, given: Mapping[str, Any], place: Place, reading: Reading, *, show_tests: bool
) -> dict[str, Any]:
    """Return the settings of the keys that set no field by themselves."""
    if kind not in {"generator", "fuser"} and given.get("samples", 1) != 1:
        reading.problem((*place, "samples"), f"{given['samples']!r} samples of a {kind} would not be used: valid: 1")
    flags = {
        key: _value(bool, given[key], (*place, key), reading)
        for key in ("no_system", "remove_unit_tests_from_prompt", "first_pass")
        if key in given and key in _TYPES[kind].own
    }
    first_k = _value(int, given["first_k"], (*place, "first_k"), reading) if _has(given, "first_k", kind) else None
    match kind:
        case "generator":
            hidden = flags.get("remove_unit_tests_from_prompt", False)
            return {"system": None if flags.get("no_system") else _SYSTEM, "show_tests": show_tests and not hidden}
        case "verifier":
            if first_k not in (None, 1):
                reading.problem(
                    (*place, "first_k"), f"{first_k!r} verified candidates cannot be kept: valid: 1, or left out"
                )
            return {"keep": "passed" if first_k is None else "best"}
        case "unit_test_evaluator" | "fuser":
            if flags.get("remove_unit_tests_from_prompt") is False:
                where = (*place, "remove_unit_tests_from_prompt")
                reading.without_effect(where, f"false has no effect on a {kind}, whose prompt never repeats the tests")
            if kind == "unit_test_evaluator" and first_k is not None:
                return {"top_k": first_k}
            return {"top_k": 1} if flags.get("first_pass") else {}
    return {}


def _has(given: Mapping[str, Any], key: str, kind: str) -> bool:
    return key in given and key in _TYPES[kind].own and given[key] is not None


def _model(given: Mapping[str, Any], place: Place, reading: Reading) -> str:
    """Return the name of a component's model."""
    model, model_type = given.get("model"), given.get("model_type")
    if not isinstance(model, str) or not model:
        reading.problem((*place, "model"), f"{shown(model)} is not a model: valid: the model's id at its provider")
        return ""
    if model == _PAIR_RM:
        message = f"{_PAIR_RM!r} is a scoring model that writes no text: valid: a language model that ranks"
        reading.problem((*place, "model"), message)
        return ""
    if model_type in _PROVIDERS:
        return f"litellm/{_PROVIDERS[model_type]}/{model}"
    if model_type not in _SERVED:
        valid = nearest(str(model_type), (*_PROVIDERS, *_SERVED))
        reading.problem((*place, "model_type"), f"unknown model_type {model_type!r}; {valid}")
        return ""
    if "://" in model:
        return f"{model.rstrip('/').removesuffix('/v1')}/v1#{model_type}"
    if model_type == "vLLM" and "/" not in model:
        return f"local/{model}"
    reading.problem((*place, "model"), f"{model!r} does not say where it is served: valid: http://HOST:PORT")
    return ""


def _side_by_side(leaves: list[Leaf]) -> Layer:
    """Return a layer's components as one layer, or as few as can ask for the same."""
    merged = _merged(leaves)
    return merged[0] if len(merged) == 1 else Parallel(layers=tuple(merged))


def _merged(leaves: list[Leaf]) -> list[Leaf]:
    """Make equal generators one with several models, and equal fusers one with more samples."""
    merged: list[Leaf] = []
    for leaf in leaves:
        for i, other in enumerate(merged):
            if (both := _both(other, leaf)) is not None:
                merged[i] = both
                break
        else:
            merged.append(leaf)
    return merged


def _both(first: Leaf, second: Leaf) -> Leaf | None:
    """Return one layer that asks for what two ask for; None when no single one does."""
    match first, second:
        case Generator(), Generator() if replace(first, model=None) == replace(second, model=None):
            return replace(first, model=(*first.models, *second.models))
        case Fuser(), Fuser() if replace(first, n=1) == replace(second, n=1):
            return replace(first, n=first.n + second.n)
    return None
