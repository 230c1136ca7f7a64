import dataclasses

import pytest
from models_contract import scripted

from archon.budget import Ledger
from archon.models._wrapper import Wrapper
from archon.models.cached import Cached
from archon.models.completion_store import CompletionStore
from archon.models.metered import Metered
from archon.models.protocol import Model
from archon.models.retrying import Retrying
from archon.models.splitting import Splitting
from archon.models.throttled import Throttled
from archon.testing import ScriptedModel


@pytest.fixture(params=[Cached, Metered, Retrying, Splitting, Throttled], ids=lambda wrapper: wrapper.__name__)
def wrap(request, tmp_path):
    """Returns a function that wraps a model."""
    more = {Cached: [CompletionStore(tmp_path / "cache.sqlite")], Metered: [Ledger()]}
    return lambda model: request.param(model, *more.get(request.param, []))


def test_a_wrapper_has_the_name_identity_and_price_of_what_it_wraps(wrap):
    backend = scripted(name="inner")
    wrapped = wrap(backend)
    assert isinstance(wrapped, Model)
    assert (wrapped.name, wrapped.identity, wrapped.price) == (backend.name, backend.identity, backend.price)


async def test_closing_a_wrapper_closes_what_it_wraps(wrap):
    class Closing(ScriptedModel):
        closed = 0

        async def close(self):
            self.closed += 1

    backend = Closing([])
    await wrap(backend).close()
    assert backend.closed == 1


def test_a_wrapper_is_frozen_and_has_only_its_fields(wrap):
    wrapped = wrap(scripted())
    assert isinstance(wrapped, Wrapper)
    assert not hasattr(wrapped, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        wrapped.model = scripted()
    assert dataclasses.fields(wrapped)[0].name == "model"
