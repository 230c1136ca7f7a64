"""A model from its description in a config, with the usual wrappers around it.

A description is a string, `http://host:port/v1#model`, `litellm/provider/model` or `local/name`, or a mapping with such
a string as `model` (or `url` beside the endpoint's `model` id) and the settings of `ModelSpec`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from archon.errors import ConfigError, nearest
from archon.models.cached import Cached
from archon.models.completion_store import CompletionStore
from archon.models.litellm_model import LiteLLMModel
from archon.models.openai_http import OpenAIModel
from archon.models.protocol import FREE, Effort, Model, Price
from archon.models.retrying import Retrying
from archon.models.splitting import Splitting
from archon.models.throttled import Limiter, Throttled

_EXAMPLES = "'local/qwen2.5-coder-0.5b', 'http://127.0.0.1:8000/v1#model', 'litellm/openai/gpt-4o-mini'"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """What a config may say about a model."""

    model: str
    """`local/name`, `litellm/provider/model`, `URL#model`, or with `url` the model id alone."""
    url: str | None = None
    """The endpoint, up to and including its version."""
    name: str = ""
    """What traces and reports show."""
    api_key_env: str | None = None
    """The environment variable that holds the API key."""
    price: Price | None = None
    """Dollars per million tokens; a `local/` model is free unless this is set."""
    max_retries: int = 5
    """How often a failed request is sent again."""
    concurrency: int | None = None
    """The most requests in flight; None: 256."""
    timeout_s: float | None = None
    """The longest that one request may take; None: 600, and for a `local/` model, which only queues, six hours."""
    max_n: int | None = None
    """The most completions that the endpoint gives per request; None: learn it."""
    effort: Effort | None = None
    """A reasoning model's effort where a layer sets none."""
    efforts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What to send for an effort in place of `reasoning_effort`."""
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    """Sent with every request as it is."""
    opens_thinking: bool = False
    """The chat template writes the opening `<think>` itself."""


def build_model(
    spec: str | Mapping[str, Any],
    *,
    cache: CompletionStore | Path | str | None = None,
    max_retries: int | None = None,
    limiter: Limiter | None = None,
    base_url_of: Callable[[str], str] | None = None,
    where: str = "model",
) -> Model:
    """Return the usual stack: Cached(Splitting(Retrying(Throttled(endpoint)))), without Cached when there is no cache.

    Args:
        spec: A description, as above.
        cache: A store or the path of one.
        max_retries: In place of the description's.
        limiter: Shared with other models of the same endpoint; None: one of its own.
        base_url_of: Gives the URL of the server of a local model by name, and may start it.
        where: The place of the description in its config, for errors.

    Raises:
        ConfigError: the description cannot be understood.
        MissingExtra: it needs litellm, which is not installed.
    """
    read = read_spec(spec, where=where)
    retries = read.max_retries if max_retries is None else max_retries
    throttled = Throttled(_endpoint(read, base_url_of, where), limiter or _limiter(read))
    stack = Splitting(Retrying(throttled, max_retries=retries), max_n=read.max_n)
    if cache is None:
        return stack
    return Cached(stack, cache if isinstance(cache, CompletionStore) else CompletionStore(cache))


def read_spec(spec: str | Mapping[str, Any], *, where: str = "model") -> ModelSpec:
    """Return a description as a checked ModelSpec.

    Raises:
        ConfigError: naming the place, what was given and what would be valid.
    """
    if isinstance(spec, str):
        return ModelSpec(model=_text(spec, where))
    if not isinstance(spec, Mapping):
        raise ConfigError(f"{where}: {spec!r} is not a model; valid: {_EXAMPLES}, or a mapping with these as 'model'")
    _known(spec, ModelSpec, where)
    if spec.get("model") is None:
        raise ConfigError(f"{where}: 'model' is missing; valid: {_EXAMPLES}")
    settings: dict[str, Any] = {
        key: _value(key, value, f"{where}.{key}") for key, value in spec.items() if value is not None
    }
    return ModelSpec(**settings)


def _value(key: str, value: object, where: str) -> object:
    if key == "price":
        return _price(value, where)
    if key == "effort":
        if value not in get_args(Effort):
            raise ConfigError(f"{where}: {value!r}; {nearest(str(value), get_args(Effort))}")
        return value
    if key in ("max_retries", "concurrency", "max_n"):
        return _number(value, where, least=0 if key == "max_retries" else 1, whole=True)
    if key == "timeout_s":
        seconds = float(_number(value, where, least=0))
        if seconds == 0:
            raise ConfigError(f"{where}: {value!r}; valid: a number of seconds above 0")
        return seconds
    if key in ("efforts", "extra_body"):
        return _mapping(value, where)
    if key == "opens_thinking":
        if not isinstance(value, bool):
            raise ConfigError(f"{where}: {value!r}; valid: true, false")
        return value
    return _text(value, where)


def _price(value: object, where: str) -> Price:
    given = _mapping(value, where)
    _known(given, Price, where)
    for key in ("prompt_usd", "completion_usd"):
        if key not in given:
            raise ConfigError(f"{where}: {key!r} is missing; prices are dollars per million tokens")
    return Price(**{key: float(_number(each, f"{where}.{key}", least=0)) for key, each in given.items()})


def _known(given: Mapping[str, Any], into: type, where: str) -> None:
    valid = [each.name for each in fields(into)]
    for key in given:
        if key not in valid:
            raise ConfigError(f"{where}.{key}: unknown key; {nearest(str(key), valid)}")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{where}: {value!r}; valid: a text that is not empty")
    return value.strip()


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where}: {value!r}; valid: a mapping")
    return value


def _number(value: object, where: str, *, least: int, whole: bool = False) -> float:
    kinds = (int,) if whole else (int, float)
    if isinstance(value, kinds) and not isinstance(value, bool) and least <= value < float("inf"):
        return value
    raise ConfigError(f"{where}: {value!r}; valid: a {'whole ' if whole else ''}number of at least {least}")


def _limiter(spec: ModelSpec) -> Limiter:
    usual = Limiter()
    most = spec.concurrency or usual.most
    # A local server queues by itself and never answers 429, so there is nothing to find out.
    return Limiter(start=most if spec.model.startswith("local/") else min(usual.start, most), most=most)


def _endpoint(spec: ModelSpec, base_url_of: Callable[[str], str] | None, where: str) -> Model:
    if spec.url is not None:
        return _open_ai(spec, spec.url, spec.model)
    kind, _, rest = spec.model.partition("/")
    if kind == "litellm" and rest:
        return _litellm(spec, rest, where)
    if kind == "local" and rest:
        if base_url_of is None:
            raise ConfigError(
                f"{where}: {spec.model!r} needs a local server, and nothing here can start one; give its URL"
            )
        url, _, served = base_url_of(rest).partition("#")
        return _open_ai(spec, url, served or rest, known_as=spec.model)
    url, mark, served = spec.model.partition("#")
    if mark and served and url.startswith(("http://", "https://")):
        return _open_ai(spec, url, served)
    raise ConfigError(f"{where}: {spec.model!r} is not a model; valid: {_EXAMPLES}")


def _open_ai(spec: ModelSpec, url: str, served: str, known_as: str | None = None) -> OpenAIModel:
    default = {"reasoning_effort": spec.effort} if spec.effort else {}
    if spec.effort and spec.effort in spec.efforts:
        default = dict(spec.efforts[spec.effort])
    return OpenAIModel(
        url,
        served,
        name=spec.name or served,
        api_key_env=spec.api_key_env,
        price=FREE if known_as and spec.price is None else spec.price,
        timeout_s=_timeout_s(spec),
        extra_body={**default, **spec.extra_body},
        efforts=spec.efforts,
        opens_thinking=spec.opens_thinking,
        known_as=known_as,
    )


def _timeout_s(spec: ModelSpec) -> float:
    """Return the request time-out: a local server that is slow, on a busy machine, is not one that is down.

    What it had generated would be thrown away and generated again, slower still.
    """
    if spec.timeout_s is not None:
        return spec.timeout_s
    return 6 * 3600.0 if spec.model.startswith("local/") else 600.0


def _litellm(spec: ModelSpec, model: str, where: str) -> LiteLLMModel:
    if spec.efforts or spec.opens_thinking:
        raise ConfigError(f"{where}: 'efforts' and 'opens_thinking' are for OpenAI-compatible URLs, not for litellm")
    default = {"reasoning_effort": spec.effort} if spec.effort else {}
    return LiteLLMModel(
        model,
        name=spec.name or model,
        api_key_env=spec.api_key_env,
        price=spec.price,
        timeout_s=_timeout_s(spec),
        extra_body={**default, **spec.extra_body},
    )
