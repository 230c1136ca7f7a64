"""Checks of a layer's settings: a ConfigError names the layer, the field, the value and what would be valid."""

from __future__ import annotations

from collections.abc import Collection

from archon.errors import ConfigError, nearest


def require(valid: bool, layer: str, field: str, value: object, rule: str) -> None:
    """Raise unless `valid`.

    Raises:
        ConfigError: with the layer, the field, the value and the rule.
    """
    if not valid:
        raise ConfigError(f"{layer} {field}={value!r}: {rule}")


def whole(layer: str, field: str, value: object, *, low: int, high: int | None = None) -> None:
    """Raise unless the value is a whole number from `low` to `high`."""
    ok = isinstance(value, int) and not isinstance(value, bool) and value >= low and (high is None or value <= high)
    reach = f"of at least {low}" if high is None else f"from {low} to {high}"
    require(ok, layer, field, value, f"must be a whole number {reach}")


def real(layer: str, field: str, value: object, *, low: float, high: float, none: bool = False) -> None:
    """Raise unless the value is a number from `low` to `high`, or None where that is allowed."""
    ok = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    more = ", or left out" if none else ""
    require(ok or (none and value is None), layer, field, value, f"must be a number from {low:g} to {high:g}{more}")


def choice(layer: str, field: str, value: object, valid: Collection[str]) -> None:
    """Raise unless the value is one of the names."""
    require(value in valid, layer, field, value, nearest(str(value), valid))


def flag(layer: str, field: str, value: object) -> None:
    """Raise unless the value is true or false."""
    require(isinstance(value, bool), layer, field, value, "must be true or false")


def sampling(layer: str, *, max_tokens: object, temperature: object, effort: object) -> None:
    """Raise unless the settings that every asking layer has are valid."""
    whole(layer, "max_tokens", max_tokens, low=1)
    real(layer, "temperature", temperature, low=0.0, high=2.0, none=True)
    if effort is not None:
        choice(layer, "effort", effort, ("none", "low", "medium", "high"))


def top_k(layer: str, value: object) -> None:
    """Raise unless the value is a number of candidates, or None for all."""
    if value is not None:
        whole(layer, "top_k", value, low=1)
