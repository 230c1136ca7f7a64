"""The layers: what makes, criticises, orders, merges, revises and checks candidates."""

from archon.layers.critic import Critic
from archon.layers.fuser import Fuser
from archon.layers.generator import Generator
from archon.layers.ranker import Ranker
from archon.layers.revise import Revise
from archon.layers.unit_tests import UnitTestEvaluator, UnitTestGenerator
from archon.layers.verifier import Verifier

__all__ = ["Critic", "Fuser", "Generator", "Ranker", "Revise", "UnitTestEvaluator", "UnitTestGenerator", "Verifier"]
