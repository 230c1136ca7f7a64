"""Pipelines as files: YAML in both directions, published Archon configurations, and a content hash."""

from archon.config.archon_json import load_archon_json
from archon.config.identity import pipeline_hash
from archon.config.load import load_pipeline
from archon.config.pipeline_file import LoadedPipeline, dump_pipeline

__all__ = ["LoadedPipeline", "dump_pipeline", "load_archon_json", "load_pipeline", "pipeline_hash"]
