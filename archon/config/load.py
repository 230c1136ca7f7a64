"""Load a pipeline from wherever it is: a YAML or JSON file, or a mapping; ours or a published Archon configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archon.config.archon_json import read_archon_json
from archon.config.document import Document, read_document
from archon.config.pipeline_file import LoadedPipeline, read_pipeline


def load_pipeline(source: Path | str | Mapping[str, Any], *, lenient: bool = False) -> LoadedPipeline:
    """Return a pipeline and what its file says beside it. A mapping with `layers` is a published Archon configuration.

    Args:
        source: the path of a file, or its content as a mapping.
        lenient: pass over keys that are not understood, and list them in `ignored`.

    Raises:
        ConfigError: something is not understood; the message names the file, line and place, and what is valid.
    """
    document = Document(data=source) if isinstance(source, Mapping) else read_document(Path(source))
    data = document.data
    published = isinstance(data, Mapping) and not {"layers", "search_algorithm_choice"}.isdisjoint(data)
    return read_archon_json(document, lenient=lenient) if published else read_pipeline(document, lenient=lenient)
