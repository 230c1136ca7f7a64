"""How a file names models, and what it may say about one under `models:`.

A name is a string: `local/NAME` for a model that is served here, `http://host:8000/v1#model` for an endpoint,
`litellm/provider/model` for a hosted one, or a key of the file's own `models:`. Names stay in the layers as they are;
a run resolves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from archon.config.document import Place
from archon.config.reading import Reading, shown
from archon.errors import ConfigError, nearest
from archon.models.build import read_spec
from archon.models.protocol import Model

Models = Mapping[str, str | Mapping[str, Any]]
"""What stands behind a file's own names: another name, or the settings of an endpoint."""

FORMS = "local/NAME, http://HOST/v1#MODEL, litellm/PROVIDER/MODEL"
_NAME_EXAMPLE = "{small: {url: 'http://127.0.0.1:8000/v1', model: qwen}}"


def read_models(given: object, place: Place, reading: Reading) -> Models:
    """Return the checked `models:` of a file."""
    if given is None:
        return {}
    entries = reading.mapping(given, place, example=_NAME_EXAMPLE)
    for name, entry in entries.items():
        here = (*place, name)
        if "/" in name or not name.strip():
            reading.problem(here, f"{name!r} cannot be a name of your own: valid: a word without '/'")
        try:
            spec = read_spec(entry, where="")
        except ConfigError as error:
            reading.problem(here, str(error).lstrip(".: "))
            continue
        if spec.url is None and (problem := name_problem(spec.model, {})):
            reading.problem(here, problem)
        elif spec.url is not None and not _is_url(spec.url):
            reading.problem(here, f"url {spec.url!r} is not valid: valid: http://HOST:PORT/v1")
    return entries


def name_problem(name: str, own: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a model's name, or None."""
    if name in own:
        return None
    scheme, slash, rest = name.partition("/")
    if slash and scheme == "local":
        return None if rest and "/" not in rest else f"model {name!r} names no model: valid: local/NAME"
    if slash and scheme == "litellm":
        provider, _, model = rest.partition("/")
        return None if provider and model else f"model {name!r} is cut short: valid: litellm/PROVIDER/MODEL"
    if "://" in name:
        url, _, model = name.partition("#")
        return None if _is_url(url) and model else f"model {name!r} is not valid: valid: http://HOST:PORT/v1#MODEL"
    names = f"; {nearest(name, own)}" if own else ""
    return f"unknown model {name!r}: valid: {FORMS}, or a key of models:{names}"


def spec_of(model: Model | str) -> str | Mapping[str, Any]:
    """Return how a file names a model: the string itself, or what the object says in its `spec` attribute.

    Raises:
        ConfigError: an object that does not say how it is named.
    """
    if isinstance(model, str):
        return model
    spec = getattr(model, "spec", None)
    if isinstance(spec, str | Mapping):
        return spec
    raise ConfigError(
        f"model {model.name!r} is a {type(model).__name__} without a name for files: give layers a string "
        f"({FORMS}), or give the object a `spec` attribute that holds one (now {shown(spec)})"
    )


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
