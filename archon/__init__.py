"""Archon: the most accuracy out of a language model per token, per dollar and per second, at inference time.

    from archon import Budget, Critic, Fuser, Generator, Problem, Ranker, Verifier

    pipe = (
        Generator(model="local/qwen2.5-coder-0.5b", n=8, temperature=(0.2, 0.8))
        >> Critic() >> Ranker(top_k=3) >> Fuser() >> Verifier(unit_tests=8)
    ).refine(until="verified", max_rounds=2)
    trace = pipe.run_sync(Problem(id="p", prompt="Write ...", kind="code", entry_point="f"), budget=Budget(calls=60))
    print(trace.answer.text)

A layer takes a `Trace` and returns one; a pipeline is a layer. Start at `types.py`, then `pipeline/`, then `layers/`.
"""

from archon.budget import Budget, Ledger
from archon.errors import ArchonError
from archon.layers.critic import Critic
from archon.layers.fuser import Fuser
from archon.layers.generator import Generator
from archon.layers.ranker import Ranker
from archon.layers.revise import Revise
from archon.layers.unit_tests import UnitTestEvaluator, UnitTestGenerator
from archon.layers.verifier import Verifier
from archon.models.protocol import Completion, Model, Price, Request
from archon.pipeline.layer import Layer, layer
from archon.pipeline.pipeline import Pipeline
from archon.pipeline.plan import Plan
from archon.types import Candidate, Image, Message, Problem, Span, Trace, UnitTest, Usage, Verdict

__version__ = "0.1.0"

__all__ = [
    "ArchonError",
    "Budget",
    "Candidate",
    "Completion",
    "Critic",
    "Fuser",
    "Generator",
    "Image",
    "Layer",
    "Ledger",
    "Message",
    "Model",
    "Pipeline",
    "Plan",
    "Price",
    "Problem",
    "Ranker",
    "Request",
    "Revise",
    "Span",
    "Trace",
    "UnitTest",
    "UnitTestEvaluator",
    "UnitTestGenerator",
    "Usage",
    "Verdict",
    "Verifier",
    "layer",
]
