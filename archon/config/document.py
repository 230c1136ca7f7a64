"""Read the text of a YAML or JSON file strictly, and remember on which line each value stands.

Only plain values come out: mappings, lists, text, numbers, booleans and None. A key that is written twice is an error,
since YAML would silently keep the last one. Anchors and merge keys work; tags that would build other objects do not.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from archon.errors import ConfigError

Place = tuple[str | int, ...]
"""Where a value stands: the keys and list positions that lead to it."""

_MOST_BYTES = 1_000_000
"""A pipeline file is a few kilobytes; anything above this was named by mistake."""

_MOST_VALUES = 100_000
"""Nested anchors make millions of values of a few lines; a published pipeline has some hundreds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The plain data of a file, and what messages need to point into it."""

    data: object
    source: str = ""
    """The file's name; empty for data that came from no file."""
    node: yaml.Node | None = None
    """The YAML nodes that the data was made from; None where there are no line numbers."""

    def at(self, place: Place) -> str:
        """Return the start of a message about a value: `file:12: pipeline[2].ranker.top_k`."""
        line = None if self.node is None else _line(self.node, place)
        file = self.source if line is None else f"{self.source}:{line}"
        return ": ".join(part for part in (file, written(place)) if part)


def written(place: Place) -> str:
    """Return a place as messages write it: `pipeline[2].ranker.top_k`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")


def read_document(path: Path) -> Document:
    """Return the data of a file: JSON when its name ends in `.json`, else YAML.

    Raises:
        ConfigError: the file cannot be read, is not UTF-8, or cannot be understood; with the line where there is one.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(raw) > _MOST_BYTES:
        raise ConfigError(f"{path}: {len(raw):,} bytes are too many for a pipeline: valid: up to {_MOST_BYTES:,}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(
            f"{path}:{line}: byte {raw[error.start]:#04x} is not UTF-8: save the file as UTF-8"
        ) from error
    return parse_document(text, source=str(path), is_json=path.suffix == ".json")


def parse_document(text: str, *, source: str = "<text>", is_json: bool = False) -> Document:
    """Return the data of a text.

    Raises:
        ConfigError: the text cannot be understood.
    """
    try:
        document = _parse_json(text, source) if is_json else _parse_yaml(text, source)
    except RecursionError as error:
        raise ConfigError(f"{source}: nested too deeply to be a pipeline") from error
    if document.data is None:
        raise ConfigError(f"{source}: the file is empty: valid: a mapping with the key 'pipeline'")
    return document


def _parse_json(text: str, source: str) -> Document:
    if not text.strip():
        return Document(data=None, source=source)
    try:
        return Document(data=json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant), source=source)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{source}:{error.lineno}: not JSON: {error.msg}") from error
    except ValueError as error:
        raise ConfigError(f"{source}: not JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} is written twice in one object")
        result[key] = value
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


class _Loader(yaml.SafeLoader):
    """The safe loader, with keys that are text and written once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping, having checked its keys as they are written, before merge keys are filled in."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag not in {
                "tag:yaml.org,2002:str",
                "tag:yaml.org,2002:merge",
            }:
                shown = key.value if isinstance(key, yaml.ScalarNode) else "a list or mapping"
                raise yaml.constructor.ConstructorError(None, None, f"the key {shown!r} is not text", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} is written twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _parse_yaml(text: str, source: str) -> Document:
    loader: _Loader | None = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None and _written_out(node, {}) > _MOST_VALUES:
            raise ConfigError(
                f"{source}: anchors make more than {_MOST_VALUES:,} values of it: too many for a pipeline"
            )
        data = None if node is None else loader.construct_document(node)
        return Document(data=data, source=source, node=node)
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{_at(error, source)}: not YAML that can be read: {_problem(error, text)}") from error
    except ConfigError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{source}: not YAML that can be read: {' '.join(str(error).split())}") from error
    except (AttributeError, LookupError, TypeError) as error:  # what PyYAML does to `!!bool x` and `!!timestamp x`
        raise ConfigError(f"{source}: not YAML that can be read: a tag (`!!...`) does not fit its value") from error
    finally:
        if loader is not None:
            loader.dispose()


def _written_out(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node holds when each anchor is written out; one inside itself counts once."""
    if id(node) not in known:
        known[id(node)] = 1
        items = node.value if isinstance(node, yaml.CollectionNode) else ()
        inner = (each for item in items for each in (item if isinstance(item, tuple) else (item,)))
        known[id(node)] = 1 + sum(_written_out(each, known) for each in inner)
    return known[id(node)]


def _at(error: yaml.MarkedYAMLError, source: str) -> str:
    mark = error.problem_mark or error.context_mark
    return source if mark is None else f"{source}:{mark.line + 1}"


def _problem(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    lines = text.splitlines()
    if mark is not None and mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]:
        return "there is a tab in the indentation: use spaces"
    return " ".join(part for part in (error.context, error.problem) if part)


def _line(node: yaml.Node, place: Place) -> int:
    """Return the 1-based line of the value at a place, or of the nearest thing around it that is written out."""
    line = node.start_mark.line
    for step in place:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == step), None)
            if found is None:
                break
            line, node = found[0].start_mark.line, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line
        else:
            break
    return int(line) + 1
