"""Serving: models fetched by name and checked, and vLLM processes that are shared and leave nothing behind."""

from archon.serving._register import ServerRecord, running_servers
from archon.serving.catalogue import ModelEntry, load_catalogue
from archon.serving.metrics import ServerMetrics, scrape
from archon.serving.options import Recipe, ServeOptions, Speculator, find_recipe, load_recipe
from archon.serving.server import RunningServer, ensure_server, serve
from archon.serving.store import ModelStatus, list_models, pull, verify

__all__ = [
    "ModelEntry",
    "ModelStatus",
    "Recipe",
    "RunningServer",
    "ServeOptions",
    "ServerMetrics",
    "ServerRecord",
    "Speculator",
    "ensure_server",
    "find_recipe",
    "list_models",
    "load_catalogue",
    "load_recipe",
    "pull",
    "running_servers",
    "scrape",
    "serve",
    "verify",
]
