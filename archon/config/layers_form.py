"""Layers as plain data, in both directions: the items of a file's `pipeline:` list.

An item is a layer's name (`critic`), a name with settings (`ranker: {top_k: 3}`), or one of three composites:
`parallel: [[...], [...]]` with one list for each branch, `sequence: [...]`, and
`refine: {body: [...], until: verified, max_rounds: 2}`. Settings that have their default are left out when writing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from archon.config.document import Place
from archon.config.model_names import Models, name_problem
from archon.config.reading import Reading, build, hints_of, read_value, settings_of, shown
from archon.config.registry import COMPOSITES, layer_class, layer_name
from archon.errors import ConfigError
from archon.models.protocol import Model
from archon.pipeline.compose import Parallel, Refine, Sequence
from archon.pipeline.layer import Layer, Leaf
from archon.pipeline.pipeline import Pipeline, lent_model

Named = Callable[[Model | str], str]
"""Turns a layer's model into the string that stands in the file."""

_DEEPEST = 50
_MOST_LAYERS = 1000
"""Bounds that no real pipeline meets: aliases may repeat a part, and a part may even hold itself."""
_ITEM = "a layer's name, or a mapping such as {ranker: {top_k: 3}}"


class LayerReader:
    """Reads layers for one document; what is wrong is noted in its `reading`."""

    def __init__(self, reading: Reading, models: Models) -> None:
        self.reading = reading
        self.models = models
        self._count = 0

    def layers(self, given: object, place: Place) -> Layer | None:
        """Return a list of items as one layer: the item itself when there is one, else their sequence."""
        layers = self._items(given, place)
        if layers is None:
            return None
        return layers[0] if len(layers) == 1 else Sequence(layers=layers)

    def _items(self, given: object, place: Place) -> tuple[Layer, ...] | None:
        if not isinstance(given, list) or not given:
            what = "an empty list" if given == [] else shown(given)
            self.reading.problem(place, f"{what} is not a list of layers: valid: [generator, ...]")
            return None
        layers = [self._item(item, (*place, index)) for index, item in enumerate(given)]
        return None if None in layers else tuple(layer for layer in layers if layer is not None)

    def _item(self, given: object, place: Place) -> Layer | None:
        self._count += 1
        if self._count > _MOST_LAYERS or len(place) > 3 * _DEEPEST:
            raise ConfigError(
                f"{self.reading.document.at(place[:3])}: more than {_MOST_LAYERS} layers, or layers inside themselves"
            )
        if isinstance(given, str):
            return self._named(given, None, place)
        if isinstance(given, dict) and len(given) == 1:
            ((name, settings),) = given.items()
            return self._named(str(name), settings, place)
        if isinstance(given, dict) and given:
            first, *others = given
            indented = (
                f", or {others[0]!r} indented further to be a setting of {first!r}" if given[first] is None else ""
            )
            self.reading.problem(
                place, f"{', '.join(map(repr, given))} in one item: valid: one layer an item{indented}"
            )
            return None
        self.reading.problem(place, f"{shown(given)} is not a layer: valid: {_ITEM}")
        return None

    def _named(self, name: str, settings: object, place: Place) -> Layer | None:
        here = (*place, name)
        match name:
            case "sequence":
                layers = self._items(settings, here)
                return None if layers is None else Sequence(layers=layers)
            case "parallel":
                return self._parallel(settings, here)
            case "refine":
                return self._refine(settings, here)
        return self._leaf(name, settings, place)

    def _parallel(self, given: object, place: Place) -> Layer | None:
        if not isinstance(given, list) or not given:
            self.reading.problem(place, f"{shown(given)} is not a list of branches: valid: [[generator], [generator]]")
            return None
        branches = []
        for index, branch in enumerate(given):
            here = (*place, index)
            branches.append(self.layers(branch, here) if isinstance(branch, list) else self._item(branch, here))
        known = tuple(branch for branch in branches if branch is not None)
        return Parallel(layers=known) if len(known) == len(branches) else None

    def _refine(self, given: object, place: Place) -> Layer | None:
        known = len(self.reading.problems)
        settings = dict(self.reading.mapping(given, place, example="{body: [...], until: verified, max_rounds: 2}"))
        if len(self.reading.problems) > known:
            return None
        if "body" not in settings:
            self.reading.problem(place, "'body' is missing: valid: body: [generator, ...]")
            return None
        body = self.layers(settings.pop("body", None), (*place, "body"))
        return self.loop(body, settings, place)

    def loop(self, body: Layer | None, given: Mapping[str, Any], place: Place) -> Layer | None:
        """Return a refine loop over a body that was read."""
        settings = build(_Loop, given, place, self.reading)
        if settings is None or body is None:
            return None
        try:
            return Refine(body=body, **dataclasses.asdict(settings))
        except ConfigError as error:
            self.reading.problem(place, str(error))
            return None

    def _leaf(self, name: str, settings: object, place: Place) -> Layer | None:
        try:
            cls = layer_class(name)
        except ConfigError as error:
            self.reading.problem(place, str(error))
            return None
        here = (*place, name)
        given = (
            {} if settings is None else self.reading.mapping(settings, here, example=f"{{{name}: {{setting: value}}}}")
        )
        self._check_models(given.get("model"), (*here, "model"))
        return build(cls, given, here, self.reading)

    def _check_models(self, given: object, place: Place) -> None:
        names = [(given, place)] if isinstance(given, str) else []
        if isinstance(given, list):
            names = [(name, (*place, index)) for index, name in enumerate(given) if isinstance(name, str)]
        if isinstance(given, dict):
            names = []
            self.reading.problem(place, "settings of a model stand under models: at the top; a layer gives its name")
        for name, where in names:
            if problem := name_problem(name, self.models):
                self.reading.problem(where, problem)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Loop:
    """The settings of a refine loop, as they stand in a file."""

    until: str = "verified"
    max_rounds: int = 2


