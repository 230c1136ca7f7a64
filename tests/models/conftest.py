"""Puts this folder on the path, for the contract and the server beside it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from models_chat_server import ChatServer


@pytest.fixture
def server():
    with ChatServer() as running:
        yield running
