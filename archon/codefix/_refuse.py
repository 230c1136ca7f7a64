"""How the code that reads patches says no: raised where the fault is seen, turned into data where reading began."""

from __future__ import annotations

from archon.codefix.types import Refusal, Refused


class Refuse(Exception):
    """A patch that will not be applied; never leaves this package."""

    def __init__(self, status: Refusal, reason: str) -> None:
        super().__init__(reason)
        self.refused = Refused(status=status, reason=reason)


def rejected(reason: str) -> Refuse:
    """Return the refusal of a patch that policy or its own form forbids."""
    return Refuse("patch_rejected", reason)


def conflict(reason: str) -> Refuse:
    """Return the refusal of a patch that does not fit the tree."""
    return Refuse("patch_conflict", reason)
