"""Read YAML into frozen dataclasses, where an unknown key or a value of the wrong type is an error that says where."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import yaml

from archon.errors import ConfigError, nearest

T = TypeVar("T")


def load_mapping(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        ConfigError: the file is missing, not UTF-8, not YAML, or not a mapping with text keys.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"cannot read {str(path)!r}: {reason}") from error
    return mapping(data, str(path))


def mapping(data: object, where: str) -> dict[str, Any]:
    """Return `data` as a mapping with text keys.

    Raises:
        ConfigError: it is something else.
    """
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise ConfigError(f"{where}: expected a mapping of names to values, got {data!r}")
    return data


def build(cls: type[T], data: Mapping[str, Any], where: str) -> T:
    """Return a frozen dataclass made from a mapping; `where` names the place in messages.

    Raises:
        ConfigError: a key is unknown or missing, or a value has the wrong type or is refused by the class.
    """
    fields = {field.name: field for field in dataclasses.fields(cast("Any", cls))}
    for key in data:
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {key!r}; {nearest(key, fields)}")
    required = [n for n, f in fields.items() if f.default is f.default_factory is dataclasses.MISSING]
    missing = [name for name in required if name not in data]
    if missing:
        raise ConfigError(f"{where}: missing {', '.join(missing)}")
    hints = get_type_hints(cls)
    values = {key: _value(hints[key], value, f"{where}.{key}") for key, value in data.items()}
    try:
        return cls(**values)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _value(hint: object, value: object, where: str) -> object:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint), value, where)
    if origin is Literal:
        choices = get_args(hint)
        if value not in choices:
            raise ConfigError(f"{where}: {value!r} is not valid; {nearest(str(value), map(str, choices))}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{where}: expected a list, got {value!r}")
        return tuple(_value(get_args(hint)[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if dataclasses.is_dataclass(hint):
        return build(cast("type[Any]", hint), mapping(value, where), where)
    return _scalar(cast("type", hint), value, where)


def _union(choices: tuple[object, ...], value: object, where: str) -> object:
    if value is None and type(None) in choices:
        return None
    (hint,) = [choice for choice in choices if choice is not type(None)]  # only `X | None` is used here
    return _value(hint, value, where)


def _scalar(hint: type, value: object, where: str) -> object:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # bool is an int to Python, but `max_num_seqs: true` is a mistake.
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise ConfigError(f"{where}: expected {hint.__name__}, got {value!r}")
    return value
