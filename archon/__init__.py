"""Archon: the most accuracy out of a language model per token, per dollar and per second, at inference time."""
