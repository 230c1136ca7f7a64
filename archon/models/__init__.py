"""Models: one protocol, clients for endpoints, and wrappers that are themselves models."""

from archon.models.build import ModelSpec, build_model, read_spec
from archon.models.cached import Cached
from archon.models.completion_store import CompletionStore
from archon.models.litellm_model import LiteLLMModel
from archon.models.metered import Metered
from archon.models.openai_http import OpenAIModel
from archon.models.protocol import FREE, Completion, Effort, Model, Price, Request
from archon.models.retrying import Retrying
from archon.models.splitting import Splitting
from archon.models.throttled import Limiter, Throttled

__all__ = [
    "FREE",
    "Cached",
    "Completion",
    "CompletionStore",
    "Effort",
    "Limiter",
    "LiteLLMModel",
    "Metered",
    "Model",
    "ModelSpec",
    "OpenAIModel",
    "Price",
    "Request",
    "Retrying",
    "Splitting",
    "Throttled",
    "build_model",
    "read_spec",
]
