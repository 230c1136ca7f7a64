"""What every model around a model is but for `sample`: it has the name, identity and price of what it wraps."""

from __future__ import annotations

from dataclasses import dataclass

from archon.models.protocol import Model, Price


@dataclass(frozen=True, slots=True, eq=False)
class Wrapper:
    """The part that wrappers share; each adds its own settings and its own `sample`."""

    model: Model
    """What is wrapped."""

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self.model.name

    @property
    def identity(self) -> str:
        """Return the model's identity."""
        return self.model.identity

    @property
    def price(self) -> Price | None:
        """Return the model's price."""
        return self.model.price

    async def close(self) -> None:
        """Close the model."""
        await self.model.close()
