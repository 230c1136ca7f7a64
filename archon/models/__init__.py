"""Models: one protocol, clients for endpoints, and wrappers that are themselves models."""
