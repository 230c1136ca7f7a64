"""Frozen dataclasses to JSON and back, by their annotations: how records and traces are stored.

Covers what the project's value types are made of: dataclasses, tuples, unions with None, Literals and scalars.
Unknown keys and wrong types are errors, so that a damaged row is noticed and not half-read.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any, Literal, TypeVar, Union

import orjson

T = TypeVar("T")


def dumps(value: object) -> bytes:
    """Return a dataclass, or anything made of dataclasses and plain values, as JSON.."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_DATACLASS)


def loads(cls: type[T], data: bytes | str) -> T:
    """Return the value of type `cls` that `dumps` wrote.

    Raises:
        ValueError: the data is not JSON, or does not have the type's fields.
    """
    return typing.cast("T", from_plain(cls, orjson.loads(data)))


def from_plain(kind: Any, value: Any) -> Any:  # noqa: ANN401 (any annotation in, any value out)
    """Return plain JSON data as a value of an annotated type.

    Raises:
        ValueError: the data does not fit the type.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast("type", kind), value)
    if origin in (Union, types.UnionType):
        return _union(args, value)
    if origin is tuple:
        return _tuple(args, value)
    if origin is Literal:
        if value not in args:
            raise ValueError(f"{value!r} is not one of {', '.join(map(repr, args))}")
        return value
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{value!r} is not of type {getattr(kind, '__name__', kind)}")
    return value


@cache
def _fields(cls: type) -> dict[str, Any]:
    return {name: hint for name, hint in typing.get_type_hints(cls).items() if name in _names(cls)}


@cache
def _names(cls: type) -> frozenset[str]:
    return frozenset(each.name for each in dataclasses.fields(cls))


def _dataclass(cls: type, value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not an object with the fields of {cls.__name__}")
    if unknown := value.keys() - _names(cls):
        raise ValueError(f"{cls.__name__} has no field {sorted(unknown)[0]!r}")
    try:
        return cls(**{name: from_plain(_fields(cls)[name], each) for name, each in value.items()})
    except TypeError as error:
        raise ValueError(f"{cls.__name__}: {error}") from error


def _union(args: tuple[Any, ...], value: Any) -> Any:  # noqa: ANN401
    for kind in args:
        if kind is type(None) and value is None:
            return None
        try:
            return from_plain(kind, value)
        except ValueError:
            continue
    raise ValueError(f"{value!r} fits none of {', '.join(str(kind) for kind in args)}")


def _tuple(args: tuple[Any, ...], value: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list")
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(from_plain(args[0], each) for each in value)
    if len(args) != len(value):
        raise ValueError(f"{value!r} does not have {len(args)} items")
    return tuple(from_plain(kind, each) for kind, each in zip(args, value, strict=True))
