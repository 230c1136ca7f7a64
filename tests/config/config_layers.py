"""A user's own layers, as a file names them."""

from dataclasses import dataclass
from typing import ClassVar

from archon.pipeline.layer import Leaf
from archon.pipeline.plan import LayerPlan
from archon.sandbox.protocol import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Shorten(Leaf):
    kind: ClassVar[str] = "shorten"

    to: int = 10
    limits: Limits = Limits()

    async def __call__(self, trace):
        return trace

    def plan_rows(self, shape):
        return (LayerPlan.of(self.name, self.kind, calls=0),), shape


class NotALayer:
    pass


def outer():
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Hidden(Shorten):
        pass

    return Hidden()
