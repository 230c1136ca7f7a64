"""Turn plain data into frozen dataclasses by their type hints, and collect everything that is wrong with it."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from archon.config.document import Document, Place, written
from archon.errors import ConfigError, nearest
from archon.models.protocol import Model
from archon.sandbox.protocol import Sandbox

T = TypeVar("T")

NOT_WRITTEN = frozenset({"seed", "sandbox"})
"""Fields of layers that a run sets and a file never holds."""


class Reading:
    """What one reading of a document finds: problems, and in lenient mode the keys that it passed over."""

    def __init__(self, document: Document, *, lenient: bool) -> None:
        self.document = document
        self.lenient = lenient
        self.problems: list[str] = []
        self.ignored: list[str] = []

    def problem(self, place: Place, message: str) -> None:
        """Note what is wrong at a place."""
        self.problems.append(f"{self.document.at(place)}: {message}")

    def unknown(self, place: Place, valid: Iterable[str]) -> None:
        """Note a key that is not understood: ignored in lenient mode, else a problem."""
        self.without_effect(place, f"unknown key {place[-1]!r}; {nearest(str(place[-1]), valid)}")

    def without_effect(self, place: Place, message: str) -> None:
        """Note a key that changes nothing here: ignored in lenient mode, else a problem."""
        if self.lenient:
            self.ignored.append(written(place))
        else:
            self.problem(place, message)

    def mapping(self, value: object, place: Place, *, example: str) -> Mapping[str, Any]:
        """Return a mapping with text keys; anything else is a problem, and empty."""
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return value
        self.problem(place, f"{shown(value)} is not a mapping: valid: {example}")
        return {}

    def finish(self) -> None:
        """Raise the first problem, with the number of the others.

        Raises:
            ConfigError: there was a problem.
        """
        if self.problems:
            more = len(self.problems) - 1
            raise ConfigError(self.problems[0] + (f" (and {more} more)" if more else ""))


class Unfit(Exception):
    """A value that a type hint does not allow; `place` leads from the value to the part that is wrong."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(message)
        self.place = place


def shown(value: object) -> str:
    """Return a value for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def settings_of(cls: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a dataclass that a file may set, in their order."""
    fields = dataclasses.fields(cast("Any", cls))
    return {each.name: each for each in fields if each.init and not _set_by_run(each)}


def _set_by_run(each: dataclasses.Field[Any]) -> bool:
    return each.name in NOT_WRITTEN or bool(each.metadata.get("bound"))


def hints_of(cls: type) -> dict[str, Any]:
    """Return the type hints of a class's fields."""
    return get_type_hints(cls)


def build(cls: type[T], given: Mapping[str, Any], place: Place, reading: Reading) -> T | None:
    """Return an instance made from a mapping, or None when something was wrong and is noted."""
    known = len(reading.problems)
    fields, hints = settings_of(cls), hints_of(cls)
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in fields:
            reading.unknown((*place, key), fields)
            continue
        try:
            values[key] = read_value(hints[key], value)
        except Unfit as error:
            reading.problem((*place, key, *error.place), str(error))
    for key in _required(fields):
        if key not in given:
            reading.problem(place, f"{key!r} is missing")
    if len(reading.problems) > known:
        return None
    try:
        return cls(**values)
    except ConfigError as error:
        reading.problem(place, str(error))
        return None


def _required(fields: Mapping[str, dataclasses.Field[Any]]) -> list[str]:
    missing = dataclasses.MISSING
    return [name for name, each in fields.items() if each.default is missing and each.default_factory is missing]


def read_value(hint: Any, value: object) -> Any:  # noqa: ANN401 (as typed as the hint)
    """Return a plain value as a hint wants it: lists become tuples, mappings dataclasses, whole numbers floats.

    Raises:
        Unfit: the value does not fit; the message quotes it and says what would.
    """
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(hint), value)
    if origin is Literal:
        if any(value == each and type(value) is type(each) for each in get_args(hint)):
            return value
        raise Unfit(f"{shown(value)} is not known; {nearest(str(value), map(str, get_args(hint)))}")
    if origin is tuple:
        return _read_tuple(get_args(hint), value)
    if dataclasses.is_dataclass(hint):
        return _read_dataclass(cast("type", hint), value)
    return _read_scalar(hint, value)


def _read_union(hints: tuple[Any, ...], value: object) -> Any:  # noqa: ANN401
    problems: list[Unfit] = []
    for hint in hints:
        try:
            return read_value(hint, value)
        except Unfit as error:
            problems.append(error)
    # A list that fits none of the arms is best explained by the arm that takes lists.
    deep = [error for error in problems if error.place]
    if len(deep) == 1:
        raise deep[0]
    wanted = dict.fromkeys(describe(hint) for hint in hints)
    raise Unfit(f"{shown(value)} does not fit: valid: {' or '.join(wanted)}{_hint(value)}")


def _read_tuple(hints: tuple[Any, ...], value: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise Unfit(f"{shown(value)} is not a list")
    if len(hints) == 2 and hints[1] is ...:
        hints = (hints[0],) * len(value)
    if len(hints) != len(value):
        raise Unfit(f"{shown(list(value))} has {len(value)} items: valid: {len(hints)}")
    items = []
    for index, (hint, item) in enumerate(zip(hints, value, strict=True)):
        try:
            items.append(read_value(hint, item))
        except Unfit as error:
            raise Unfit(str(error), (index, *error.place)) from None
    return tuple(items)


def _read_dataclass(cls: type, value: object) -> object:
    if isinstance(value, cls):
        return value
    reading = Reading(Document(data=None), lenient=False)
    built = build(cls, reading.mapping(value, (), example="{name: value}"), (), reading)
    if reading.problems:
        raise Unfit(reading.problems[0].removeprefix(": "))
    return built


def _read_scalar(hint: Any, value: object) -> Any:  # noqa: ANN401
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return float(value)
        raise Unfit(f"{value!r} is not a finite number")
    if hint is Model and isinstance(value, Model):
        return value
    if isinstance(hint, type) and hint in (int, str, bool, type(None)) and type(value) is hint:
        return value
    raise Unfit(f"{shown(value)} is not {describe(hint)}{_hint(value)}")


_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    type(None): "null",
    Model: "a model",
    Sandbox: "a sandbox",
}


def describe(hint: Any) -> str:  # noqa: ANN401
    """Return a hint in the words of a message."""
    if get_origin(hint) is Literal:
        return " or ".join(repr(each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        args = get_args(hint)
        items = dict.fromkeys(describe(each) for each in args if each is not ...)
        count = "" if args[-1] is ... else f"{len(args)} times "
        return f"a list of {count}{' or '.join(items)}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(describe(each) for each in get_args(hint)))
    return _NAMES.get(hint, "a mapping" if dataclasses.is_dataclass(hint) else str(hint))


def _hint(value: object) -> str:
    """Explain the values that YAML 1.1 reads as text though they look like numbers."""
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return ""
        return f" (YAML reads {value!r} as text: write {number!r})" if math.isfinite(number) else ""
    return ""
