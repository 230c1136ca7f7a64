"""What holds for all tests: examples that hypothesis makes up may take as long as a busy machine needs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
