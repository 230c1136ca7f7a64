"""How a file names models, and what it may say about one under `models:`.

A name is a string: `local/NAME` for a model that is served here, `http://host:8000/v1#model` for an endpoint,
`litellm/provider/model` for a hosted one, or a key of the file's own `models:`. Names stay in the layers as they are;
a run resolves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from archon.config.document import Place
from archon.config.reading import Reading, build, shown
from archon.errors import ConfigError, nearest
from archon.models.protocol import Model, Price

Models = Mapping[str, str | Mapping[str, Any]]
"""What stands behind a file's own names: another name, or the settings of an endpoint."""

FORMS = "local/NAME, http://HOST/v1#MODEL, litellm/PROVIDER/MODEL"
_NAME_EXAMPLE = "{small: {url: 'http://127.0.0.1:8000/v1', model: qwen}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """What may stand under a name in `models:`. It is only checked here; the mapping travels to the run as written."""

    model: str
    """The model's id at its endpoint, or with no `url`, a name such as `local/NAME`."""
    url: str | None = None
    """The base URL of an OpenAI-compatible endpoint."""
    api_key_env: str | None = None
    """The environment variable that holds the key; the key itself never stands in a file."""
    price: Price | None = None
    """Dollars per million tokens; left out, a hosted model's known price or a local model's zero."""
    timeout_s: float = 600.0
    """Seconds that one request may take."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """What is added to the body of each request."""
    efforts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What is added to the body for each `effort`."""
    opens_thinking: bool = False
    """Whether the chat template itself opens the model's thinking, so that a reply begins inside it."""

    def __post_init__(self) -> None:
        if self.url is None:
            if problem := name_problem(self.model, ()):
                raise ConfigError(problem)
        elif not _is_url(self.url):
            raise ConfigError(f"url {self.url!r} is not valid: valid: http://HOST:PORT/v1")
        if not self.model:
            raise ConfigError("model is empty: valid: the model's id at its endpoint")
        if self.timeout_s <= 0:
            raise ConfigError(f"timeout_s={self.timeout_s!r}: must be above 0")
        for name in ("prompt_usd", "completion_usd", "cached_prompt_usd"):
            value = None if self.price is None else getattr(self.price, name)
            if value is not None and value < 0:
                raise ConfigError(f"price {name}={value!r}: must be at least 0")


def read_models(given: object, place: Place, reading: Reading) -> Models:
    """Return the checked `models:` of a file."""
    if given is None:
        return {}
    entries = reading.mapping(given, place, example=_NAME_EXAMPLE)
    for name, entry in entries.items():
        here = (*place, name)
        if "/" in name or not name.strip():
            reading.problem(here, f"{name!r} cannot be a name of your own: valid: a word without '/'")
        if isinstance(entry, str):
            if problem := name_problem(entry, ()):
                reading.problem(here, problem)
        else:
            build(
                ModelEntry, reading.mapping(entry, here, example=f"a model's name, or {_NAME_EXAMPLE}"), here, reading
            )
    return entries


def name_problem(name: str, own: Mapping[str, Any] | tuple[()]) -> str | None:
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
