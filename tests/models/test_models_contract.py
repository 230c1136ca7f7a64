import asyncio

import pytest
from models_contract import Made, ModelContract, around, asking, scripted

from archon.budget import Budget, Ledger
from archon.models.cached import Cached
from archon.models.completion_store import CompletionStore
from archon.models.metered import Metered
from archon.models.openai_http import OpenAIModel
from archon.models.protocol import Model
from archon.models.retrying import Retrying
from archon.models.splitting import Splitting
from archon.models.throttled import Limiter, Throttled


class TestScripted(ModelContract):
    @pytest.fixture
    def make(self):
        def made(fails=False):
            backend = scripted(fails)
            return around(backend, backend)

        return made


class TestMetered(ModelContract):
    threads = False

    @pytest.fixture
    def make(self):
        def made(fails=False):
            backend = scripted(fails)
            return around(backend, Metered(backend, Ledger(Budget(calls=100))))

        return made


class TestCached(ModelContract):
    @pytest.fixture
    def make(self, tmp_path):
        def made(fails=False):
            backend = scripted(fails)
            return around(backend, Cached(backend, CompletionStore(tmp_path / "cache.sqlite")))

        return made


@pytest.mark.parametrize("max_n", [None, 1, 3])
class TestSplitting(ModelContract):
    @pytest.fixture
    def make(self, max_n):
        def made(fails=False):
            backend = scripted(fails)
            return around(backend, Splitting(backend, max_n=max_n))

        return made


class TestRetrying(ModelContract):
    @pytest.fixture
    def make(self):
        def made(fails=False):
            backend = scripted(fails)
            return around(backend, Retrying(backend, base_s=0.0))

        return made


@pytest.mark.parametrize("places", [1, 64])
class TestThrottled(ModelContract):
    @pytest.fixture
    def make(self, places):
        def made(fails=False):
            backend = scripted(fails, latency_s=0.001)
            return around(backend, Throttled(backend, Limiter(start=places, most=places)))

        return made


def over_http(server, model: Model, fails: bool) -> Made:
    if fails:
        server.answer = lambda *_: (400, "no", {})
    return Made(
        model,
        temperatures=lambda: [body.get("temperature") for body in server.bodies],
        calls=lambda: sum(body.get("n", 1) for body in server.bodies),
        completion_tokens=lambda: 2 * sum(body.get("n", 1) for body in server.bodies),
    )


@pytest.mark.parametrize("connections", [1, 1024])
class TestOpenAI(ModelContract):
    @pytest.fixture
    def make(self, server, connections):
        return lambda fails=False: over_http(server, OpenAIModel(server.url, "m", connections=connections), fails)


class TestWholeStack(ModelContract):
    threads = False

    @pytest.fixture
    def make(self, server, tmp_path):
        def made(fails=False):
            stack = Splitting(Retrying(Throttled(OpenAIModel(server.url, "m")), base_s=0.0))
            cached = Cached(stack, CompletionStore(tmp_path / "cache.sqlite"))
            return over_http(server, Metered(cached, Ledger()), fails)

        return made


async def test_a_cancelled_call_leaves_no_place_taken():
    backend = scripted(latency_s=10)
    ledger = Ledger(Budget(calls=1))
    limiter = Limiter(start=1, most=1)
    stack = Metered(Retrying(Throttled(backend, limiter)), ledger)
    task = asyncio.create_task(stack.sample(asking()))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.in_flight == 0
    # It may have been billed, so it stays charged; but the place at the limiter is free again.
    assert ledger.spent.calls == 1
    backend.latency_s = 0.0
    assert len(await asyncio.wait_for(Throttled(backend, limiter).sample(asking()), 1)) == 1