def items_of(layer: Layer, named: Named, lent: Model | str | None = None) -> list[Any]:
    """Return a layer as the items of a list; a layer without a model is given `lent`, where there is one.

    Raises:
        ConfigError: a layer or a model has no name in a file.
    """
    if isinstance(layer, Pipeline):
        return items_of(layer.source, named, _own(layer, lent))
    # A list of one is read as the layer itself, so a sequence of one is written by its name.
    if isinstance(layer, Sequence) and len(layer.layers) > 1:
        return [_item_of(part, named, lent) for part in layer.layers]
    return [_item_of(layer, named, lent)]


def _item_of(layer: Layer, named: Named, lent: Model | str | None) -> Any:  # noqa: ANN401 (plain data)
    match layer:
        case Pipeline():
            items = items_of(layer, named, lent)
            return items[0] if len(items) == 1 else {"sequence": items}
        case Sequence():
            return {"sequence": [_item_of(part, named, lent) for part in layer.layers]}
        case Parallel():
            return {"parallel": [items_of(part, named, lent) for part in layer.layers]}
        case Refine():
            return {"refine": {"body": items_of(layer.body, named, lent), **loop_settings(layer)}}
        case Leaf():
            name, settings = layer_name(layer), leaf_settings(layer, named, lent=lent)
            return {name: settings} if settings else name
    raise ConfigError(
        f"a {type(layer).__name__} cannot be written to a file: valid: a Leaf, or {', '.join(COMPOSITES)}"
    )


def _own(pipeline: Pipeline, lent: Model | str | None) -> Model | str | None:
    """Return what a pipeline inside another lends to its own layers, whatever the outer one lends."""
    own = lent_model(pipeline.source)
    return lent if own is None else own


def loop_settings(layer: Refine) -> dict[str, Any]:
    """Return the settings of a refine loop, written out in full since they say what the loop does."""
    return {"until": layer.until, "max_rounds": layer.max_rounds}


def leaf_settings(
    leaf: Leaf, named: Named, *, lent: Model | str | None = None, defaults: bool = False
) -> dict[str, Any]:
    """Return a layer's settings as plain data, in the order of its fields; with `defaults`, unchanged ones too."""
    hints = hints_of(type(leaf))
    settings = {}
    for name, each in settings_of(type(leaf)).items():
        value = getattr(leaf, name)
        value = lent if name == "model" and value is None else value
        if defaults or value != _default(each):
            settings[name] = _model_name(value, named) if name == "model" else _plain(read_value(hints[name], value))
    return settings


def _default(each: dataclasses.Field[Any]) -> object:
    return each.default if each.default_factory is dataclasses.MISSING else each.default_factory()


def _model_name(value: Model | str | tuple[Model | str, ...] | None, named: Named) -> object:
    if isinstance(value, tuple):
        return [named(model) for model in value]
    return value if value is None else named(value)


def _plain(value: object) -> object:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {
            each.name: _plain(getattr(value, each.name))
            for each in fields
            if getattr(value, each.name) != _default(each)
        }
    return value
