"""Layers, how they compose, and what a pipeline will take before it runs."""

from archon.pipeline.compose import Parallel, Refine, Sequence
from archon.pipeline.layer import Layer, layer
from archon.pipeline.pipeline import Pipeline
from archon.pipeline.plan import LayerPlan, Plan

__all__ = ["Layer", "LayerPlan", "Parallel", "Pipeline", "Plan", "Refine", "Sequence", "layer"]
